"""Passwords are found as a whole, where configurations, code, commands and texts hold them."""

from __future__ import annotations

import json
import time

import pytest

from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.options import RedactOptions
from adp.stores.redact.rules import placeholder
from tests.stores.redact.planted import _draw

FINDER = ValueFinder(RedactOptions(kinds=("all",), user=((), ())).rules())
PASSWORD = "Tq7!k" + _draw("password", 9) + "W2"
PLACE = placeholder("password")

PLACES = [
    "PASSWORD={}",
    "DB_PASS={}",
    '{"user": "u", "pass": "{}"}',
    "password: {}",
    "{'password': '{}'}",
    'password: "{}"',
    "connect(password='{}')",
    "mysql --password {}",
    "mysql --password={}",
    "mysql -u root -p{} db",
    "mysqldump -h db -p'{}' x",
    "sshpass -p '{}' ssh host",
    "sshpass -p {} x",
    "docker login -u a -p {}",
    "curl -u alice:{} https://h/",
    "curl -s --user 'alice:{}' https://h/",
    "machine github.com login octocat password {}",
    "ansible_ssh_pass: {}",
    "PGPASSWORD={} psql",
    "jdbc:mysql://h/db?user=a&password={}",
    "https://h/x?password={}&y=1#z",
    "user=a&password={}&x=1",
    "Server=h;Password={};Database=d",
    "<password>{}</password>",
    "CREATE USER a IDENTIFIED BY '{}';",
    "ALTER USER a WITH PASSWORD '{}'",
    'password=f"{}"',
    "password=b'{}'",
    "PASSWORD = r'{}'",
    "password:\n  {}",
    "password:\\n  {}",
    "**Password:** {}",
    "Password: `{}`",
    "Passwort: {}",
    "define('DB_PASSWORD', '{}');",
    "'password' => '{}',",
    ":password => '{}'",
    'dbPass := "{}"',
    'password: string = "{}"',
    "f(user=a,password={},host=b)",
    "{password: {}}",
    "password={}, x",
    'env["PASSWORD"] = "{}"',
    'password": "{}',
    'password\\\\\\": \\\\\\"{}',
    "export A_PWD={};",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_password_is_found_where_it_stands(place):
    cleaned = FINDER.text(place.replace("{}", PASSWORD))
    assert cleaned is not None
    assert cleaned.text == place.replace("{}", PLACE)


VALUES = [
    "{}&rW2#long-tail",
    "{}(d9Z)rW2",
    "{}{{d9",
    "{}<r9",
    "{},r",
    "{};r",
    "{}|r9",
    "{} rW2long44",
    "{}\u00df\u00fc9",
    "{}'r9",
    "{}`r",
    "/{}",
    "aB3.{}.Zz7rW",
    "Correct-Horse!Battery",
    "aB3.kd9.Zz7rW",
    "/aB3kd9Zz7rW",
    "aB3!x9",
    "{}\\\\r",
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ["password", "DB_PASS", "api.pass"])
def test_what_is_between_quotes_is_replaced_as_a_whole(name, value):
    value = value.replace("{}", PASSWORD)
    text = json.dumps({name: "#"}).replace("#", value)
    cleaned = FINDER.text(text)
    assert cleaned is not None
    assert cleaned.text == json.dumps({name: PLACE})


@pytest.mark.parametrize(
    "value", ["{}&r#9", "{}(d)r", "{},r", "{};r", "{}|r9", "{}\u00df9", "{}{r"]
)
def test_without_quotes_it_goes_to_white_space(value):
    value = value.replace("{}", PASSWORD)
    cleaned = FINDER.text(f"export DB_PASSWORD={value}\nnext")
    assert cleaned is not None
    assert cleaned.text == f"export DB_PASSWORD={PLACE}\nnext"


@pytest.mark.parametrize("value", ["aB3'xx9yy7", "aB3/xx9yy7", "aB3%40xx9yy7", "aB3)x,y"])
def test_passwords_in_addresses(value):
    cleaned = FINDER.text(f"postgres://ada:{value}@db/main")
    assert cleaned is not None
    assert cleaned.text == "postgres://ada:[redacted:url-password]@db/main"


NONE = [
    "'ssh2_auth_password',\n    'ssh2_connect'",
    "['auth_password', 'ssh2_auth_agent']",
    "password='password1'",
    '"md5", "password", "scram-sha-256"',
    "password=self.password_2",
    "api_key=settings.API_KEY_V2",
    "pwd: ~/work/a1-b2",
    "password: str",
    "password=None",
    'password=os.environ["X1"]',
    "<password>",
    "password=********",
    'password: "{{ password }}"',
    "password=$PASSWORD",
    "the password is required",
    "password = get_password()",
    "password=os.getenv('PW1')",
    "PASSWORD_MIN_LENGTH=8",
    "pwd=/usr/local/lib/python3.11",
    "PWD=/home2/x1/y2",
    "OLDPWD: /app/v1",
    "password=Column(String(128))",
    'password: "VARCHAR(255)"',
    "passwd:x:1000:1000::/home/u",
    "password1 = form.password1",
    "'password' => 'required|min:8|confirmed'",
    'password: "^(?=.*[A-Z])(?=.*\\d).{8,}$"',
    'password: "#Login-Password"',
    '{"password": "Must be 8 characters, with 1 digit"}',
    '{"password": "Forgot Password?"}',
    'f"password={self.config.password1}"',
    "pass: 12, fail: 3",
    "password: {'type': 'string', 'minLength': 8}",
    '"password": "${DB_PASSWORD_1}"',
    "bypass: a1b2c3d4e5",
    "tests pass: 100%, 12 passed",
    "<password>YOUR_PASSWORD1</password>",
    "--password <password1>",
    "mysql -u root --port 3306 -p",
    "curl -u $USER:$PASS1 https://h",
    "http://h:80/a1A@b.c1",
    "password: process.env.DB_PASSWORD_1",
    "'http://u:'+pass1word+'@h'",
    "const password = useRef<x1>()",
]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_password(text):
    cleaned = FINDER.text(text)
    assert cleaned is None, cleaned


@pytest.mark.parametrize("depth", range(1, 6))
@pytest.mark.parametrize("is_json", [True, False])
def test_json_inside_json(depth, is_json):
    key, name = _draw("key", 32), "ada" + "lovelace"
    text = json.dumps(
        {
            "password": PASSWORD,
            "api_key": key,
            "path": f"C:\\Users\\{name}\\x",
            "h": f"/home/{name}/x",
        }
    )
    for n in range(depth - 1):
        text = json.dumps([text] if n % 2 else {"a": text})
    (cleaned,) = FINDER.texts([text], is_json=is_json)
    assert cleaned is not None
    inner = cleaned.text
    while not isinstance(inner, dict) or "a" in inner:
        inner = json.loads(inner) if isinstance(inner, str) else next(iter(
            inner.values() if isinstance(inner, dict) else inner))  # fmt: skip
    home = placeholder("home-folder")
    assert inner == {
        "password": PLACE,
        "api_key": placeholder("assigned-key"),
        "path": f"C:\\Users\\{home}\\x",
        "h": f"/home/{home}/x",
    }


@pytest.mark.parametrize(
    "piece",
    [
        "password: ",
        'password="a1!',
        "password='a1B2c3 ",
        "mysql -p",
        "curl -u a:",
        "login a password ",
        "pass:a1B",
        '\\\\\\"',
        "\\\\\\\\a",
        "password'''' : ''''",
        "--password ",
        "password>aB1!cdef",
        "password=" + "\\" * 30,
        "password" + "*" * 40,
        "?password=(((((((((",
        "://a:'/",
    ],
)
def test_hostile_texts_take_little_time(piece):
    start = time.process_time()
    FINDER.texts([piece * (500_000 // len(piece))])
    assert time.process_time() - start < 4
