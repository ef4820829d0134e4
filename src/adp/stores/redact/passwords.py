"""Rules for passwords, which go by the words around them.

A value between quotes goes to the quote that closes it; another one to white space, or to the end
of its part of an address or a list. A name in code, a variable, a path or prose is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from adp.stores.redact import validity
from adp.stores.redact.rules import Rule

_WORD = re.compile(
    r"(?i:passw(?:or)?d|passwort|passphrase|pwd|(?<![a-z])pass(?![a-z]))|(?<=[a-z])Pass(?![a-z])"
)
_SEPARATOR = re.compile(
    r"""[0-9]?[\\"'`*\])!?]{0,40}[ \t]{0,4}(?:!?:[ \t]?(?:str|string)[ \t]?(?==))?"""
    r"""(?P<sign>:=|=>|=(?!=)|:(?!:)|[>,])\*{0,2}[ \t]{0,4}(?:\r?(?:\n|\\+n)[ \t]{1,12})?"""
)
_OPTION = re.compile(r"(?:^|[\s\"'])--[\w-]{0,24}$")
"""Before the name of an option of a command, as in ``--db-password x``."""

_QUOTED = re.compile(
    r"""[bBfFrRuU]{0,2}\\{0,31}(?:"(?P<a>[^"\r\n]{1,200})(?=")|'(?P<b>[^"'\r\n]{1,200})(?=['"])"""
    r"""|`(?P<c>[^"`\r\n]{1,200})(?=[`"]))"""
)
_PLAIN = re.compile(r"""[^\s"'`<>\\]{6,200}""")
_ENDS = {"?": "[&#]", "&": "[&#]", ";": ";"} | dict.fromkeys(",([{", r"[,)\]};]")
"""What ends a value, by the sign before its name."""

_MIXED = re.compile("[A-Z].*[0-9]|[0-9].*[A-Z]")
"""What the entry after a name in a list must hold, as most are names themselves."""

_AGAIN = re.compile(r"(?i)(?:passw(?:or)?d|pwd|pass)[=:]")

_OPENS = {")": "(", "]": "[", "}": "{"}

_STATED = re.compile(
    r"""(?i:passw(?:or)?d|passphrase|passcode)s?\b[^\n.:="'`]{0,30}?"""
    r"""[ \t](?i:is|was|to)\b:?[ \t]{1,3}"""
    r"""\\{0,15}["'`*]{0,2}(?P<v>[^\s"'`*<>\\]{6,100})"""
)
"""Prose: my password is ...; the password for the wiki was ..."""

_GAP = r"(?:[ \t\r\n]|\\[rnt]){1,16}"
_COMMAND = re.compile(
    r"""\bmysql(?:dump|admin|import|show)?\b[^\n|;&"]{0,100}? -p|\bsshpass -p ?"""
    r"""|\bdocker login\b[^\n|;&"]{0,100}? -p |(?i:\bidentified by )(?=\\{0,31}['"])"""
    rf"""|\blogin{_GAP}[^\s"\\]{{1,64}}{_GAP}password[ \t]{{1,4}}|\bPASSWORD (?=')"""
)
_COMMANDS = ("mysql", "sshpass", "docker login", "identified by ", "login", "password ")
_CURL = re.compile(
    r"""\bcurl\b[^\n|;&]{0,160}? (?:-u ?|--user[ =])\\{0,31}(?P<q>["']?)[^\s:"'\\]{1,64}:"""
    r"""(?P<v>[^\s"'\\]{1,200})"""
)
_BEGINS = r"(?i:passw|passphrase|passcode|pwd|pass[0-9]?[\\\"'`*\])!?]{0,40}[ \t]{0,4}[:=,>])"


def find_passwords(text: str) -> Iterator[tuple[int, int]]:
    """What is assigned to a password, or given to a command as one."""
    low = text.lower()
    for word in matches_at(text, low, ("pass", "pwd"), _WORD):
        between = _SEPARATOR.match(text, word.end())
        head = text[max(0, word.start() - 40) : word.start()]
        if between is not None:
            yield from _value(text, between.end(), _sign(head), between["sign"])
        elif text[word.end() : word.end() + 1] == " " and _OPTION.search(head):
            yield from _value(text, word.end() + 1, "", " ")
    for command in matches_at(text, low, _COMMANDS, _COMMAND):
        yield from _value(text, command.end(), "", " ")
    for keyword in matches_at(text, low, ("passw", "passp", "passc"), _STATED):
        start, end = keyword.span("v")
        end = start + len(text[start:end].rstrip(".,;:!?)"))
        if end - start >= 6 and validity.assigned(text, start, end):
            yield start, end
    for command in matches_at(text, low, ("curl",), _CURL):
        if validity.password(command["v"], quoted=bool(command["q"])):
            yield command.span("v")


def matches_at(
    text: str, low: str, words: tuple[str, ...], pattern: re.Pattern[str]
) -> Iterator[re.Match[str]]:
    """Matches that begin with one of some words, whatever its case; much faster than a search.

    Args:
        text: the text.
        low: the text in small letters.
        words: the words, in small letters.
        pattern: what is tried where one of them stands.
    """
    if len(low) != len(text):
        yield from pattern.finditer(text)
        return
    for word in words:
        place = low.find(word)
        while place >= 0:
            if (match := pattern.match(text, place)) is not None:
                yield match
            place = low.find(word, place + len(word))


def _sign(head: str) -> str:
    """The sign before the name whose end a word is, as in ``?db_password``."""
    return re.sub(r"[\w.-]+$", "", head.rstrip("\"'\\")).rstrip("\"'\\ ")[-1:]


def _value(text: str, place: int, before: str, sign: str) -> Iterator[tuple[int, int]]:
    """The value that begins at a place, if it is one.

    Args:
        text: the text.
        place: where it begins, with its quote.
        before: the sign before the name.
        sign: the one after it.
    """
    quoted = None if sign == ">" else _QUOTED.match(text, place)
    if quoted is not None:
        start, end = quoted.span(quoted.lastgroup or 0)
        end = start + len(text[start:end].rstrip("\\"))
        value = text[start:end]
        listed = sign == "," and not (_MIXED.search(value) and "\n" not in text[place - 14 : place])
        if validity.password(value, quoted=True) and not listed:
            yield start, end
        return
    cut = re.compile(r"""\\{0,31}["'`][^\s"'`<>\\]{6,200}$""").match(text, place)
    place = cut.end() - len(cut[0].lstrip("\\\"'`")) if cut else place
    plain = _PLAIN.match(text, place)
    if plain is None or sign == "," or (sign == ">" and not text.startswith("</", plain.end())):
        return
    if _AGAIN.search(plain[0]) is not None:
        return  # the word comes again, and is tried there
    value = re.split(_ENDS[before], plain[0], maxsplit=1)[0] if before in _ENDS else plain[0]
    while value and (value[-1] in ",;:." or _is_closing(value)):
        value = value[:-1]
    if validity.password(value, quoted=sign == ">"):
        yield place, place + len(value)


def _is_closing(value: str) -> bool:
    """Whether the last sign closes a bracket that the value did not open."""
    opens = _OPENS.get(value[-1])
    return opens is not None and value.count(value[-1]) > value.count(opens)


PASSWORDS = (
    Rule("password", "secrets", "What is assigned to a password, or given to a command as one",
         _WORD.pattern, find=find_passwords, weak=True,
         gate=rf"{_BEGINS}|mysql.{{0,120}} -p|sshpass -p|docker login|curl.{{0,170}} (?:-u|--user)"
         r"|(?i:identified by)"),
)  # fmt: skip
