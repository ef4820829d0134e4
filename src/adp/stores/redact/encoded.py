"""Rules for secrets that do not look like one: in base64, or words that are a key."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from adp.stores.redact.blob_texts import texts_of_blob
from adp.stores.redact.passwords import matches_at
from adp.stores.redact.rules import ENCODED_SECRET, Rule

_MARK = r"(?:[ \t\r\n,;:.\"'`*|=_>-]|\\+[nrt]|\\+[\"']|\(?\d{1,2}[.):]){1,12}"
_WORD = r"[a-z]{3,8}"
_CONTEXT = (
    r"(?:[Ss]eed|SEED|[Rr]ecovery|RECOVERY|[Ss]ecret|SECRET|[Mm]nemonic|MNEMONIC|[Bb]ackup)"
    r"[ _-]{0,2}(?:[Pp]hrase|PHRASE|[Ww]ords?|WORDS?)|[Mm]nemonic|MNEMONIC"
)
_PHRASE = re.compile(rf"(?:{_CONTEXT})s?(?:[ \t]{{1,3}}(?i:is|was|are))?{_MARK}")
_NAMES = ("seed", "recovery", "secret", "mnemonic", "backup")
_WORDS = re.compile(rf"{_WORD}(?:{_MARK}{_WORD}){{11,23}}(?![A-Za-z])")
_SINGLE_LINE = re.compile(r"[a-z]+")

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
        places = [
            match.span() for match in _SINGLE_LINE.finditer(re.sub(r"\\+[nrt]", _blank, words[0]))
        ]
        kept = [text[words.start() + start : words.start() + end] for start, end in places]
        size = max((n for n in (12, 15, 18, 21, 24) if n <= len(kept)), default=0)
        if size and not _PROSE & set(kept[:size]) and len(set(kept[:size])) > size * 2 // 3:
            yield words.start() + places[0][0], words.start() + places[size - 1][1]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


_LEAST = 40
"""Characters of base64 that are looked into."""

_NAMED = ("PASSWORD", "PASSWD", "SECRET", "TOKEN", "_KEY=", "APIKEY", "PRIVATE KEY")
_RUN = re.compile(r"(?:[0-9A-Za-z+/]{60,100}\r?\n){0,1000}[0-9A-Za-z+/]{1,1000000}={0,2}")


def _written(word: str) -> Iterator[str]:
    """What base64 surely writes of a word, at each of the three places where it may begin."""
    for before in range(3):
        text = base64.b64encode(b" " * before + word.encode()).decode()
        yield text[-(-8 * before // 6) : 8 * (before + len(word)) // 6]


_WRITTEN = tuple(
    sorted({item for name in _NAMED for word in (name, name.lower()) for item in _written(word)})
)


_PNG = "iVBORw0KGgo"
"""How a PNG file begins in base64."""


def find_encoded(text: str, holds_secret: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Base64 of a text, such as a file of settings, that holds a secret.

    Of a PNG file, the texts beside the picture are looked at.

    Args:
        text: where to look.
        holds_secret: whether another rule finds a secret in a text.
    """
    for run in _RUN.finditer(text):
        letters = "".join(run[0].rstrip("=").split())
        if len(letters) >= _LEAST and any(holds_secret(plain) for plain in _plain(letters)):
            yield run.span()


def _plain(letters: str) -> Iterator[str]:
    """The texts that base64 stands for."""
    if letters.startswith(_PNG):
        data = base64.b64decode(letters[: len(letters) & ~3])
        yield from (part.text for part in texts_of_blob(data, None))
    elif any(word in letters for word in _WRITTEN):
        yield next(filter(None, (_text_of(letters[start:]) for start in range(4))), "")


def _text_of(letters: str) -> str:
    """The text that base64 stands for; empty when it is none."""
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    try:
        plain = base64.b64decode(letters + "=" * (-len(letters) % 4)).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return plain if all(sign.isprintable() or sign in "\r\n\t" for sign in plain) else ""


def is_login(text: str, start: int, end: int) -> bool:
    """Whether a value in base64 is a user and a password."""
    try:
        plain = base64.b64decode(text[start:end], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return False
    user, colon, password = plain.partition(":")
    return bool(user and colon and len(password) >= 3) and plain.isprintable()


def encoded_rules(find: Callable[[str], Iterator[tuple[int, int]]]) -> tuple[Rule, ...]:
    """The rules of this module.

    Args:
        find: `find_encoded` with the rules that find secrets.
    """
    return (
        Rule("docker-auth", "secrets",
             "User and password in base64, as Docker's config.json has them",
             r"auth\\{0,15}\"\s{0,4}:\s{0,4}\\{0,15}\"(?P<v>[0-9A-Za-z+/]{8,500}={0,2})(?=\\{0,15}\")",
             starts=('auth"', "auth\\"), check=is_login,
             source="https://docs.docker.com/reference/cli/docker/login/"),
        Rule(ENCODED_SECRET, "secrets",
             "Base64 of a text, such as an .env file, that names a secret and holds one; of a PNG "
             "file with such a text beside the picture",
             _RUN.pattern, find=find, starts=(_PNG, *_WRITTEN),
             source="https://www.rfc-editor.org/rfc/rfc4648#section-4"),
        Rule("seed-phrase", "secrets", "Seed phrase of a wallet, behind a word that says so",
             _PHRASE.pattern, find=find_phrases, weak=True,
             gate=rf"(?:{_CONTEXT})",
             source="https://github.com/bitcoin/bips/blob/master/bip-0039.mediawiki"),
    )  # fmt: skip
