"""Is it a real value? Tests that patterns cannot express."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from itertools import pairwise

_FILLER = re.compile(
    r"(?i)example|placeholder|your[_-]|your(?:api|key|token|secret|pass)|change[_-]?me|dummy|redacted|censored|removed|hidden"
    r"|x{5}|\*{3}|\.{3}|_{4}|<|\$\{|\{\{|%\(|0{12}"
)
"""Words and runs that stand for a value in documentation."""


def entropy(text: str) -> float:
    """Shannon entropy of the characters of a text, in bits a character."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) if size else 0.0


def character_kinds(value: str) -> tuple[bool, bool, bool, bool]:
    """Whether a value holds small letters, capitals, digits, and other characters."""
    return (
        any(c.islower() for c in value),
        any(c.isupper() for c in value),
        any(c.isdigit() for c in value),
        any(not c.isalnum() for c in value),
    )


def token(text: str, start: int, end: int) -> bool:
    """Whether a value with a fixed prefix is a token, not one that documentation shows."""
    return _FILLER.search(text, start, end) is None


def random_token(text: str, start: int, end: int) -> bool:
    """The same for a short prefix: letters and digits that look drawn by chance."""
    value = re.sub(r"^[a-z0-9]{1,6}[-_]", "", text[start:end])
    return token(text, start, end) and mixed(value) and entropy(value) > 3.0


def mixed(value: str) -> bool:
    """Whether letters and digits, or both cases, alternate as if drawn by chance."""
    if re.search(r"[a-z]{14}|[A-Z]{16}|[0-9]{18}", value):
        return False
    if not any(char.isalpha() for char in value):
        return False
    if any(char.isdigit() for char in value):
        return True
    turns = sum(a.isupper() != b.isupper() for a, b in pairwise(value))
    return turns > len(value) / 3


_CODE = re.compile(
    r"[()\[\]{}<>]|^[A-Za-z_]+(?:[._/-][A-Za-z_]+)*$|^https?:|^[\d.:/-]+$|^\.{0,2}/|\.\w+\."
)


_NAME = re.compile(r"^[a-z]\w*\.[A-Z][A-Z0-9_]*$|^(?:self|this)\.")
"""Names in code: ``settings.API_KEY_2``."""


_NUMBERED = re.compile(
    r"^(?:[a-z]+:)+[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
)
"""Names of things by their parts, such as a session of an agent."""


def assigned(text: str, start: int, end: int) -> bool:
    """Whether what a text assigns to a password or a key is one, not a name or code."""
    value = text[start:end]
    if _FILLER.search(value) or _CODE.search(value) or len(set(value)) < 6:
        return False
    if text[end : end + 1] in ("(", "[") or _NAME.search(value) or _NUMBERED.search(value):
        return False  # a call, as in base64.b16encode(x)
    kinds = character_kinds(value)
    return sum(kinds) >= 2 and kinds[2] and entropy(value) >= 2.8


def long_assigned(text: str, start: int, end: int) -> bool:
    """The same where the name of what is assigned says less: longer and more random."""
    value = text[start:end]
    if is_words(value) or not assigned(text, start, end):
        return False
    return mixed(value) and entropy(value) >= 3.2


_WORDS = re.compile(
    r"[A-Z]?[a-z]+\d{0,4}|[A-Z]{2,}\d{0,4}|[A-Za-z]?\d{1,4}|(?:[A-Z]?[a-z]{2,}){2,6}\d{0,4}|[A-Z]"
)
"""A word, some of them without a space between, or a short number."""


def is_words(value: str) -> bool:
    """Whether a value is made of words, as names in code and examples are."""
    return all(_WORDS.fullmatch(part) for part in re.split(r"[^0-9A-Za-z]+", value) if part)


def aws_secret(text: str, start: int, end: int) -> bool:
    """Whether forty characters are an AWS secret key, not a hash in hexadecimal or a path."""
    value = text[start:end]
    return (
        token(text, start, end)
        and re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", value) is None
        and entropy(value) > 3.8
        and all(character_kinds(value)[:2])
    )


_DOCUMENTED = re.compile(
    r"(?i)example|placeholder|your[_-]|your(?:api|key|token|secret|pass)|change[_-]?me|dummy|redacted"
    r"|censored|removed|hidden|x{5}|\*{3}|\.{3}|_{4}|<[^<>]*>|0{12}|^<"
    r"|\$\{|\$\(|^\$\w+$|^%\w+%$|^\$env:|\{\{.*\}\}|^\{\{|%\(|\{[a-z_][\w.!:'\[\]()]*\}"
    r"|^(?:my_?)?pass(?:word|wd)?\d{0,3}$|^(?:scram-)?sha-?\d+$"
)
"""Words, variables and templates in the place of a password."""

_NAMED = r"(?:[a-z]+|[A-Z]+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)+|[A-Z][a-z]+|v?\d{1,2})"
_NO_VALUE = re.compile(
    rf"^{_NAMED}\d{{0,2}}(?:[_/-]{_NAMED}\d{{0,2}})*(?:\.{_NAMED}\d{{0,2}}(?:_{_NAMED}\d{{0,2}})*)+$"
    r"|^[A-Z]{1,4}-\d{4}-\d\d-\d\d$|^[A-Za-z_.-]+$|^[\d.:/-]+$|^https?:|^(?:~|\.{1,2})/|^/[\w.-]*/"
    r"|^[A-Za-z_][\w.]*[(\[]|^x:\d+:|^[#.](?:[a-z]|$)|^[:&*-]\w+$|::|=>|->"
    r"|\(\?|\[\^?[a-z]-z|\[0-9\]|\\[dwsS]|\.[*{+]|\b(?:required|min|max|nullable|string|confirmed)[:|]"
)
"""Names and calls in code, paths, numbers, selectors, expressions and rules of forms."""


def password(value: str, *, quoted: bool) -> bool:
    """Whether what is assigned to a password is one, not a name, code, or prose.

    Args:
        value: the value.
        quoted: it stands between quotes or tags, so that it may hold what code is made of.
    """
    if len(set(value)) < 5 or len(value) < 6 or _DOCUMENTED.search(value) is not None:
        return False
    if _NO_VALUE.search(value) and not (quoted and _is_drawn(value)):
        return False
    lower, upper, digit, sign = character_kinds(value)
    if not quoted and re.search(r"[()\[\]{}]", value) and not (upper and lower and digit):
        return False
    if any(c.isspace() for c in value):
        return (
            upper and lower and all(re.search(r"[A-Za-z]\d|\d[A-Za-z]", w) for w in value.split())
        )
    if digit:
        kinds = lower + upper + digit + sign
        return kinds >= (2 if len(value) >= 8 else 3) and entropy(value) >= 2.5
    return (
        quoted
        and (lower and upper and re.search(r"[!@#$%^&*+=?]", value[1:-1]) is not None)
        and len(value) >= 12
        and re.search(r"(?i)pass|pwd|[a-z]\?$", value) is None
    )


def _is_drawn(value: str) -> bool:
    """Whether letters and digits alternate more than in names: ``aB3.kd9.Zz7rW``, ``/aB3kd9``."""
    turns = sum(
        a.isdigit() != b.isdigit() for a, b in pairwise(value) if a.isalnum() == b.isalnum()
    )
    return turns >= 4 and value.count("/") < 2 and re.search(r"[A-Z]", value) is not None


_NO_PASSWORD = re.compile(
    r"(?i)^(?:my[_-]?)?(?:pass(?:word|wd)?|pwd|user(?:name)?|secret|token|port|\*+|x+|root|postgres|admin|test"
    r"|guest|\$.*|%.*|:.*|\d{1,5}|[a-z_-]{1,4}|.{0,3}\{.*)$"
)


def url_password(text: str, start: int, end: int) -> bool:
    """Whether the password in an address is one, not the word that stands for it."""
    value = text[start:end]
    mixed_case = all(character_kinds(value)[:3]) and re.match(r"\d{1,5}/", value) is None
    if "/" in value and not (value.partition("/")[0] and mixed_case):
        return False  # a port and a path, as in http://host:80/a@b
    if value.startswith("'") or "'+" in value or "' " in value:
        return False  # code that joins pieces
    return _NO_PASSWORD.match(value) is None and _FILLER.search(value) is None and len(value) > 2


def jwt(text: str, start: int, end: int) -> bool:
    """Whether three parts are a JSON Web Token: its header is JSON that names an algorithm.

    Source: RFC 7519, section 3.
    """
    head = text[start:end].split(".", 1)[0]
    try:
        value = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(value, dict) and ("alg" in value or "typ" in value)
