"""Values are found through colours, signs without a width and line wraps, and nothing more is."""

from __future__ import annotations

import base64
import json

import pytest

from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.options import RedactOptions
from adp.stores.redact.rules import placeholder
from tests.stores.redact import planted

FINDER = ValueFinder(RedactOptions(kinds=("secrets", "email", "phone")).rules())
KEYS = [pair for pair in planted.plain("7") if len(pair[1]) >= 24]

NOISE = {
    "colour": "\x1b[31m",
    "colours": "\x1b[0m\x1b[1;38;5;196m",
    "link": "\x1b]8;;\x07",
    "zero width": "\u200b",
    "joiner": "\u2060",
    "soft hyphen": "\u00ad",
    "mark of order": "\ufeff",
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_signs_inside_a_key_do_not_hide_it(noise: str, share: float) -> None:
    assert len(KEYS) > 20
    for kind, value in KEYS:
        cut = int(len(value) * share)
        head, tail = value[:cut], value[cut:]
        cleaned = FINDER.text(f"key: {head}{noise}{tail} end")
        assert cleaned is not None, kind
        assert tail not in cleaned.text, kind
        assert cleaned.text.endswith(" end")
        assert cleaned.text.startswith("key: [redacted:")


@pytest.mark.parametrize("noise", ["\x1b[31m", "\u200b", "\u00ad"])
def test_signs_in_json_text_do_not_hide_it_either(noise: str) -> None:
    kind, value = KEYS[0]
    for ascii_only in (True, False):
        text = json.dumps({"t": f"a {value[:9]}{noise}{value[9:]} b"}, ensure_ascii=ascii_only)
        (cleaned,) = FINDER.texts([text], is_json=True)
        assert cleaned is not None
        assert json.loads(cleaned.text) == {"t": f"a {placeholder(kind)} b"}


def test_places_behind_a_value_with_signs_are_right() -> None:
    _, value = KEYS[0]
    text = f"caf\u200b\u00e9 {value[:8]}\u200b{value[8:]} and \u200bmore"
    cleaned = FINDER.text(text)
    assert cleaned is not None
    assert cleaned.text.endswith(" and \u200bmore")
    assert cleaned.text.startswith("caf\u200b\u00e9 ")


@pytest.mark.parametrize("width", [60, 72, 79])
def test_a_key_that_a_terminal_wraps(width: int) -> None:
    value = "sk-proj-" + planted._draw("wrap", 120)
    text = f"export KEY={value}\nnext line"
    lines = [text[start : start + width] for start in range(0, text.index("\n"), width)]
    lines[-1] = text[(len(lines) - 1) * width :]
    cleaned = FINDER.text("\n".join(lines))
    assert cleaned is not None
    assert cleaned.text == "export KEY=[redacted:openai-key]\nnext line"


@pytest.mark.parametrize("below", ["next", "words", "and-then-more", "echo", "Finished", "import"])
def test_a_word_below_a_key_is_no_part_of_it(below: str) -> None:
    value = "sk-proj-" + planted._draw("end", 64)
    cleaned = FINDER.text(f"{value}\n{below} more words")
    assert cleaned is not None
    assert cleaned.text == f"[redacted:openai-key]\n{below} more words"


def test_netrc_of_several_lines() -> None:
    secret = "Xk29" + planted._draw("netrc", 9)
    for gap in (" ", "\n  ", "\n\t", "\r\n"):
        text = f"machine api.host.dev{gap}login deploy{gap}password {secret}\n"
        cleaned = FINDER.text(text)
        assert cleaned is not None, repr(gap)
        assert secret not in cleaned.text


def test_logins_of_docker() -> None:
    value = base64.b64encode(b"deploy:" + planted._draw("docker", 12).encode()).decode()
    text = json.dumps({"auths": {"registry.host.dev": {"auth": value}}}, indent=1)
    for written in (text, json.dumps(text)):
        cleaned = FINDER.text(written)
        assert cleaned is not None
        assert value not in cleaned.text
    plain = base64.b64encode(b"no login at all").decode()
    assert FINDER.text(json.dumps({"auth": plain})) is None
    assert FINDER.text('{"auth": "required"}') is None


@pytest.mark.parametrize(
    "text",
    [
        "My password is {}.",
        "the wifi password was: {}",
        "the password for the wiki is '{}', do not tell",
        "I changed the passphrase to {}",
    ],
)
def test_passwords_in_prose(text: str) -> None:
    secret = "hunter2" + planted._draw("prose", 5)
    cleaned = FINDER.text(text.format(secret))
    assert cleaned is not None
    assert cleaned.text == text.format("[redacted:password]")


@pytest.mark.parametrize(
    "text",
    [
        "The password is required.", "the password is stored in the database",
        "password is incorrect", "The password was changed on 2024-01-02",
        "passwords to be hashed", "the password is 8 characters", "passcode is wrong",
    ],
)  # fmt: skip
def test_prose_about_passwords_is_none(text: str) -> None:
    assert FINDER.text(text) is None


WORDS = [
    *("ripple", "canyon", "velvet", "orbit", "tunnel", "marble"),
    *("sunset", "anchor", "guitar", "lemon", "puzzle", "window"),
]


@pytest.mark.parametrize("count", [12, 24])
@pytest.mark.parametrize("sign", [" ", "\n", ", "])
def test_seed_phrases(count: int, sign: str) -> None:
    words = (WORDS + [word[::-1] for word in WORDS])[:count]
    text = f"My seed phrase is: {sign.join(words)}\nKeep it."
    cleaned = FINDER.text(text)
    assert cleaned is not None
    assert cleaned.text == "My seed phrase is: [redacted:seed-phrase]\nKeep it."


def test_prose_about_seed_phrases_is_none() -> None:
    text = (
        "mnemonic: words which help people remember longer lists, made with the first letters of "
        "each item in the list that somebody wants to learn by heart"
    )
    assert FINDER.text(text) is None
    assert FINDER.text(" ".join(WORDS)) is None


@pytest.mark.parametrize(
    "text",
    [
        '"sessionKey": "agent:main:subagent:ee85499e-eb7c-40bb-85c8-2b681dceaa1f"',
        "session_key: agent:main:subagent:0d5f7c22-6d05-47d2-8b37-6e76b664d3fd",
        'the report identified by "FR-2024-05-24". My task',
        "/etc/apk/keys/alpine-devel@lists.alpinelinux.org-5261cecb.rsa.pub",
    ],
)
def test_names_that_were_found_by_mistake(text: str) -> None:
    assert FINDER.text(text) is None
