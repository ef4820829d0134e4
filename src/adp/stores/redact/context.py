"""Rules for secrets that go by the name beside them; see `adp.stores.redact.secrets`.

A name says that a secret may come, the value whether one does: it has letters and digits that look
drawn by chance, and is none of the words, placeholders and code that stand there in examples.
"""

from __future__ import annotations

import re

from adp.stores.redact import validity
from adp.stores.redact.rules import RIGHT, Rule

_NO_SECRET = re.compile(
    r"(?i)(?:page|next|prev(?:ious)?|continuation|cursor|c[sr]rf|xsrf|sync|resume|pad|eos|bos|unk|sep"
    r"|cls|mask|special|stop|start|end|num|max|min|total|input|output|prompt|completion|image|system"
    r"|public|publishable|site|placeholder|example|dummy|fake|mock)"
    r"[_-]?(?:page)?[_-]?(?:api)?[_-]?(?:token|key|secret)[^0-9A-Za-z]{1,16}(?:value\W{1,8})?$"
)
"""Names of tokens and keys that open nothing: pages, cursors, words of a tokenizer."""

_PUBLIC = re.compile(r"0x[0-9a-fA-F]{40}|0x[0-9a-fA-F]{1,16}")
"""An address of a contract or a number."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _named(text: str, start: int, end: int) -> bool:
    """Whether what stands beside the name of a secret is one."""
    value = text[start:end]
    if _NO_SECRET.search(text, max(0, start - 60), start) or _PUBLIC.fullmatch(value):
        return False
    return validity.long_assigned(text, start, end)


def _queried(text: str, start: int, end: int) -> bool:
    """The same for a part of an address, where ids look like keys."""
    return _UUID.fullmatch(text[start:end]) is None and _named(text, start, end)


def _hashed(text: str, start: int, end: int) -> bool:
    return validity.token(text, start, end) and validity.entropy(text[start:end]) > 3.5


_V = r"(?P<v>[0-9A-Za-z_.~+/=:@$!%^*-]{16,500})"
_Q = r"[\"'\\]{0,4}"
_KEY = (
    r"(?:secret|token|credential|apikey|_pat|\bpat|(?:api|app|auth|access|account|encryption|signing"
    r"|private|hmac|deploy|license|master|storage|session|jwt|admin|webhook|subscription"
    r"|authorization|service|secret)[_ -]?key)"
)
_NAME = rf"(?i:{_KEY}(?:_base)?)"
_IS = (
    rf"(?:{_Q}[)\]]?[ \t]{{0,8}}(?::=|=>?|:)[ \t]{{0,4}}{_Q}|[\"'\\]{{0,3}},\s{{0,2}}[\"'\\]{{1,3}}"
    r"|>| (?:is|was):? [\"'`]?)"
)
_VALUE_OF = rf"{_Q}\s?,?\s{{0,24}}{_Q}(?i:value){_Q}\s?[:=]\s?{_Q}"
_COOKIE = (
    r"(?i:(?:cookie[\"'\\]{0,3}[:=,]\s?[^\r\n]{0,200}?\b(?:\w{0,20}sess\w{0,12}|\w{0,12}auth\w{0,12}"
    r"|sid|token|jwt)|sessionid|phpsessid|jsessionid|connect\.sid)=)"
)
_QUERY = r"[?&;](?i:[\w.-]{0,30}(?:token|key|secret|signature|sig|auth))="

_GATE = (
    r"(?i:secret(?:_base)?|token|credential|key(?:_base)?|pat|signature|sig|auth\w{0,12}|sess\w{0,12}"
    r"|sid|jwt|_base|authorization)"
    r"[\"'\\)\]>,:= \t\r\n]{1,36}"
    r"(?i:(?:value|is|was|:|apikey|api-key|key)[\"'\\:= `]{1,8})?[0-9A-Za-z_.~+/=:@$!%^*-]{16}"
)
"""What all of these rules have in common, so that a text is looked through once for them."""


_KEY_WORDS = ("secret", "token", "credential", "apikey", "pat", "key")
"""One of these is in each name, not far from its beginning."""

_COOKIE_WORDS = ("cookie", "sessid", "sessionid", "connect.sid")


def _rule(
    what: str,
    pattern: str,
    *,
    query: bool = False,
    kind: str = "assigned-key",
    near: tuple[str, ...] = (),
) -> Rule:
    check = _queried if query else _named
    return Rule(
        kind, "secrets", what, pattern, gate=_GATE, check=check, weak=True,
        near=near, back=20 if near else 0, ahead=1100,
    )  # fmt: skip


CONTEXT = (
    _rule("What is assigned to an API key, a token or a secret", rf"{_NAME}{_IS}{_V}",
          near=_KEY_WORDS),
    _rule("A value beside the name of a key: {name: API_KEY, value: ...}",
          rf"{_NAME}{_VALUE_OF}{_V}", near=_KEY_WORDS),
    _rule("A key in a command: --api-key ..., ENV API_KEY ..., setx API_KEY ...",
          rf"(?:--[A-Za-z-]{{0,24}}|\b(?:setx|SETX|ENV|set -g?U?x) {{1,4}}\w{{0,40}}){_NAME}"
          rf"[ \t]{{1,4}}{_Q}{_V}"),
    _rule("A key in an address: ?token=...",
          rf"{_QUERY}(?P<v>(?:[0-9A-Za-z_.~+/=:-]|%[0-9A-Fa-f]{{2}}){{16,500}})", query=True),
    _rule("Value of an Authorization header",
          rf"(?i:authorization){_IS}(?:(?i:apikey|api-key|key) )?{_V}", kind="authorization"),
    _rule("Cookie of a session", rf"{_COOKIE}{_V}", kind="session-cookie",
          near=_COOKIE_WORDS),
    Rule("kaggle-key", "secrets", "Kaggle API key in kaggle.json",
         r"username[\"'\\]{1,4}\s?:\s?[\"'\\]{1,4}[\w.-]{1,64}[\"'\\]{1,4},\s{0,8}[\"'\\]{1,4}key"
         rf"[\"'\\]{{1,4}}\s?:\s?[\"'\\]{{1,4}}(?P<v>[0-9a-f]{{32}}){RIGHT}",
         gate=_GATE, check=validity.token, source="https://www.kaggle.com/docs/api"),
    Rule("password-hash", "secrets", "Hash of a password, as in /etc/shadow",
         r"\$(?:(?:5|6)\$(?:rounds=\d{1,9}\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{43,86}"
         r"|g?y\$[./0-9A-Za-z]{1,12}\$[./0-9A-Za-z]{1,86}\$[./0-9A-Za-z]{43}"
         r"|(?:1|apr1)\$[./0-9A-Za-z]{1,8}\$[./0-9A-Za-z]{22})(?![./0-9A-Za-z])",
         ("$5$", "$6$", "$y$", "$gy$", "$1$", "$apr1$"), check=_hashed,
         source="https://man7.org/linux/man-pages/man5/crypt.5.html"),
)  # fmt: skip
