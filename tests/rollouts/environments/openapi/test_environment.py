"""Episodes against a local server: secrets, limits, retries, redirects, recorded answers."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from adp.rollouts.environment import ENVIRONMENTS, CannotForkError
from adp.rollouts.environments.openapi.environment import KIND, OpenApiEnvironment
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.spec import load
from adp.rollouts.turns import Call, ErrorType, Turn
from adp_schema.errors import InputError, UsageError
from adp_schema.model import Task
from tests.rollouts.environments.openapi.api_server import as_json, serving
from tests.waiting import PATIENCE

HERE = Path(__file__).parent
TASK = Task(task_id="t", instruction="Which pets are there?")
SECRET = 'hush-"hush"/+ä'.replace("ä", "e")


def file_of(tmp_path, **about):
    """A file with GET and POST of /x, and GET of /y; all with the security scheme key."""
    operation = {"parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}]}
    paths = {
        "/x": {"get": {"operationId": "x", **operation}, "post": {"operationId": "add"}},
        "/y": {"get": {"operationId": "y", **operation}},
    }
    path = tmp_path / "api.json"
    path.write_text(json.dumps({"openapi": "3.0.0", "paths": paths, **about}), encoding="utf-8")
    return path


def world_of(tmp_path, api, about=None, **settings):
    more = {"server": api.url, "timeout": PATIENCE, "allow_writes": True, **settings}
    world = KIND.make(KIND.settings(file=file_of(tmp_path, **(about or {})), **more))
    world.reset(TASK)
    return world


def ask(world, name, /, **arguments):
    (result,) = world.step(Turn(calls=(Call(name, json.dumps(arguments)),))).results
    return result


def shown(result):
    return result.text, result.error, result.structured


# ---- episodes ------------------------------------------------------------------------------------


def test_an_episode_begins_with_the_task_and_says_what_is_left_out():
    kind, settings = load(ENVIRONMENTS, f"openapi:file={HERE / 'pets.yaml'},server=http://h/v1")
    world = kind.make(settings)
    assert isinstance(world, OpenApiEnvironment)
    start = world.reset(TASK)
    assert start.messages[0]["content"] == TASK.instruction
    assert start.info["openapi"] == {"operations": 7, "tools": 2, "left_out": 5}
    assert [tool["function"]["name"] for tool in world.tools()] == ["listPets", "getPet"]
    assert world.blocking
    assert [tool.read_only for tool in world.offered()] == [True, True]


def test_a_run_without_a_single_tool_says_why():
    world = KIND.make(KIND.settings(file=HERE / "pets.yaml"))
    with pytest.raises(UsageError, match=r"none of its 7 .* hosts=\[pets.example.com\] allows it"):
        world.reset(TASK)


def test_answers_are_told_as_they_are(tmp_path):
    odd = {
        "json": as_json({"a": [1]}),
        "text": (200, {}, "Grün".encode()),
        "latin": (
            200,
            {"Content-Type": "text/plain; charset=iso-8859-1"},
            "Grün".encode("latin-1"),
        ),
        "broken": (200, {}, b"\xff\xfe!"),
        "codec": (200, {"Content-Type": "text/plain; charset=nothing"}, b"a"),
        "empty": (204, {}, b""),
        "image": (200, {"Content-Type": "image/png"}, b"\x89PNG"),
        "deep": (200, {}, b"[" * 3000 + b"]" * 3000),
        "missing": as_json({"detail": "gone"}, 404),
        "invalid": as_json({"detail": "no"}, 422),
        "limit": as_json({}, 429, Retry_After="0"),
    }
    with serving(lambda request: odd[request.query.removeprefix("q=")]) as server:
        world = world_of(tmp_path, server)
        results = {name: ask(world, "x", q=name) for name in odd}
    assert shown(results["json"]) == ('{"a": [1]}', None, {"a": [1]})
    texts = [results[name].text for name in ("text", "latin", "broken", "codec", "empty", "image")]
    assert texts == ["Grün", "Grün", "\ufffd\ufffd!", "a", "HTTP 204", "[image/png, 4 bytes]"]
    assert results["deep"].structured is None
    assert shown(results["missing"])[:2] == (
        'Error: HTTP 404: {"detail": "gone"}',
        ErrorType.EXECUTION,
    )
    assert results["invalid"].error is ErrorType.INVALID_ARGS
    assert results["limit"].error is ErrorType.LIMIT
    assert [request.query for request in server.seen].count("q=limit") == 3


# ---- secrets -------------------------------------------------------------------------------------

SCHEMES = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "key"},
    "bearer": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
}


@pytest.mark.parametrize("name", SCHEMES)
def test_a_secret_is_sent_and_told_and_recorded_nowhere(tmp_path, monkeypatch, name):
    monkeypatch.setenv("THE_KEY", SECRET)
    about = {"components": {"securitySchemes": SCHEMES}, "security": [{name: []}]}

    def echo(request):
        both = [request.query, request.headers, request.headers.get("authorization", "")[6:]]
        return as_json([*both, SECRET], status=200 if "ok" in request.query else 500)

    with serving(echo) as server:
        world = world_of(tmp_path, server, about, auth_env={name: "THE_KEY"}, record=tmp_path / "r")
        results = [ask(world, "x", q=word) for word in ("ok", "bad")]
        assert [result.error for result in results] == [None, ErrorType.EXECUTION]
        sent = repr(server.seen[0])
        hidden = [SECRET, json.dumps(SECRET)[1:-1], "hush"]
        if name == "basic":
            hidden.append(server.seen[0].headers["authorization"].split()[1])
        elif name in ("header", "bearer", "oauth"):
            assert SECRET in server.seen[0].headers.values() or f"Bearer {SECRET}" in sent
        assert any(text in sent for text in [*hidden, "hush-%22hush"])
    recorded = (tmp_path / "r" / "answers.sqlite").read_bytes()
    for text in hidden:
        assert all(text not in result.text for result in results)
        assert text.encode() not in recorded
    assert "***" in results[0].text
    assert SECRET not in repr(world.reset(TASK))


def test_a_credential_is_named_and_there_or_it_is_said(tmp_path):
    about = {"components": {"securitySchemes": SCHEMES}, "security": [{"bearer": []}]}
    with serving() as server:
        with pytest.raises(UsageError, match="variable NO_SUCH is not set"):
            world_of(tmp_path, server, about, auth_env={"bearer": "NO_SUCH"})
        with pytest.raises(UsageError, match="needs the security scheme 'bearer'"):
            world_of(tmp_path, server, about)
        assert ask(world_of(tmp_path, server, about, auth_env={"bearer": None}), "x").error is None
        assert "authorization" not in server.seen[-1].headers
        with pytest.raises(UsageError, match="server holds a password"):
            world_of(tmp_path, server, server="http://ada:secret@127.0.0.1")


def test_a_header_of_the_agent_does_not_replace_the_credential(tmp_path, monkeypatch):
    monkeypatch.setenv("THE_KEY", "right-key")
    key = {"name": "x-key", "in": "header", "schema": {"type": "string"}}
    paths = {"/x": {"get": {"operationId": "x", "parameters": [key]}}}
    about = {"components": {"securitySchemes": SCHEMES}, "security": [{"header": []}]}
    with serving() as server:
        world = world_of(
            tmp_path, server, {**about, "paths": paths}, auth_env={"header": "THE_KEY"}
        )
        assert ask(world, "x", **{"x-key": "other"}).error is None
    assert server.seen[0].headers["x-key"] == "right-key"


# ---- limits --------------------------------------------------------------------------------------


def drip(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    for _ in range(50):
        handler.wfile.write(b"x")
        time.sleep(0.1)


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    while True:
        handler.wfile.write(b"x" * 65536)


@pytest.mark.parametrize(
    ("answer", "kind", "part"),
    [
        (drip, ErrorType.TIMEOUT, "too long"),
        (lambda handler: time.sleep(5), ErrorType.TIMEOUT, "too long"),
        (endless, ErrorType.LIMIT, "more than 1,000 bytes"),
        ((302, {"Location": "http://169.254.169.254/latest"}, b""), None, "another host"),
        ((302, {"Location": "/x?q=again"}, b""), None, "again and again"),
        ((200, {"Content-Encoding": "gzip"}, b"x"), None, "packs"),
    ],
)
def test_a_server_that_misbehaves_is_an_error_of_the_tool(tmp_path, answer, kind, part):
    with serving(lambda request: answer) as server:
        seconds = 0.5 if kind is ErrorType.TIMEOUT else PATIENCE
        world = world_of(tmp_path, server, timeout=seconds, longest=1000)
        result = ask(world, "x")
    assert part in result.text
    assert result.error is (kind or ErrorType.EXECUTION)


def test_a_server_that_is_busy_is_asked_again_within_the_time(tmp_path):
    statuses = iter([503, 429, 200])
    with serving(lambda request: as_json(1, next(statuses, 200), Retry_After="0")) as server:
        assert ask(world_of(tmp_path, server), "x").text == "1"
        assert len(server.seen) == 3
        server.answer = lambda request: as_json(1, 503, Retry_After="0")
        assert "HTTP 503" in ask(world_of(tmp_path, server), "add").text
        assert len(server.seen) == 4  # what changes something is not tried again after 503
        server.answer = lambda request: as_json(1, 429, Retry_After="3600")
        began = time.monotonic()
        world = world_of(tmp_path, server, timeout=1, longest_wait=9)
        assert ask(world, "x").error is ErrorType.LIMIT
        assert time.monotonic() - began < PATIENCE
        assert len(server.seen) == 5


def test_a_server_that_is_not_there_breaks_the_episode(tmp_path):
    class Nowhere:
        url = "http://127.0.0.1:1"

    with pytest.raises(InfrastructureError, match=r"GET /x: the server cannot be asked"):
        ask(world_of(tmp_path, Nowhere), "x")


def test_a_name_that_leads_to_a_private_address_is_not_followed(tmp_path, monkeypatch):
    real = __import__("socket").getaddrinfo

    def resolved(host, port, *args, **options):
        names = {"api.example.com": "127.0.0.1", "meta.example.com": "169.254.169.254"}
        name = host.decode() if isinstance(host, bytes) else host
        return real(names.get(name, name), port, *args, **options)

    monkeypatch.setattr("socket.getaddrinfo", resolved)
    with serving() as server:
        port = server.server_port
        for name in ("api.example.com", "meta.example.com"):
            world = world_of(tmp_path, server, server=f"http://{name}:{port}")
            with pytest.raises(InfrastructureError, match="leads to the private address"):
                ask(world, "x")
        assert server.seen == []
        for named in ("127.0.0.1", "127.0.0.0/8"):
            world = world_of(
                tmp_path, server, server=f"http://api.example.com:{port}", hosts=[named]
            )
            assert ask(world, "x").error is None
        assert server.seen[-1].headers["host"] == f"api.example.com:{port}"
        assert ask(world_of(tmp_path, server, server=f"http://localhost:{port}"), "x").error is None


# ---- recorded answers ----------------------------------------------------------------------------


def counting():
    """A server whose every answer is another one."""
    lock, numbers = threading.Lock(), iter(range(10_000))

    def answer(request):
        with lock:
            return as_json({"n": next(numbers), "q": request.query})

    return serving(answer)


def test_a_replay_tells_the_same_without_a_network(tmp_path):
    calls = [("x", "a"), ("x", "a"), ("y", "a"), ("x", "b"), ("add", None), ("x", "a"), ("x", "a")]

    def played(world):
        return [shown(ask(world, name, **({} if q is None else {"q": q}))) for name, q in calls]

    with counting() as server:
        live = played(world_of(tmp_path, server, record=tmp_path / "r"))
        asked_times = len(server.seen)
        # Another run that records there is told the same: the first answer of a key stays.
        assert played(world_of(tmp_path, server, record=tmp_path / "r")) == live
        assert len(server.seen) == asked_times == 7
    assert len({text for text, _, _ in live}) == 7  # the same call twice is asked twice
    world = world_of(tmp_path, server, replay=tmp_path / "r")
    assert played(world) == live
    missing = ask(world, "y", q="other")
    assert missing.text == "Error: no answer is recorded for this call"
    world.reset(TASK)
    assert played(world) == live


def test_errors_are_replayed_too_and_an_unreachable_server_is_not_recorded(tmp_path):
    with serving(lambda request: as_json("no", 404)) as server:
        live = shown(ask(world_of(tmp_path, server, record=tmp_path / "r"), "x"))
    server.url = "http://127.0.0.1:1"
    with pytest.raises(InfrastructureError):
        ask(world_of(tmp_path, server, record=tmp_path / "r"), "y")
    world = world_of(tmp_path, server, replay=tmp_path / "r")
    assert shown(ask(world, "x")) == live
    assert "no answer is recorded" in ask(world, "y").text


def test_episodes_that_record_at_once_are_told_the_same(tmp_path):
    results = {}

    def episode(number, world):
        results[number] = [shown(ask(world, "x", q=str(n))) for n in range(8)]

    with counting() as server:
        worlds = [world_of(tmp_path, server, record=tmp_path / "r") for _ in range(6)]
        threads = [threading.Thread(target=episode, args=pair) for pair in enumerate(worlds)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    world = world_of(tmp_path, server, replay=tmp_path / "r")
    replayed = [shown(ask(world, "x", q=str(n))) for n in range(8)]
    assert list(results.values()) == [replayed] * 6


def test_recordings_that_cannot_be_used_are_said(tmp_path):
    with serving() as server:
        with pytest.raises(InputError, match="no recorded answers"):
            world_of(tmp_path, server, replay=tmp_path / "nothing")
        assert not (tmp_path / "nothing").exists()
        with pytest.raises(ValueError, match="either record or replay"):
            KIND.settings(file="x", record="a", replay="b")
        (tmp_path / "file").write_text("", encoding="utf-8")
        with pytest.raises(InputError, match="cannot be written"):
            world_of(tmp_path, server, record=tmp_path / "file")
        world = world_of(tmp_path, server, record=tmp_path / "r")
        ask(world, "x")
        with sqlite3.connect(tmp_path / "r" / "answers.sqlite") as cache:
            cache.execute("UPDATE texts SET value = 'x'")
        cache.close()
        replayed = world_of(tmp_path, server, replay=tmp_path / "r")
        assert "is damaged" in ask(replayed, "x").text


def test_forks_have_their_own_history(tmp_path):
    with counting() as server:
        world = world_of(tmp_path, server, record=tmp_path / "r", allow_writes=False)
        first = ask(world, "x", q="a").text
        other = world.fork()
        assert ask(world, "x", q="a").text == ask(other, "x", q="a").text != first
        with pytest.raises(CannotForkError):
            world_of(tmp_path, server).fork()
        assert world_of(tmp_path, server, replay=tmp_path / "r").fork() is not None
