"""Tools from a file: functions, HTTP servers, programs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.environments.configured import KIND, read_tools
from adp.rollouts.environments.configured_api import ApiEntry
from adp.rollouts.environments.configured_command import CommandEntry
from adp.rollouts.tools import ToolError, carry_out
from adp.rollouts.turns import Call, ErrorType, Turn
from adp_schema.errors import InputError, UsageError
from tests.waiting import PATIENCE

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "playground"
SAMPLES = pytest.mark.skipif(
    not DATA.exists(), reason="the shared samples are not beside the checkout"
)


def environment(tmp_path, *tools, **settings):
    path = tmp_path / "tools.json"
    path.write_text(json.dumps({"tools": tools, "seed": 1}), encoding="utf-8")
    return KIND.make(KIND.settings(file=path, **settings))


def ask(world, name, /, **arguments):
    (result,) = world.step(Turn(calls=(Call(name, json.dumps(arguments)),))).results
    return result


def parameters(**kinds):
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}


# ---- the file ------------------------------------------------------------------------------------


@SAMPLES
@pytest.mark.parametrize("name", ["dpo", "sft_toolbench", "teacher_mode"])
def test_configurations_of_the_playground_are_read_as_they_are(name):
    path = DATA / f"{name}_config.json"
    world = KIND.make(KIND.settings(file=path))
    given_tools = json.loads(path.read_text(encoding="utf-8"))["tools"] or []
    assert [tool["function"]["name"] for tool in world.tools()] == [
        item["name"] for item in given_tools
    ]
    for tool, given_tool in zip(world.tools(), given_tools, strict=True):
        assert tool["function"]["parameters"] == given_tool["parameters"]


@SAMPLES
def test_the_cases_of_the_playground_can_be_carried_out():
    world = KIND.make(KIND.settings(file=DATA / "dpo_config.json"))
    for case in json.loads((DATA / "test_cases.json").read_text(encoding="utf-8")):
        result = ask(world, case["expected_tool"], **case["expected_params"])
        assert result.error is None, result.text
    assert ask(world, "calculator", expression="144 ** 0.5").text == "12"


def test_yaml_and_the_openai_shape_are_read(tmp_path):
    path = tmp_path / "tools.yaml"
    path.write_text(
        "- type: function\n  function: {name: calculator, description: D, strict: true,\n"
        "    parameters: {type: object, properties: {expression: {type: string}}}}\n",
        encoding="utf-8",
    )
    (tool,) = read_tools(path)
    assert carry_out(Call("calculator", '{"expression": "2*3"}'), {"calculator": tool}).text == "6"


@pytest.mark.parametrize(
    ("tool", "part"),
    [
        ({"type": "function"}, "name"),
        ({"name": "x"}, "functions: calculator"),
        ({"name": "calculator", "parameters": parameters(formula="string")}, "takes expression"),
        ({"name": "calculator", "parameters": parameters()}, "takes expression"),
        ({"name": "x", "type": "shell"}, "shell"),
        ({"name": "x", "type": "api"}, "url"),
        ({"name": "x", "type": "api", "url": "http://h", "verb": "GET"}, "verb"),
        ({"name": "x", "type": "api", "url": "file:///etc/passwd"}, "http://"),
        ({"name": "x", "type": "api", "url": "http://{host}/"}, "http://"),
        ({"name": "x", "type": "api", "url": "http://h/{a}"}, "names 'a'"),
        (
            {"name": "x", "type": "api", "url": "http://h/", "headers": {"A": "${NO_SUCH}"}},
            "NO_SUC",
        ),
        ({"name": "x", "type": "command", "command": "ls {a}"}, "list of words"),
        (
            {
                "name": "x",
                "type": "command",
                "command": ["{a}"],
                "parameters": parameters(a="string"),
            },
            "no program",
        ),
        ({"name": "x", "type": "command", "command": ["no-such-program"]}, "no program"),
        ({"name": "x", "type": "command", "command": ["echo", "{a}"]}, "names 'a'"),
        ({"name": "x", "type": "command", "command": ["echo"], "env": ["NO_SUCH"]}, "NO_SUCH"),
        ({"name": "x", "type": "api", "url": "http://h", "parameters": {"type": 1}}, "JSON Schema"),
        (5, "tools.0"),
    ],
)
def test_a_tool_that_is_wrong_is_named(tmp_path, tool, part):
    with pytest.raises(UsageError, match=part):
        environment(tmp_path, tool, allow_commands=True)


def test_a_file_that_is_no_configuration_is_said(tmp_path):
    for name, text, error in (
        ("a.json", "{", InputError),
        ("a.yaml", "a: [", InputError),
        ("b.json", "{}", UsageError),
        ("c.json", '{"tools": 5}', UsageError),
        ("d.json", '{"tools": [{"name": "weather", "parameters": {}}]}', UsageError),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(error):
            read_tools(tmp_path / name)
    with pytest.raises(InputError):
        KIND.make(KIND.settings(file=tmp_path / "nothing.json"))
    calculator = {"name": "calculator", "parameters": parameters(expression="string")}
    with pytest.raises(UsageError, match="two tools"):
        environment(tmp_path, calculator, calculator)


def test_a_changed_file_is_read_again(tmp_path):
    results = {"name": "calculator", "parameters": parameters(expression="string")}
    assert len(environment(tmp_path, results).tools()) == 1
    file = tmp_path / "tools.json"
    before = file.stat().st_mtime_ns
    file.write_text("[]", encoding="utf-8")
    os.utime(file, ns=(before, before))  # both within one tick of the file system's clock
    assert KIND.make(KIND.settings(file=file)).tools() == []


# ---- HTTP ----------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """Answers by the last part of the path; `seen` keeps what was asked."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle(self):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # of one who went away
            super().handle()

    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode() if length else None
        self.server.seen.append((self.command, self.path, body, dict(self.headers)))
        what = urlsplit(self.path).path.rpartition("/")[2]
        if what == "slow":
            time.sleep(3)
        if what == "header":
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.1)
            self.server.waited.append(self.path)
            return
        if what == "drip":
            self.close_connection = True
            self.send_response(200)
            self.end_headers()
            for _ in range(40):
                self.wfile.write(b"x")
                time.sleep(0.1)
            return
        status = int(what) if what.isdigit() else 200
        text = {"big": "x" * 5000, "secret": self.headers.get("Authorization")}.get(
            what, '{"a": 1}'
        )
        where = {"loop": "/v/loop", "away": "http://localhost:1/", "near": "/v/there"}.get(what)
        self.send_response(302 if where else status)
        if where:
            self.send_header("Location", where)
        if what == "packed":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_GET


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as threading_httpserver:
        threading_httpserver.seen, threading_httpserver.waited = [], []
        threading_httpserver.daemon_threads = True
        threading_httpserver.block_on_close = False
        threading_httpserver.root = f"http://127.0.0.1:{threading_httpserver.server_port}/v/"
        thread = threading.Thread(target=threading_httpserver.serve_forever, daemon=True)
        thread.start()
        yield threading_httpserver
        threading_httpserver.shutdown()


def api(server, path, method="GET", **more):
    spec = {"url": server.root + path, "method": method, "timeout": 60, "longest": 999}
    return ApiEntry(name="ask", type="api", **(spec | more))


def test_an_api_is_asked_as_the_configuration_says(tmp_path, server, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "hush-hush")
    tool = {
        "name": "get",
        "type": "api",
        "url": server.root + "{place}/x?fixed=1",
        "method": "GET",
        "headers": {"Authorization": "Bearer ${MY_TOKEN}"},
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "n": {}, "names": {"type": "array"}},
            "required": ["place"],
        },
    }
    world = environment(tmp_path, tool, {**tool, "name": "post", "method": "POST"})
    result = ask(world, "get", place="a/../b c?d#e", n=True, names=["x", "y&z"])
    assert (result.text, result.structured) == ('{"a": 1}', {"a": 1})
    method, path, body, headers = server.seen[-1]
    parts = urlsplit(path)
    assert (method, body, headers["Authorization"]) == ("GET", None, "Bearer hush-hush")
    assert unquote(parts.path.split("/")[2]) == "a/../b c?d#e"
    assert parse_qs(parts.query) == {"fixed": ["1"], "n": ["true"], "names": ["x", "y&z"]}
    assert ask(world, "post", place="x", n=5).error is None
    method, path, body, _ = server.seen[-1]
    assert (method, json.loads(body), path) == ("POST", {"n": 5}, "/v/x/x?fixed=1")
    assert ask(world, "get").error is ErrorType.INVALID_ARGS
    for dots in (".", ".."):
        assert ask(world, "get", place=dots).error is ErrorType.INVALID_ARGS


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_an_argument_is_always_one_part_of_the_path(text):
    url = ApiEntry(name="ask", type="api", url="https://host/a/{x}/b?q={x}", method="GET")
    if text in (".", ".."):
        with pytest.raises(ToolError):
            url.address({"x": text})
        return
    parts = urlsplit(url.address({"x": text})[0])
    assert (parts.scheme, parts.netloc) == ("https", "host")
    _, result, two, three = parts.path.split("/")
    assert (result, unquote(two), three) == ("a", text, "b")
    assert parse_qs(parts.query, keep_blank_values=True) == {"q": [text]}


@pytest.mark.parametrize(
    ("path", "kind", "part"),
    [
        ("404", ErrorType.EXECUTION, "HTTP 404"),
        ("400", ErrorType.INVALID_ARGS, "HTTP 400"),
        ("429", ErrorType.LIMIT, "HTTP 429"),
        ("503", ErrorType.EXECUTION, "HTTP 503"),
        ("504", ErrorType.TIMEOUT, "HTTP 504"),
        ("big", ErrorType.LIMIT, "999 bytes"),
        ("slow", ErrorType.TIMEOUT, "too long"),
        ("drip", ErrorType.TIMEOUT, "too long"),
        ("away", ErrorType.EXECUTION, "another host"),
        ("loop", ErrorType.EXECUTION, "again and again"),
        ("packed", ErrorType.EXECUTION, "packs"),
    ],
)
def test_what_goes_wrong_with_a_server_is_typed(server, path, kind, part):
    with pytest.raises(ToolError, match=part) as result:
        api(server, path, timeout=0.4 if part == "too long" else 60).run()
    assert result.value.kind is kind


def test_time_is_that_of_the_whole_call_even_for_headers(server):
    with pytest.raises(ToolError, match="too long") as result:
        api(server, "header", timeout=0.5).run()
    assert result.value.kind is ErrorType.TIMEOUT
    assert server.waited == []


def test_a_server_is_asked_from_a_coroutine_too(server):
    async def asked():
        return api(server, "x").run()

    assert asyncio.run(asked()).text == '{"a": 1}'


def test_a_server_that_is_not_there_is_an_error_of_the_tool():
    with pytest.raises(ToolError, match="cannot be asked"):
        ApiEntry(name="ask", type="api", url="http://127.0.0.1:1/x", timeout=2).run()


def test_redirects_on_the_same_host_are_followed(server):
    assert api(server, "near", method="POST").run(a=1).text == '{"a": 1}'
    assert [item[0] for item in server.seen[-2:]] == ["POST", "GET"]


def test_secrets_do_not_reach_the_agent(server, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "hush-hush")
    headers = {"Authorization": "Bearer ${MY_TOKEN}"}
    assert api(server, "secret", headers=headers).run().text == "Bearer [MY_TOKEN]"


# ---- programs ------------------------------------------------------------------------------------


def shell(tmp_path, *command, names=("a", "b"), **more):
    properties = parameters(**dict.fromkeys(names, "string"))
    properties["properties"]["n"] = {}
    tool = {"name": "run", "type": "command", "command": command, "parameters": properties, **more}
    return environment(tmp_path, tool, allow_commands=True)


def test_programs_are_off_unless_they_are_allowed(tmp_path):
    tool = {"name": "run", "type": "command", "command": ["echo", "hello"]}
    with pytest.raises(UsageError, match="allow_commands=true"):
        environment(tmp_path, tool)
    result = ask(environment(tmp_path, tool, allow_commands=True), "run")
    assert (result.text, result.exit_code, result.error) == ("hello", 0, None)


@pytest.mark.parametrize(
    "text", ["; id", "$(id)", "`id`", "a b", "*", "| cat", "> x", "\n", '"', "'", "{b}", "", "\\"]
)
def test_an_argument_is_one_word_whatever_is_in_it(tmp_path, text):
    world = shell(tmp_path, "printf", "[%s]", "x{a}", "{b}")
    assert ask(world, "run", a=text, b="end").text == f"[x{text}][end]"


def test_arguments_that_would_be_options_are_refused(tmp_path):
    world = shell(tmp_path, "printf", "[%s]", "{a}", "{n}")
    for wrong in ({"a": "-v"}, {"a": "x\0y"}):
        assert ask(world, "run", **wrong).error is ErrorType.INVALID_ARGS
    assert ask(world, "run", a="x").text == "[x]"
    assert ask(world, "run", a="x", n=-5).text == "[x][-5]"
    assert ask(world, "run", a="x", n=[True, None]).text == "[x][[true, null]]"
    assert ask(shell(tmp_path, "printf", "--", "[%s]", "{a}"), "run", a="-v").text == "[-v]"


@given(st.text(st.characters(codec="utf-8"), max_size=10))
def test_words_stay_words(text):
    command = CommandEntry(name="run", type="command", command=("prog", "{a}", "k={a}", "{b}"))
    try:
        argv = command.argv({"a": text})
    except ToolError:
        assert "\0" in text or text.startswith("-")
    else:
        assert argv == ["prog", text, f"k={text}"]


def test_a_program_has_an_empty_world(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_ONE", "first")
    monkeypatch.setenv("SECRET_TWO", "second")
    text = ask(shell(tmp_path, "env", env=["SECRET_TWO"]), "run").text
    assert "first" not in text
    assert {line.partition("=")[0] for line in text.splitlines()} == {"PATH", "LANG", "SECRET_TWO"}
    assert ask(shell(tmp_path, "ls", "-A"), "run").text == ""
    (tmp_path / "note").write_text("hi", encoding="utf-8")
    assert ask(shell(tmp_path, "cat", "{a}", folder="."), "run", a="note").text == "hi"


@pytest.mark.parametrize(
    ("command", "kind", "part"),
    [
        (["false"], ErrorType.EXECUTION, "exit status 1"),
        (["sleep", "3600"], ErrorType.TIMEOUT, "too long"),
        (["yes"], ErrorType.LIMIT, "wrote too much"),
        (["sh", "-c", "sleep 3600 & sleep 3600"], ErrorType.TIMEOUT, "too long"),
    ],
)
def test_a_program_that_fails_is_stopped_and_typed(tmp_path, command, kind, part):
    began = time.monotonic()
    seconds = 0.5 if part == "too long" else PATIENCE
    result = ask(shell(tmp_path, *command, timeout=seconds, longest=1000), "run")
    assert result.error is kind
    assert part in result.text
    assert len(result.text) < 1200
    assert result.exit_code is not None
    assert time.monotonic() - began < PATIENCE  # the program would take twice that


def test_the_environment_can_be_copied(tmp_path):
    world = shell(tmp_path, "echo", "{a}")
    assert ask(world.fork(), "run", a="x").text == "x"
    assert world.blocking
    assert Path(tmp_path, "tools.json").exists()
