"""Tools that ask an HTTP server, from a configuration.

    {"name": "stock", "type": "api", "url": "https://api.example.com/stock/{symbol}",
     "method": "GET", "headers": {"Authorization": "Bearer ${STOCK_TOKEN}"}, "parameters": {...}}

``{symbol}`` in the path or the query is an argument, quoted so that it cannot be more than one part
of the path. Arguments that the address does not name go to the query (GET) or are the JSON body
(POST). ``${STOCK_TOKEN}`` in a header is an environment variable; its value is taken out of what
the agent reads. The host is fixed: redirects to another one are not followed, proxies of the
environment are not used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from pydantic import Field

from adp.core.json_values import json_or_none
from adp.rollouts.environments.configured_command import PLACE, ToolEntry, word_of
from adp.rollouts.environments.http_request import HttpRequest, ask, refusal
from adp.rollouts.environments.variables import expanded, variables_of
from adp.rollouts.tools import ToolError
from adp.rollouts.turns import ErrorType, Result
from adp_schema.errors import UsageError

_SHORTEST_SECRET = 4
"""Characters from which on the value of a variable is taken out of what the agent reads."""


class ApiEntry(ToolEntry):
    """A tool that asks an HTTP server."""

    type: Literal["api"]
    url: str
    """Address; {name} in its path or query is an argument."""
    method: Literal["GET", "POST"] = "POST"
    """GET or POST."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers; ${NAME} is an environment variable."""
    timeout: float = Field(default=30.0, gt=0)
    """Seconds that a call may take."""
    longest: int = Field(default=100_000, ge=1)
    """Bytes that an answer may have."""

    def check(self) -> None:
        """Check the address and the headers.

        Raises:
            UsageError: the address is none of HTTP, its host is not fixed, it names an argument
                that the tool does not have, or an environment variable is not set.
        """
        try:
            parts = urlsplit(self.url)
            bad = parts.scheme not in ("http", "https") or not parts.hostname
        except ValueError:
            bad = True
        if bad or PLACE.search(parts.netloc) or PLACE.search(parts.fragment):
            raise UsageError(
                f"the tool '{self.name}' needs a url that begins with http:// or https:// and a "
                "host; arguments may stand in its path and its query"
            )
        unknown = sorted(set(PLACE.findall(self.url)) - self.known)
        if unknown:
            raise UsageError(
                f"the url of the tool '{self.name}' names '{unknown[0]}', no parameter"
            )
        for value in self.headers.values():
            expanded(value)

    def run(self, **arguments: Any) -> Result:
        """Ask the server.

        Raises:
            ToolError: it cannot be asked like this, it refuses, fails or takes too long.
        """
        url, body = self.address(arguments)
        headers = {name: expanded(value) for name, value in self.headers.items()}
        content = None
        if body is not None:
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            content = text.encode("utf-8")
            headers = {"Content-Type": "application/json", **headers}
        request = HttpRequest(self.method, url, headers, content)
        answer = ask(request, timeout=self.timeout, longest=self.longest, quiet=self._quiet)
        text = self._quiet(answer.text)
        if answer.status >= 400:
            raise refusal(answer.status, text)
        return Result(text=text, structured=json_or_none(text))

    def address(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """The address of a call, and its JSON body; None without one.

        Raises:
            ToolError: an argument would be ``.`` or ``..`` in the path.
        """
        named = set(PLACE.findall(self.url))
        for name in named:
            if word_of(arguments.get(name)) in (".", ".."):
                raise ToolError(f"'{name}' must not be . or ..", ErrorType.INVALID_ARGS)
        parts = urlsplit(
            PLACE.sub(lambda item: quote(word_of(arguments.get(item[1])), safe=""), self.url)
        )
        rest = {name: value for name, value in arguments.items() if name not in named}
        if self.method == "POST":
            return parts.geturl(), rest
        words = {
            name: [word_of(item) for item in value] if isinstance(value, list) else word_of(value)
            for name, value in rest.items()
        }
        query = "&".join(filter(None, (parts.query, urlencode(words, doseq=True))))
        return urlunsplit(parts._replace(query=query)), None

    def _quiet(self, text: str) -> str:
        """A text without the values of the variables that the headers name."""
        for header in self.headers.values():
            for name in variables_of(header):
                value = expanded(f"${{{name}}}")
                if len(value) >= _SHORTEST_SECRET:
                    text = text.replace(value, f"[{name}]")
        return text
