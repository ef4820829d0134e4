"""What is sent: every style, read back by a plain reader of that style."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qsl, unquote, unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.environments.openapi.document import ApiDocument
from adp.rollouts.environments.openapi.environment import KIND
from adp.rollouts.environments.openapi.operations import read_operations
from adp.rollouts.environments.openapi.request import parts_of
from adp.rollouts.tools import ToolError
from adp.rollouts.turns import Call, ErrorType, Turn
from tests.rollouts.environments.openapi.api_server import as_json, serving

HERE = Path(__file__).parent
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
FILLED = TEXT.filter(bool)
OBJECT = st.dictionaries(FILLED, TEXT, min_size=1, max_size=3)
LIST = st.lists(TEXT, min_size=2, max_size=4)


def parts(where, value, path="/x", **about):
    parameter = {"name": "v", "in": where, "schema": {}, "required": where == "path", **about}
    root = {"openapi": "3.1.0", "paths": {path: {"get": {"parameters": [parameter]}}}}
    (operation,), faults = read_operations(ApiDocument(root), 64)
    assert not faults
    return parts_of(operation, {"v": value})


def split_query(result):
    """Names and values as they were sent, not yet decoded."""
    return [tuple(pair.split("=", 1)) for pair in result.query]


# ---- queries -------------------------------------------------------------------------------------


@given(LIST)
def test_a_list_of_style_form_is_a_pair_for_each(value):
    assert parse_qsl("&".join(parts("query", value).query), keep_blank_values=True) == [
        ("v", item) for item in value
    ]


@pytest.mark.parametrize(
    ("style", "sign"), [("form", ","), ("spaceDelimited", "%20"), ("pipeDelimited", "%7C")]
)
@given(value=LIST)
def test_a_list_that_is_not_exploded_is_one_pair(style, sign, value):
    ((name, text),) = split_query(parts("query", value, style=style, explode=False))
    assert name == "v"
    assert [unquote(item) for item in text.split(sign)] == value


@given(OBJECT)
def test_objects_in_queries(value):
    sent = parse_qsl("&".join(parts("query", value).query), keep_blank_values=True)
    assert dict(sent) == value
    ((_, text),) = split_query(parts("query", value, explode=False))
    words = [unquote(word) for word in text.split(",")]
    assert dict(zip(words[::2], words[1::2], strict=True)) == value
    pairs = "&".join(parts("query", value, style="deepObject").query)
    assert parse_qsl(pairs, keep_blank_values=True) == [
        (f"v[{key}]", item) for key, item in value.items()
    ]
    content = {"application/json": {"schema": {}}}
    ((_, text),) = split_query(parts("query", value, content=content))
    assert json.loads(unquote(text)) == value


def test_numbers_words_and_nothing():
    assert parts("query", 1.5).query == ["v=1.5"]
    assert parts("query", True).query == ["v=true"]
    assert parts("query", None).query == []
    assert parts("query", []).query == []
    assert parts("query", "a/b?c&d", allowReserved=True).query == ["v=a/b?c%26d"]
    nested = {"a": {"b": [1, 2]}}
    assert parts("query", nested, style="deepObject").query == [
        "v%5Ba%5D%5Bb%5D=1",
        "v%5Ba%5D%5Bb%5D=2",
    ]


# ---- paths ---------------------------------------------------------------------------------------


@given(FILLED)
def test_a_text_is_always_one_part_of_the_path(value):
    if value in (".", ".."):
        with pytest.raises(ToolError):
            parts("path", value, "/a/{v}/b")
        return
    _, first, text, last = parts("path", value, "/a/{v}/b").path.split("/")
    assert (first, unquote(text), last) == ("a", value, "b")


@given(st.lists(FILLED, min_size=1, max_size=3))
def test_lists_in_paths(value):
    if not (len(value) == 1 and value[0] in (".", "..")):
        text = parts("path", value, "/{v}").path[1:]
        assert [unquote(item) for item in text.split(",")] == value
    if value != ["."]:
        # A dot may stand in a text, too: the style itself cannot tell them apart.
        text = parts("path", value, "/{v}", style="label", explode=True).path
        assert unquote(text) == "/." + ".".join(value)
    text = parts("path", value, "/{v}", style="matrix", explode=True).path[1:]
    assert [unquote(pair.removeprefix("v=")) for pair in text.split(";")[1:]] == value


def test_objects_in_paths_as_the_standard_shows_them():
    color = {"R": 100, "G": 200, "B": 150}
    shown = {
        ("simple", False): "/R,100,G,200,B,150",
        ("simple", True): "/R=100,G=200,B=150",
        ("label", False): "/.R,100,G,200,B,150",
        ("label", True): "/.R=100.G=200.B=150",
        ("matrix", False): "/;v=R,100,G,200,B,150",
        ("matrix", True): "/;R=100;G=200;B=150",
    }
    for (style, explode), path in shown.items():
        assert parts("path", color, "/{v}", style=style, explode=explode).path == path


def test_an_empty_path_is_refused():
    for value in ("", None, []):
        with pytest.raises(ToolError, match="must not be empty") as caught:
            parts("path", value, "/{v}")
        assert caught.value.kind is ErrorType.INVALID_ARGS


# ---- headers and cookies -------------------------------------------------------------------------


def test_headers_and_cookies():
    assert parts("header", ["a", 1]).headers == {"v": "a,1"}
    assert parts("header", {"a": 1, "b": 2}, explode=True).headers == {"v": "a=1,b=2"}
    assert parts("cookie", "a; b=c").cookies == ["v=a%3B%20b%3Dc"]
    for value in ("a\r\nX: y", "ä", "\0"):
        with pytest.raises(ToolError, match="printable ASCII"):
            parts("header", value)


# ---- whole requests ------------------------------------------------------------------------------


def ask(world, name, /, **arguments):
    (result,) = world.step(Turn(calls=(Call(name, json.dumps(arguments)),))).results
    return result


@pytest.fixture(scope="module")
def server():
    with serving() as running:
        yield running


def world_of(name, server, **settings):
    more = {"server": server.url + "/v1", "allow_writes": True, "timeout": 60, **settings}
    return KIND.make(KIND.settings(file=HERE / name, **more))


def test_requests_of_the_pet_store(server):
    world = world_of("pets.yaml", server)
    assert ask(world, "listPets", tags=["a b", "c&d"], limit=5, status="no").text == '{"ok": true}'
    request = server.seen[-1]
    assert (request.method, request.path) == ("GET", "/v1/pets")
    assert parse_qsl(request.query) == [
        ("tags", "a b"), ("tags", "c&d"), ("limit", "5"), ("status", "no")
    ]  # fmt: skip
    ask(world, "addPet", name="Ada", parent={"name": "Bo"})
    assert (server.seen[-1].method, server.seen[-1].headers["content-type"]) == (
        "POST",
        "application/json",
    )
    assert json.loads(server.seen[-1].body) == {"name": "Ada", "parent": {"name": "Bo"}}
    ask(world, "addPets", body=[{"name": "Ä"}])
    assert json.loads(server.seen[-1].body) == [{"name": "Ä"}]
    ask(world, "addPets")
    assert (server.seen[-1].body, "content-type" in server.seen[-1].headers) == (b"", False)
    body = {"name": "x y&z", "body_petId": "8", "tags": ["a", "b"], "home": {"city": "Ü"}}
    ask(world, "renamePet", petId=7, **body)
    request = server.seen[-1]
    assert (request.method, request.path) == ("PATCH", "/v1/pets/7")
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    pairs = [tuple(map(unquote_plus, p.split("="))) for p in request.body.decode().split("&")]
    assert pairs == [
        ("name", "x y&z"), ("petId", "8"), ("tags", "a"), ("tags", "b"), ("home", '{"city":"Ü"}')
    ]  # fmt: skip
    ask(world, "deletePet", petId=7, api_key="k")
    assert (server.seen[-1].method, server.seen[-1].headers["api_key"]) == ("DELETE", "k")


def test_requests_of_the_weather(server, monkeypatch):
    monkeypatch.setenv("GEO", "geo-secret")
    monkeypatch.setenv("WHO", "ada:pass word")
    monkeypatch.setenv("TOKEN", "token-secret")
    auth = {"key": "GEO", "basic": "WHO", "token": "TOKEN"}
    world = world_of("geo.json", server, auth_env=auth)
    arguments = {"lat": 1.5, "lon": -2, "fields": ["t", "w,x"], "X-Units": "metric", "session": "s"}
    assert ask(world, "forecast_at", **arguments).error is None
    request = server.seen[-1]
    assert (request.path, request.query) == ("/v1/forecast/1.5,-2", "fields=t,w%2Cx")
    assert request.headers["x-units"] == "metric"
    assert request.headers["x-api-key"] == "geo-secret"
    assert request.headers["cookie"] == "session=s"
    ask(world, "get_search", filter={"kind": "k", "height": {"min": 3}}, box=[1, 2.5],
        names=["a b", "c"], area={"r": 1}, top=3)  # fmt: skip
    query = server.seen[-1].query
    assert parse_qsl(query) == [
        ("filter[kind]", "k"), ("filter[height][min]", "3"), ("box", "1|2.5"),
        ("names", "a b c"), ("area", '{"r":1}'), ("$top", "3"),
    ]  # fmt: skip
    ask(world, "tile", layer=["a", "b"], zoom=3)
    assert server.seen[-1].path == "/v1/tiles.a.b;zoom=3"
    assert server.seen[-1].headers["authorization"] == "Basic YWRhOnBhc3Mgd29yZA=="
    ask(world, "me")
    assert server.seen[-1].headers["authorization"] == "Bearer token-secret"
    assert server.seen[-1].headers["x-api-key"] == "geo-secret"


def test_what_a_text_says_as_a_number_fits_outside_of_bodies(server):
    world = world_of("pets.yaml", server)
    assert ask(world, "getPet", petId="7").error is None
    assert server.seen[-1].path == "/v1/pets/7"
    for wrong in ("seven", "7.5", "", None, [7]):
        assert ask(world, "getPet", petId=wrong).error is ErrorType.INVALID_ARGS
    assert ask(world, "addPet", name=7).error is ErrorType.INVALID_ARGS
    assert ask(world, "addPet", name="A", more=1).error is ErrorType.INVALID_ARGS
    assert ask(world, "listPets", status="nothing").error is ErrorType.INVALID_ARGS
    assert ask(world, "addPets", body=[{"name": "A", "tag": {}}]).error is ErrorType.INVALID_ARGS


def test_the_server_of_the_test_answers_as_it_is_told():
    assert as_json([1], X_A="b") == (200, {"Content-Type": "application/json", "X-A": "b"}, b"[1]")
