"""Private keys are found in the layouts in which agents see them."""

from __future__ import annotations

import json
import time
import urllib.parse

import pytest

from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.options import RedactOptions
from adp.stores.redact.rules import placeholder
from tests.stores.redact.planted import ALNUM, HEX, _draw

FINDER = ValueFinder(RedactOptions(kinds=("private-key",), user=((), ())).rules())
LINES = [_draw(f"layout{n}", 64, ALNUM + "+/") for n in range(12)] + ["q7Zx" + "=="]
KEY = ["-----BEGIN RSA PRIVATE" + " KEY-----", *LINES, "-----END RSA PRIVATE" + " KEY-----"]
PLACE = placeholder("private-key")


def numbered(pattern: str) -> str:
    return "\n".join(pattern.format(n, line) for n, line in enumerate(KEY, 1))


LAYOUTS = {
    "plain": "\n".join(KEY),
    "windows": "\r\n".join(KEY),
    "escaped": "\\n".join(KEY),
    "twice": "\\\\n".join(KEY),
    "blanks": " ".join(KEY),
    "indented": numbered("    {1}"),
    "tab": numbered("{:6}\t{}"),
    "arrow": numbered("{:6}\u2192{}"),
    "bar": numbered("{:4} | {}"),
    "colon": numbered("{}:{}"),
    "colon and blank": numbered("{}: {}"),
    "diff": numbered("+{1}"),
    "quoted": numbered("> {1}"),
    "shell comment": numbered("# {1}"),
    "block comment": numbered(" * {1}"),
    "line comment": numbered("// {1}"),
    "python": numbered('    "{1}\\n"'),
    "javascript": " +\n".join(f"'{line}\\n'" for line in KEY),
    "java": " +\n".join(f'"{line}\\n"' for line in KEY),
    "list": json.dumps(KEY, indent=1),
    "break": "<br>".join(KEY),
    "entity": "&#10;".join(KEY),
    "colours": "\n".join(f"\x1b[32m{line}\x1b[0m" for line in KEY),
    "address": urllib.parse.quote("\n".join(KEY)),
    "form": urllib.parse.quote_plus("\n".join(KEY)),
    "PHP": json.dumps("\n".join(KEY)).replace("/", "\\/"),
    "PGP": "\n".join(
        ["-----BEGIN PGP PRIVATE" + " KEY BLOCK-----", "Version: GnuPG v2",
         "Comment: Ada <ada@b.org>: mine", "", *LINES, "=a1Bc",
         "-----END PGP PRIVATE" + " KEY BLOCK-----"]
    ),
    "encrypted": "\n".join(
        [KEY[0], "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC," + _draw("iv", 32, HEX).upper(),
         "", *KEY[1:]]
    ),
    "SSH2": "\n".join(
        ["---- BEGIN SSH2 ENCRYPTED PRIVATE" + " KEY ----", 'Comment: "a key"', *LINES,
         "---- END SSH2 ENCRYPTED PRIVATE" + " KEY ----"]
    ),
    "PuTTY": "\n".join(
        ["PuTTY-User-Key-File-3: ssh-rsa", "Encryption: none", "Comment: mine",
         "Private-Lines: 13", *LINES, "Private-MAC: " + _draw("mac", 64, HEX)]
    ),
    "without end": "\n".join(KEY[:6]),
    "numbers, without end": "\n".join(numbered("{:6}\u2192{}").split("\n")[:6]),
    "cut in a line": "\n".join(KEY[:6])[:-40],
}  # fmt: skip


def pieces(text: str) -> set[str]:
    """Runs of eight characters of the key."""
    text = urllib.parse.unquote(text).replace("\\/", "/")
    return {
        line[n : n + 8] for line in LINES[:-1] for n in range(0, 57, 8) if line[n : n + 8] in text
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_key_is_found_in_every_layout(layout):
    text = f"$ cat key\n{LAYOUTS[layout]}\nDone in 3 s.\n"
    assert len(pieces(text)) > 30
    for depth in range(4):
        (cleaned,) = FINDER.texts([text], is_json=depth > 0)
        assert cleaned is not None
        assert pieces(cleaned.text) == set()
        assert PLACE in cleaned.text
        inner = cleaned.text
        for _ in range(depth):
            inner = json.loads(inner)
        assert inner.startswith("$ cat key\n")
        assert inner.endswith("\nDone in 3 s.\n")
        assert FINDER.texts([cleaned.text], is_json=depth > 0) == [None]
        text = json.dumps(text)


def test_lines_between_quotes_are_replaced_one_by_one():
    cleaned = FINDER.text(LAYOUTS["java"])
    assert cleaned is not None
    expected = LAYOUTS["java"]
    for line in LINES:
        expected = expected.replace(line, PLACE)
    assert cleaned.text == expected
    (cleaned,) = FINDER.texts([LAYOUTS["list"]], is_json=True)
    assert cleaned is not None
    assert json.loads(cleaned.text) == [KEY[0], *[PLACE] * len(LINES), KEY[-1]]


def test_keys_of_other_kinds():
    secret = _draw("jwk", 86)
    public = _draw("public", 86)
    jwk = {"kty": "RSA", "n": public, "d": secret, "p": _draw("p", 80), "key_ops": ["sign"]}
    for text in (json.dumps(jwk), json.dumps(json.dumps({"a": [jwk]})), repr(jwk)):
        cleaned = FINDER.text(text)
        assert cleaned is not None
        assert secret not in cleaned.text
        assert public in cleaned.text
    wire = _draw("wire", 43, ALNUM + "+/") + "="
    cleaned = FINDER.text(f"[Interface]\nPrivateKey = {wire}\n[Peer]\nPublicKey = {wire}\n")
    assert cleaned is not None
    assert cleaned.text == f"[Interface]\nPrivateKey = {PLACE}\n[Peer]\nPublicKey = {wire}\n"


NONE = [
    'if "-----BEGIN PRIVATE KEY-----" in text and "-----END PRIVATE KEY-----" in text: pass',
    "-----BEGIN RSA PRIVATE KEY-----\nsee src/main/java/com/acme/security/KeyLoaderFactory2.java",
    "re.compile(r'-----BEGIN (RSA )?PRIVATE KEY-----[A-Za-z0-9+/=\\s]+-----END PRIVATE KEY-----')",
    "-----BEGIN PRIVATE KEY-----\nMIIE...\n-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n" + "# a long comment about it\n" * 40 + KEY[-1],
    "-----BEGIN PUBLIC KEY-----\n" + "\n".join(LINES) + "\n-----END PUBLIC KEY-----",
    "-----BEGIN PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\n" + "\n".join(LINES),
    json.dumps({"kty": "RSA", "n": _draw("n", 86), "e": "AQAB"}),
]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_key(text):
    assert FINDER.text(text) is None


@pytest.mark.parametrize(
    "piece",
    [KEY[0] + "\n", KEY[0] + "\n" + "a" * 50, "Private-Lines: 3\n", '{"kty"', "A1b" * 30 + '"',
     KEY[0] + '"' * 30 + KEY[-1], KEY[0] + "\nComment: a\n" * 3, KEY[0] + "nr:" * 20],
)  # fmt: skip
def test_hostile_texts_take_little_time(piece):
    start = time.process_time()
    FINDER.texts([piece * (1_000_000 // len(piece)), KEY[0] + piece * (1_000_000 // len(piece))])
    assert time.process_time() - start < 6


def test_what_stands_after_a_cut_key_stays():
    words = ["exit", "status:", "0", "total", "12", "drwxr-xr-x", "root", "Makefile", "README.md"]
    for word in words:
        cleaned = FINDER.text("\n".join([*KEY[:5], word, "end"]))
        assert cleaned is not None
        assert cleaned.text == f"{PLACE}\n{word}\nend"
