"""Which servers may be asked, and with which credentials.

A file of somebody else names servers and ways to sign in; the user alone says which hosts are asked
and which environment variable is sent where. A name that leads to a private address is not
followed, unless that address was named, too.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from adp.rollouts.endpoint.masking import SecretMask
from adp.rollouts.endpoint.settings import key_from
from adp.rollouts.environments.http_request import AddressCheck, ServerUnreachableError
from adp.rollouts.environments.openapi.document import ApiDocument, OperationError
from adp.rollouts.environments.openapi.operations import ApiOperation
from adp.rollouts.environments.openapi.request import RequestParts
from adp_schema.errors import UsageError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Scheme:
    """A way to sign in.

    Attributes:
        kind: where the credential goes; ``unknown``: it is not supported.
        name: of the header, the parameter or the cookie; of an unknown one, its type.
    """

    kind: Literal["header", "query", "cookie", "bearer", "basic", "unknown"]
    name: str = ""


def read_schemes(document: ApiDocument) -> dict[str, Scheme]:
    """The ways to sign in that a document knows, by name."""
    root = document.root
    components = root.get("components")
    given = root.get("securityDefinitions") if document.is_swagger else None
    if isinstance(components, Mapping):
        given = components.get("securitySchemes")
    results = {}
    for name, entry in given.items() if isinstance(given, Mapping) else ():
        try:
            value, _ = document.follow(entry, "$")
        except OperationError:
            value = None
        results[name] = _scheme(value if isinstance(value, Mapping) else {})
    return results


def _scheme(given: Mapping[str, Any]) -> Scheme:
    kind, name, where = given.get("type"), given.get("name"), given.get("in")
    words = str(given.get("scheme", "")).lower()
    if kind == "apiKey" and isinstance(name, str) and _NAME.fullmatch(name):
        if where in ("header", "query", "cookie"):
            return Scheme(where, name)
    elif kind in ("oauth2", "openIdConnect") or (kind == "http" and words == "bearer"):
        return Scheme("bearer")
    elif kind == "basic" or (kind == "http" and words == "basic"):
        return Scheme("basic")
    return Scheme("unknown", f"{kind} {words}".strip()[:40])


class Credentials:
    """The credentials of a run.

    Args:
        schemes: the ways to sign in.
        variables: environment variable of each; None sends nothing.
        is_live: whether they are read; else nothing is asked.

    Attributes:
        mask: hides them.

    Raises:
        UsageError: the document does not know one, or a variable is not set.
    """

    def __init__(
        self, schemes: Mapping[str, Scheme], variables: Mapping[str, str | None], is_live: bool
    ) -> None:
        unknown = sorted(set(variables) - set(schemes))
        if unknown:
            known = ", ".join(sorted(schemes)) or "none"
            raise UsageError(
                f"auth_env names '{unknown[0]}', no security scheme of the file; it has: {known}"
            )
        self._schemes, self._variables = schemes, variables
        self._values = {
            name: key_from(variable)
            for name, variable in variables.items()
            if is_live and variable is not None
        }
        texts: list[str] = []
        for name, value in self._values.items():
            texts += [value, json.dumps(value)[1:-1], quote(value)]
            if schemes[name].kind == "basic":
                texts += [_basic(value), value.partition(":")[2]]
        self.mask = SecretMask(texts)

    def chosen(self, security: Sequence[Sequence[str]]) -> Sequence[str] | str:
        """The schemes that an operation is called with; or why it cannot be called."""
        reasons = []
        for requirement in security:
            missing = next(filter(None, map(self._missing, requirement)), None)
            if missing is None:
                return requirement
            reasons.append(missing)
        return reasons[0] if reasons else ()

    def _missing(self, name: str) -> str | None:
        if name not in self._schemes:
            return f"it needs the security scheme '{name}', which the file does not have"
        if name not in self._variables:
            return (
                f"it needs the security scheme '{name}': auth_env={{{name}: VARIABLE}} names the "
                "environment variable, and null calls it without"
            )
        scheme = self._schemes[name]
        if scheme.kind == "unknown" and self._variables[name] is not None:
            return f"the security scheme '{name}' is of a type that is not supported: {scheme.name}"
        return None

    def add(self, parts: RequestParts, requirement: Sequence[str]) -> None:
        """Put credentials into a request."""
        for name in requirement:
            value = self._values.get(name)
            if value is None:
                continue
            scheme = self._schemes[name]
            if scheme.kind == "query":
                wire = quote(scheme.name, safe="")
                parts.query[:] = [pair for pair in parts.query if not pair.startswith(f"{wire}=")]
                parts.query.append(f"{wire}={quote(value, safe='')}")
            elif scheme.kind == "cookie":
                parts.cookies.append(f"{scheme.name}={quote(value, safe='')}")
            else:
                header = scheme.name if scheme.kind == "header" else "Authorization"
                text = {"bearer": f"Bearer {value}", "basic": f"Basic {_basic(value)}"}
                parts.headers = {
                    key: before
                    for key, before in parts.headers.items()
                    if key.lower() != header.lower()
                }
                parts.headers[header] = text.get(scheme.kind, value)


def _basic(value: str) -> str:
    return base64.b64encode(value.encode("utf-8")).decode("ascii")


class Hosts:
    """The hosts that the user names.

    Args:
        named: hosts, with a port where only that one is meant; addresses; networks such as
            ``10.0.0.0/8``.
        server: address that stands for all servers of the file.

    Attributes:
        server: the same.

    Raises:
        UsageError: the address is none, or holds a password.
    """

    def __init__(self, named: Sequence[str], server: str | None) -> None:
        self.server = None if server is None else checked_address(server)
        entries = [str(urlsplit(self.server).hostname)] if self.server else []
        self._names = {entry.strip("[]").lower().rstrip(".") for entry in [*entries, *named]}
        self._networks = []
        for name in self._names:
            try:
                self._networks.append(ipaddress.ip_network(name, strict=False))
            except ValueError:
                continue

    def base(self, operation: ApiOperation, document: ApiDocument) -> str:
        """The server of an operation.

        Raises:
            OperationError: there is none that may be asked.
        """
        if self.server is not None:
            return self.server
        url = swagger_server(document.root) if document.is_swagger else _first(operation.servers)
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower().rstrip("."), parts.port
            right = parts.scheme in ("http", "https") and bool(host) and "@" not in parts.netloc
        except ValueError:
            right, host, port = False, "", None
        if not right:
            raise OperationError(
                f"the file names no server for it, but '{url[:100]}': server=URL names one",
                operation.place,
            )
        if host not in self._names and f"{host}:{port}" not in self._names:
            raise OperationError(
                f"its server is {host[:100]}, which was not named: hosts=[{host[:100]}] allows it",
                operation.place,
            )
        return url

    def check(self) -> AddressCheck:
        """A check of the addresses that a name leads to."""

        def check(host: str, address: str) -> None:
            ip = ipaddress.ip_address(address.partition("%")[0])
            mapped = getattr(ip, "ipv4_mapped", None)
            ip = mapped or ip
            if ip.is_global and not ip.is_multicast:
                return
            if ip.is_loopback and host == "localhost" and "localhost" in self._names:
                return
            if not any(ip in network for network in self._networks):
                raise ServerUnreachableError(
                    f"{host} leads to the private address {ip}, which was not named: "
                    f"hosts=[{ip}] allows it"
                )

        return check


def checked_address(url: str) -> str:
    """The address of a server.

    Raises:
        UsageError: it is none, or holds a password.
    """
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    if not right or parts.query or parts.fragment:
        raise UsageError(f"server '{url[:100]}' is no address such as https://api.example.com/v1")
    if parts.username or parts.password:
        raise UsageError("server holds a password; put it into a variable, and name it in auth_env")
    return url.rstrip("/")


def swagger_server(root: Mapping[str, Any]) -> str:
    """The server of a document of Swagger 2.0; by https where it can be."""
    schemes = root.get("schemes")
    listed = schemes if isinstance(schemes, list) else ["https"]
    scheme = "https" if "https" in listed or not listed else listed[0]
    return f"{scheme}://{root.get('host') or ''}{root.get('basePath') or ''}".rstrip("/")


def _first(servers: Any) -> str:
    """The first server of a list, its variables with their defaults."""
    first = servers[0] if isinstance(servers, list) and servers else {}
    url = first.get("url", "") if isinstance(first, Mapping) else ""
    variables = first.get("variables") if isinstance(first, Mapping) else None

    def value(item: re.Match[str]) -> str:
        about = variables.get(item[1]) if isinstance(variables, Mapping) else None
        return str(about.get("default", "")) if isinstance(about, Mapping) else item[0]

    return _VARIABLE.sub(value, str(url)).rstrip("/")
