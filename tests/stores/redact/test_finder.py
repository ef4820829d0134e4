"""Values are found in every spelling, what only looks like one is not, and no text takes long."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.options import RULES, RedactOptions
from adp.stores.redact.rules import placeholder
from adp_schema import jsontext
from tests.stores.redact import planted

OWN_NAMES = (("/home/testerina",), ("testerina",))
FINDER = ValueFinder(RedactOptions(kinds=("all",), user=OWN_NAMES).rules())

WRAPS = (
    "{}", "The key is {}.", "a={},b", '"{}"', "'{}'", "x\\n{}\\n", "[{}]", "`{}`", "a%3D{}", "<{}>",
    "\x1b[1m{}\x1b[0m", "caf\xe9 {} \u4e2d\u6587", '{{\\"k\\": \\"{}\\"}}', "{}\n{}",
)  # fmt: skip


@pytest.mark.parametrize("wrap", WRAPS)
def test_every_key_is_found_whatever_stands_around_it(wrap):
    known = [pair for seed in "12345" for pair in planted.plain(seed)]
    assert len({kind for kind, _ in known}) > 30
    result = FINDER.texts([wrap.replace("{}", value) for _, value in known])
    for (kind, _), cleaned in zip(known, result, strict=True):
        assert cleaned is not None, kind
        assert cleaned.text == wrap.replace("{}", placeholder(kind))


def test_keys_that_go_by_the_words_around_them():
    for kind, value, text in (case for seed in "12345" for case in planted.in_context(seed)):
        cleaned = FINDER.text(text)
        assert cleaned is not None, kind
        assert cleaned.text == text.replace(value, placeholder(kind))


PERSONAL = [
    ("email", "ada.lovelace@analytical.io"),
    ("phone", "+44 20 7946 0018"),
    ("phone", "(212) 736-5000"),
    ("credit-card", "4539 1488 0343 6467"),
    ("iban", "GB82 WEST 1234 5698 7654 32"),
    ("us-ssn", "536-22-8726"),
    ("ip-address", "93.184.216.34"),
    ("ip-address", "2606:2800:220:1:248:1893:25c8:1946"),
    ("own-home", "/home/testerina"),
    ("own-name", "testerina"),
]


@pytest.mark.parametrize(("kind", "value"), PERSONAL)
@pytest.mark.parametrize("wrap", ["{}", "write to {}, please", 'a: "{}"', "\\n{}\\n"])
def test_personal_data(kind, value, wrap):
    cleaned = FINDER.text(wrap.replace("{}", value))
    assert cleaned is not None
    assert cleaned.text == wrap.replace("{}", placeholder(kind))


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("/home/ada/x.py", "/home/[redacted:home-folder]/x.py"),
        ("file:///Users/ada", "file:///Users/[redacted:home-folder]"),
        ("C:\\Users\\Ada\\x", "C:\\Users\\[redacted:home-folder]\\x"),
        ("C:\\\\Users\\\\Ada\\\\x", "C:\\\\Users\\\\[redacted:home-folder]\\\\x"),
        ("\\/home\\/ada\\/x", "\\/home\\/[redacted:home-folder]\\/x"),
        ("cd /home/testerina/x", "cd [redacted:own-home]/x"),
        ("-home-testerina-project", "-home-[redacted:own-name]-project"),
    ],
)
def test_home_folders(path, clean):
    cleaned = FINDER.text(path)
    assert cleaned is not None
    assert cleaned.text == clean


NEAR = [
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "pip install sk-learn scikit-learn==1.5.2",
    "task-1234567890abcdef1234567890abcdef task-sk-x disk-0123456789abcdef0123456789abcdef",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=<YOUR_API_KEY>",
    "api_key = 'your-api-key-goes-here-0123'",
    "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "password: str = Field(default=None)",
    "password=$DB_PASSWORD password=${{ secrets.PASSWORD }} password = getpass.getpass()",
    "token = tokenizer.decode(ids) max_tokens: 4096 token_ids=[1, 2, 3]",
    "postgres://user:password@localhost/db http://user:$PASS@host",
    "https://example.com/a:b@c?x=1 http://[::1]:8080/a@b",
    "api_key=os.environ['OPENAI_API_KEY'], access_token=self.get_access_token_from_cache()",
    "hf_hub_download(repo_id) hf_transfer npm_config_cache npm_lifecycle_event",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAFklEQVR4nGM4IScHRwxA/B8M",
    "eyJub3QiOiJhIGp3dCJ9.eyJhIjoxfQxxxx.AAAAAAAAAAAAAAAAAAAA",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADAaMQswCQYDVQQG\n",
    "Bearer <token> Authorization: Bearer $TOKEN bearer of bad news arrived yesterday",
    "user@example.com noreply@github.com a@b.test git@github.com:org/repo.git @app.route x@y",
    "\\n@pytest.mark.parametrize \\t@app.route('/')",
    "call 555-0123 or (212) 555-0199, 2024-01-02 12:30:45, 1.2.3, version 10.15.7.1",
    "4111 1111 1111 1111 4242 4242 4242 4242 1234567890123456",
    "127.0.0.1 192.168.1.10 10.0.0.1 8.8.8.8 ::1 fe80::1 12:34:56",
    "/home/user/x /home/runner/y /home/ubuntu /Users/runner/work example.com/home/page /usr/home",
    "123-45-6789 000-12-3456 2024-01-0215",
    "smb://me:my_password@host https://{user}:{password}@host/x ssh://a1b2@ssh.host.org",
    "join(pwd, './data/mt19937-testset-1.csv') password = base64.b16encode(data) PWD=../x1y2z3/ab",
    "GB00WEST12345698765432 ABCD1234 EFGH5678",
]


@pytest.mark.parametrize("text", NEAR)
def test_what_only_looks_like_one(text):
    cleaned = FINDER.text(text)
    assert cleaned is None, cleaned


def test_hidden_by_escapes_and_in_json_inside_json():
    kind, value = planted.plain("7")[4]
    letters = "".join(f"\\u{ord(char):04x}" for char in value)
    deep = json.dumps({"a": json.dumps({"b": json.dumps([f"\n{value}"])})})
    word = placeholder(kind)
    for text, clean in (
        (f'{{"a":"x{letters[6:]} {letters}\\n"}}', f'{{"a":"x{letters[6:]} {word}\\n"}}'),
        (f'["\\/{letters}\\/"]', f'["\\/{word}\\/"]'),
        (deep, deep.replace(value, word)),
    ):
        (cleaned,) = FINDER.texts([text], is_json=True)
        assert cleaned is not None
        assert cleaned.text == clean


def test_json_keeps_all_other_characters_and_stays_json():
    kind, value = planted.plain("8")[4]
    text = (
        f'{{"a" : 1.0e5, "{value}":{{"\\u00e9":"\\/x {value}"}}, "other_{value[:9]}":[1,"\\n"] }}'
    )
    (cleaned,) = FINDER.texts([text], is_json=True)
    assert cleaned is not None
    assert cleaned.text == text.replace(value, placeholder(kind))


def test_numbers_and_different_keys_of_objects():
    text = '{"card": 4539148803436467, "a1@corp.io": 1, "b2@corp.io": [2], "x": "a1@corp.io"}'
    (cleaned,) = FINDER.texts([text], is_json=True)
    assert cleaned is not None
    assert json.loads(cleaned.text) == {
        "card": "[redacted:credit-card]",
        "[redacted:email]": 1,
        "[redacted:email-2]": [2],
        "x": "[redacted:email]",
    }


def test_the_letter_of_an_escape_does_not_begin_a_key():
    _, value = next(pair for pair in planted.plain("9") if pair[0] == "npm-token")
    (cleaned,) = FINDER.texts([f'["\\{value}"]'], is_json=True)  # a line break, then pm_...
    assert cleaned is None
    assert FINDER.text(f'"\\\\{value}"') is not None


def test_previews_never_show_the_whole():
    for _, value in planted.plain("1"):
        cleaned = FINDER.text(value)
        assert cleaned is not None
        for item in cleaned.values:
            assert len(item.preview) <= 4
            assert item.length == len(value)


PIECES = [value for _, value in planted.plain("6")] + [value for _, value in PERSONAL]
AROUND = [
    '"', "\\", "\n", "\\n", "\\\\n", "/", "@", ".", ":", "=", "-", "_", "a", "Z", "9", " ", ", ",
    "password=", "api_key: ", "https://u:", "Bearer ", "%3D", "\\u0041", "\\/", "{", "[redacted:",
    "[redacted:email]", "]", "\u00e9", "-----BEGIN ", "aws secret ", "wandb key ",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.sampled_from(AROUND), max_size=9).map("".join)


@given(text=texts)
def test_nothing_is_left_and_a_second_time_changes_nothing(text):
    cleaned = FINDER.text(text)
    if cleaned is not None:
        assert FINDER.text(cleaned.text) is None


@given(text=st.recursive(texts, lambda inner: st.lists(inner, max_size=3)))
def test_json_stays_json(text):
    for layers in (1, 2):
        written = json.dumps(text) if layers == 1 else json.dumps({"a": [json.dumps(text)]})
        (cleaned,) = FINDER.texts([written], is_json=True)
        if cleaned is not None:
            assert jsontext.is_valid(cleaned.text)
            assert FINDER.texts([cleaned.text], is_json=True) == [None]


@given(text=texts)
def test_what_is_not_replaced_keeps_its_place(text):
    """Each character outside of the values is where `place` says."""
    cleaned = FINDER.text(text)
    if cleaned is None or len(cleaned.edits) > 1:
        return
    kept = [True] * len(text)
    for start, end, _ in cleaned.edits[0]:
        kept[start:end] = [False] * (end - start)
    for old, char in enumerate(text):
        if kept[old]:
            assert cleaned.text[cleaned.place(old)] == char
    assert cleaned.place(len(text), end=True) == len(cleaned.text)


HOSTILE = [
    "a", "sk-", "@", "a@", "a.", "eyJ", "eyJ-", "-----BEGIN PRIVATE KEY-----", "password=", "://a:",
    "x://u:", "+1", "1.", "1:", "/home/", "\\", "\\u0041", "\\\\", "bearer ", "aws", "wandb key ",
    "gh" "p_", "M-", "secret_", "[redacted:", "api_key:", "x" * 99 + "@", "4539", "AB12 ", '"',
]  # fmt: skip


def seconds(piece: str, size: int) -> float:
    """CPU seconds for a text of one piece again and again."""
    text = piece * (size // len(piece))
    start = time.process_time()
    FINDER.texts([text])
    return time.process_time() - start


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_take_little_time(piece):
    assert seconds(piece, 500_000) < 3


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_take_linear_time(piece):
    assert seconds(piece, 5_000_000) < 30


def test_many_numbers_in_json_take_little_time():
    """Each hit looks at the tokens that it touches, not at all that follow."""
    size = 2_000_000
    texts = [
        "[" + ",".join(item * (size // 24)) + "]"
        for item in (['"ab",4539578763621486'], ['"ab",7777777777777777'])
    ]
    times = []
    for text in texts:
        start = time.process_time()
        (cleaned,) = FINDER.texts([text], is_json=True)
        times.append(time.process_time() - start)
    assert cleaned is None
    assert times[0] < 20 + 10 * times[1]


def test_every_rule_begins_with_its_literals_and_passes_its_gate():
    """A rule that the prefilter does not let through would never be asked."""
    kinds = {rule.kind for rule in RULES if rule.group == "secrets"}
    tried = {kind for kind, _ in planted.plain()} | {kind for kind, *_ in planted.in_context()}
    assert tried <= kinds
    assert len(tried) >= 45
