"""What texts of failed results say: whose fault it was. One table of patterns, tried in order.

A pattern is looked for in the first and the last `WINDOW` characters of a text, whatever the case
of the letters. Each has an example and a text that it must leave alone; the tests try both.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

WINDOW = 400
"""Characters at either end of a text that are looked at."""

INFRA, MODEL = "infra", "model"


@dataclass(frozen=True)
class Fault:
    """A way in which a call fails.

    Attributes:
        name: its name.
        side: ``infra`` when the surroundings failed, ``model`` when the agent did.
        pattern: regular expression, for letters of any case.
        example: a text that it finds.
        other: a text that looks alike and that it must not find.
    """

    name: str
    side: str
    pattern: str
    example: str
    other: str


FAULTS = (
    Fault(
        "connection",
        INFRA,
        r"connection (?:refused|reset|aborted|timed out|closed)|connect(?:ion)? ?error\b"
        r"|\beconn(?:refused|reset)|network is unreachable|no route to host|max retries exceeded"
        r"|failed to establish a new connection|remote end closed connection|broken pipe",
        "curl: (7) Failed to connect to localhost port 80: Connection refused",
        "The connection between both tables is the column id",
    ),
    Fault(
        "name resolution",
        INFRA,
        r"(?:temporary failure in|could not) (?:name resolution|resolve host)|getaddrinfo"
        r"|name or service not known|\benotfound\b|err_name_not_resolved",
        "curl: (6) Could not resolve host: pypi.org",
        "could not resolve the merge conflict",
    ),
    Fault(
        "timeout",
        INFRA,
        r"\btime[d ]?-?out\b|timeout ?(?:error|expired|exception|exceeded)|deadline exceeded"
        r"|\betimedout\b|\bexecution timeout|operation took too long",
        "TimeoutError: the request timed out after 30 s",
        "set_timeouts is not a function",
    ),
    Fault(
        "rate limit",
        INFRA,
        r"\b429\b.*?(?:too many|client error|status)|too many requests"
        r"|rate[ _-]?limit(?:ed|s)?\b.*?(?:exceed|reach|error|hit)|ratelimiterror"
        r"|quota ?exceeded|exceeded your (?:current )?quota|toolcallquotaexceeded",
        "Error code: 429 - Rate limit reached for requests",
        "the rate of change is limited",
    ),
    Fault(
        "server error",
        INFRA,
        r"\b50[0234]\b[ :-]*(?:internal|server error|bad gateway|service|gateway)"
        r"|internal server error|bad gateway|service (?:temporarily )?unavailable|gateway time-?out"
        r"|(?:server|model|service|api) (?:is )?overloaded|overloaded_?error|http (?:error )?5\d\d",
        "HTTP 503: Service Unavailable",
        "line 503 of server.py",
    ),
    Fault(
        "disk or memory",
        INFRA,
        r"no space left on device|disk quota exceeded|\benospc\b|cannot allocate memory"
        r"|out of memory|oom[- ]?kill|memoryerror|cuda error",
        "OSError: [Errno 28] No space left on device",
        "delete the space left of the device name",
    ),
    Fault(
        "container",
        INFRA,
        r"docker daemon|dockerd\b|containerd\b|(?:container|sandbox|runtime|pod|kernel|session)"
        r" (?:\S+ )?(?:is not running|died|crashed|exited|was killed|has been closed|not found"
        r"|disconnected|failed to start)|error response from daemon|browser has been closed"
        r"|target (?:page|closed)\b.*?closed",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock",
        "the container div is centred",
    ),
    Fault(
        "access",
        INFRA,
        r"\b40[13]\b.*?(?:unauthori[sz]ed|forbidden|client error)|unauthori[sz]ed\b"
        r"|not authenticated|invalid api key|(?:missing|required) credentials|ssl.*?certificate"
        r"|certificate verify failed",
        "401 Client Error: Unauthorized for url",
        "the author is unknown",
    ),
    Fault(
        "unknown tool",
        MODEL,
        r"(?:unknown|no such|invalid|unrecognized|unsupported) (?:tool|function|action|method)\b"
        r"|(?:tool|function|action) \S+ (?:is )?(?:not found|does not exist|not available"
        r"|not defined|not recognized|is not supported)|tooldoesnotfound|tool ?not ?found"
        r"|invalidpredictedaction",
        "Tool get_rain not found; choose one of get_weather",
        "no tools are needed",
    ),
    Fault(
        "wrong arguments",
        MODEL,
        r"(?:missing|unexpected|invalid|required|unknown|wrong|extra|bad|no) (?:\d+ )?"
        r"(?:required )?(?:positional |keyword )?(?:argument|parameter|param|input|field|property"
        r"|key|value)|validation ?error|invalid_request|invalid params|is a required property"
        r"|field required|missingkeys?error|missingargument|got an unexpected|must be (?:a|an|one"
        r" of) |\b400\b.*?bad request|\b422\b.*?unprocessable|illegal option|invalid option"
        r"|unrecognized (?:argument|option)|usage: \S+ ",
        "TypeError: search() got an unexpected keyword argument 'q'",
        "all arguments were accepted",
    ),
    Fault(
        "syntax",
        MODEL,
        r"syntax ?error|indentationerror|unexpected (?:token|eof|indent|end of)|parse ?error"
        r"|parsing ?error|jsondecode ?error|(?:invalid|malformed) (?:json|syntax|escape|xml|yaml)"
        r"|expecting (?:value|property name|',' delimiter)|unterminated|unbalanced"
        r"|nothoughterror|multiplethoughts|paralleltoolcalling",
        'SyntaxError: unexpected token "}"',
        "the syntax is explained on page 3",
    ),
    Fault(
        "wrong name",
        MODEL,
        r"no such file or directory|filenotfound|file not found|path \S+ does not exist"
        r"|command not found|modulenotfound|no module named|importerror|nameerror|attributeerror"
        r"|is not defined|has no attribute|no such (?:table|column|element)|is not a directory"
        r"|invalid path|collectionnamenotfound|keyerror|indexerror|\b404\b.*?not found",
        "bash: rgrep: command not found",
        "the file was found in the attic",
    ),
    Fault(
        "failed edit",
        MODEL,
        r"no replacement was performed|did not appear verbatim|string to replace not found"
        r"|multiple occurrences of|search block not found|patch (?:does not apply|failed)"
        r"|hunk #?\d+ failed|no match found for|old_str(?:ing)? .*?not found",
        "No replacement was performed, old_str did not appear verbatim in a.py",
        "the replacement was performed",
    ),
    Fault(
        "code raised",
        MODEL,
        r"typeerror|valueerror|zerodivision|assertionerror|runtimeerror|unboundlocal|recursionerror"
        r"|traceback \(most recent call last\)|segmentation fault|compilation (?:failed|error)",
        "ValueError: invalid literal for int() with base 10",
        "the type of the error bar",
    ),
)
"""Infrastructure comes first: what failed around a call says nothing about the call."""

_FAILED = (
    r"^\s*(?:\[|<|\*\*|#+ )?(?:fatal |tool |internal )?"
    r"(?:error|exception|failed|failure)\b(?:\]|>)?\s*"
    r"(?:[:!\]\-(]|while|in |with |occurred|[a-z]+ing\b|$)"
    r"|^\s*[a-z_.]*(?:error|exception): "
    r"|^\s*[a-z_.]*[a-z](?:error|exception)\s*(?:$|\n|\()"
    r"|(?:^|\n)(?:[a-z]+(?:error|exception)\s+)?traceback \(most recent call last\)"
    r"|^\s*your (?:proposed )?edit has introduced new syntax error"
    r"|^\s*previous response had parsing errors"
    r"|(?:^|\n)(?:/bin/)?(?:ba|z|da)?sh: .*?(?:not found|no such file|permission denied"
    r"|syntax error|cannot )"
    r"|command not found\s*$"
    r"|tool execute failed|execution timeout"
    r"|exit(?:ed)?(?: with)?(?: exit)?(?: code| status)?[: ]{1,2}[1-9]\d{0,2}\b"
    r"|^\s*\{\s*\"(?:error|err|errors|exception)\"\s*:\s*(?:\"[^\"]|\{|\[\s*[^\]\s]|true)"
    r"|^\s*\{.*?\"(?:status|type)\"\s*:\s*\"(?:error|failed|failure)\""
    r"|^\s*\{.*?\"(?:success|ok)\"\s*:\s*false"
    r"|^\s*<(?:tool_use_)?error>"
    r"|(?:^|\n)(?:syntaxerror|indentationerror|nameerror|modulenotfounderror|typeerror"
    r"|valueerror|keyerror|attributeerror|assertionerror|importerror): "
)
"""How a text begins, or ends, that reports a failure."""


def compiled(pattern: str) -> str:
    """The pattern for letters of any case; its classes are those of ASCII, which is faster."""
    for short, spelt in _CLASSES.items():
        pattern = pattern.replace(short, spelt)
    return f"(?i){pattern}"


_CLASSES = {
    r"\b": r"(?-u:\b)", r"\d": "[0-9]", r"\s": r"[ \t\r\n]", r"\S": r"[^ \t\r\n]",
}  # fmt: skip


def looks_failed(text: pl.Expr, rows: int) -> pl.Expr:
    """Whether a text reads like a failure. False when there is no text.

    Args:
        text: the texts.
        rows: how many there are.
    """
    if not rows:
        return pl.lit(None, pl.Boolean)
    return _ends(text).str.contains(compiled(_FAILED)).fill_null(value=False)


def side(text: pl.Expr) -> pl.Expr:
    """``infra``, ``model`` or ``other`` for the text of a failed result."""
    ends = _ends(text).fill_null("")
    sides = {
        item: "|".join(fault.pattern for fault in FAULTS if fault.side == item)
        for item in (INFRA, MODEL)
    }
    return (
        pl.when(ends.str.contains(compiled(sides[INFRA]))).then(pl.lit(INFRA))
        .when(ends.str.contains(compiled(sides[MODEL]))).then(pl.lit(MODEL))
        .otherwise(pl.lit("other"))
    )  # fmt: skip


def _ends(text: pl.Expr) -> pl.Expr:
    """The beginning and the end of each text."""
    long = text.str.len_bytes() > 2 * WINDOW
    both = pl.concat_str(text.str.head(WINDOW), pl.lit("\n"), text.str.tail(WINDOW))
    return pl.when(long).then(both).otherwise(text)
