"""Rules for secrets that do not look like one: a password in base64, words that are a key."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from adp.core.redact.passwords import matches_at
from adp.core.redact.rules import Rule

_MARK = r"(?:[ \t\r\n,;:.\"'`*|=_>-]|\\+[nrt]|\\+[\"']|\(?\d{1,2}[.):]){1,12}"
_WORD = r"[a-z]{3,8}"
_CONTEXT = (
    r"(?:[Ss]eed|SEED|[Rr]ecovery|RECOVERY|[Ss]ecret|SECRET|[Mm]nemonic|MNEMONIC|[Bb]ackup)"
    r"[ _-]{0,2}(?:[Pp]hrase|PHRASE|[Ww]ords?|WORDS?)|[Mm]nemonic|MNEMONIC"
)
_PHRASE = re.compile(rf"(?:{_CONTEXT})s?(?:[ \t]{{1,3}}(?i:is|was|are))?{_MARK}")
_NAMES = ("seed", "recovery", "secret", "mnemonic", "backup")
_WORDS = re.compile(rf"{_WORD}(?:{_MARK}{_WORD}){{11,23}}(?![A-Za-z])")
_ONE = re.compile(r"[a-z]+")

_PROSE = frozenset(
    (
        *("and", "are", "for", "from", "has", "have", "into", "its", "may", "must", "not", "our"),
        *("should", "the", "their", "them", "these", "they", "this", "was", "were", "which"),
        *("with", "you", "your"),
    )
)
"""Words of sentences that are in no list of words for phrases (BIP 39, English)."""


def find_phrases(text: str) -> Iterator[tuple[int, int]]:
    """The words behind the name of a seed phrase: 12, 15, 18, 21 or 24 of them."""
    for name in matches_at(text, text.lower(), _NAMES, _PHRASE):
        words = _WORDS.match(text, name.end())
        if words is None:
            continue
        places = [one.span() for one in _ONE.finditer(re.sub(r"\\+[nrt]", _blank, words[0]))]
        kept = [text[words.start() + start : words.start() + end] for start, end in places]
        size = max((n for n in (12, 15, 18, 21, 24) if n <= len(kept)), default=0)
        if size and not _PROSE & set(kept[:size]) and len(set(kept[:size])) > size * 2 // 3:
            yield words.start() + places[0][0], words.start() + places[size - 1][1]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def is_login(text: str, start: int, end: int) -> bool:
    """Whether a value in base64 is a user and a password."""
    try:
        plain = base64.b64decode(text[start:end], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return False
    user, colon, password = plain.partition(":")
    return bool(user and colon and len(password) >= 3) and plain.isprintable()


ENCODED = (
    Rule("docker-auth", "secrets", "User and password in base64, as Docker's config.json has them",
         r"auth\\{0,15}\"\s{0,4}:\s{0,4}\\{0,15}\"(?P<v>[0-9A-Za-z+/]{8,500}={0,2})(?=\\{0,15}\")",
         starts=('auth"', "auth\\"), check=is_login,
         source="https://docs.docker.com/reference/cli/docker/login/"),
    Rule("seed-phrase", "secrets", "Seed phrase of a wallet, behind a word that says so",
         _PHRASE.pattern, find=find_phrases, weak=True,
         gate=rf"(?:{_CONTEXT})",
         source="https://github.com/bitcoin/bips/blob/master/bip-0039.mediawiki"),
)  # fmt: skip
