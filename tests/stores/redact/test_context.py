"""Keys of no known form are found by the names beside them, and what is no key stays."""

from __future__ import annotations

import random
import string

import pytest

from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.options import RedactOptions
from adp.stores.redact.rules import placeholder

FINDER = ValueFinder(RedactOptions(user=((), ())).rules())


def _keys() -> list[str]:
    """Letters and digits; hexadecimal; with signs."""
    draw = random.Random(11)
    alnum = string.ascii_letters + string.digits
    return [
        "".join(draw.choices(letters, k=size)) + "q7"
        for letters, size in (
            (alnum, 14), (alnum, 38), (string.ascii_lowercase + string.digits, 30),
            (alnum + "+/", 62), (alnum + "_-", 40),
        )
        for _ in range(4)
    ]  # fmt: skip


NAMED = [
    "JWT_SECRET={}", "NEXTAUTH_SECRET={}", "SECRET_KEY = '{}'", "TOKEN={}", "GITHUB_TOKEN={}",
    "EXA_API_KEY={}", '{{"token": "{}"}}', '"id_token":"{}"', '"refresh_token" : "{}"',
    "secret: {}", "client_secret='{}'", "consumer_secret = \"{}\"", "--api-key {}", "--token '{}'",
    "--access-token={}", 'setx OPENAI_API_KEY "{}"', "set -x OPENAI_API_KEY {}", "ENV API_KEY {}",
    'os.environ["X_API_KEY"] = "{}"', 'os.environ.setdefault("API_KEY", "{}")',
    '{{"name":"API_KEY","value":"{}"}}', "- name: API_KEY\n  value: {}",
    '<add key="ApiKey" value="{}"/>', "<ApiKey>{}</ApiKey>", "my api key is {}",
    "x-api-key: {}", "PRIVATE-TOKEN: {}", "X-Auth-Key: {}", "PrivateKey = {}",
    "https://h/?key={}", "https://h/?a=1&api_key={}&b=2", "https://h/?token={}",
    '{{\\"token\\": \\"{}\\"}}', "token => '{}'", "DEPLOY_KEY={}", "AZURE_PAT={}",
]  # fmt: skip


@pytest.mark.parametrize("text", NAMED)
def test_keys_beside_their_names(text):
    text = text.replace("{{", "{").replace("}}", "}")
    known = _keys()
    texts = FINDER.texts([text.replace("{}", key) for key in known])
    for key, cleaned in zip(known, texts, strict=True):
        assert cleaned is not None, key
        assert cleaned.text == text.replace("{}", placeholder("assigned-key")), key


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("authorization", "Authorization: {}", _keys()[4]),
        ("authorization", "Authorization: ApiKey {}", _keys()[5]),
        ("authorization", "Authorization: Basic {}", _keys()[6]),
        ("authorization", '"authorization": "Token {}"', _keys()[7]),
        ("session-cookie", "Cookie: a=b; sessionid={}; c=d", _keys()[4]),
        ("session-cookie", "Set-Cookie: auth_session={}; HttpOnly", _keys()[5]),
        ("session-cookie", "PHPSESSID={}", _keys()[8]),
        ("assigned-key", "PRIVATE_KEY={}", "0x" + random.Random(2).randbytes(32).hex()),
        ("kaggle-key", '{"username":"ada","key":"{}"}', random.Random(3).randbytes(16).hex()),
        (
            "password-hash",
            "root:{}:19000:0:9:7:::",
            "$6$salt$" + _keys()[4] + _keys()[5] + "ab7/.w",
        ),
        ("password-hash", "ada:{}:1::", "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$" + _keys()[4] + "aB7"),
        ("password-hash", "admin:{}", "$apr1$abcd1234$" + "3tw.XKG3BAK1DNJ0T8FPV/"),
    ],
)
def test_keys_in_headers_cookies_and_files(kind, text, value):
    cleaned = FINDER.text(text.replace("{}", value))
    assert cleaned is not None
    assert cleaned.text == text.replace("{}", placeholder(kind))


_SOME = _keys()[4]


@pytest.mark.parametrize(
    "text",
    [
        "tokens: 1234567890123456 max_tokens=4096 token_ids=[1] total_tokens: 123456789012345678",
        f'"next_page_token": "{_SOME}" pageToken={_SOME} next_token: "{_SOME}"',
        f"https://h/?page_token={_SOME} ?continuation_token={_SOME}",
        f"csrf_token={_SOME} sync_token: {_SOME}",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b key 3f786850e387550fdab836ed7e6dc881de23",
        "?key=123e4567-e89b-12d3-a456-426614174000&id=3f786850e387550fdab836ed7e6dc881de23001b",
        "?key=how-to-make-a-token-2024-01 &token=my_secret_value_v2_long",
        'token: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"',
        "api_key=settings.API_KEY_V2 auth_token = generate_token_v2_for_user",
        "secret = createHmacSecretForUser2 token: process.env.GITHUB_TOKEN_V2_INTERNAL",
        "TOKEN=$(cat /run/secrets/token1) SECRET_KEY=${SECRET_KEY_V2_FALLBACK}",
        "ENV API_KEY your-api-key-goes-here-0123 --token <YOUR_TOKEN_12345678>",
        "secretName: my-app-secret-v2-production tokenizer: Xenova/gpt-4o-2024-08-06",
        "{'name': 'API_KEY', 'value': 'xxxxxxxxxxxxxxxxxxxx'} <ApiKey>xxxxx-xxxxx-xxxx</ApiKey>",
        "Authorization: AWS4-HMAC-SHA256 Credential=x Authorization: required-for-all-v2-routes",
        "Cookie: lang=de; theme=dark-mode-2024-version",
        '{"username":"ada","key":"profile_picture_2_small_thumbnail"}',
        "costs $6$ or $1$ $y$x root:$6$salt$x:1:::",
        "the secret is in the details2024 of this",
    ],
)
def test_what_is_no_key(text):
    cleaned = FINDER.text(text)
    assert cleaned is None, cleaned
