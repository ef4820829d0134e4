"""M3's reference runs against a live server that an OpenAPI file in the style of BIRD describes."""

from __future__ import annotations

import ast
import itertools
import json
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

import adp
from adp.cli.main import main
from adp.rollouts.environments.m3 import KIND, M3Environment, M3Settings
from adp.rollouts.environments.openapi.environment import KIND as OPENAPI
from adp.rollouts.turns import Call, ErrorType, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task
from adp_schema.store import Store
from tests.rollouts.environments.openapi.api_server import as_json, serving

GOLD = Path(__file__).parents[4].parent / "shared" / "data" / "m3" / "bird-latest"
shared = pytest.mark.skipif(not GOLD.exists(), reason="the reference data are not here")

TOWNS = ("oslo", "rome", "lima")
FACTS = ("count", "owner", "area")


def name_of(fact, town):
    """An operationId as FastAPI makes it: the function, the path, the method."""
    return f"get_{fact}_by_name_v1_bird_{town}_trees_{fact}_by_name_get"


def tool(name, /, **kinds):
    """A tool of M3: the properties alone are its parameters."""
    return {"name": name, "description": f"Get {name}", "parameters": kinds}


def bird_file(path, tools):
    """An OpenAPI file with a GET for each tool, whose parameters are in the query."""
    paths = {
        f"/v1/{entry['name']}": {
            "get": {
                "operationId": entry["name"],
                "summary": entry["description"],
                "parameters": [
                    {"name": name, "in": "query", "required": True, "schema": schema}
                    for name, schema in (entry.get("parameters") or {}).items()
                ],
                "responses": {"200": {"description": "ok"}},
            }
        }
        for entry in tools
    }
    root = {"openapi": "3.1.0", "info": {"title": "BIRD", "version": "1"}, "paths": paths}
    path.write_text(json.dumps(root), encoding="utf-8")
    return path


@pytest.fixture
def bird(tmp_path):
    """A file with many GETs."""
    tools = [
        tool(
            name_of(fact, town), name={"type": "string", "title": "Name"}, limit={"type": "integer"}
        )
        for town in TOWNS
        for fact in FACTS
    ]
    return bird_file(tmp_path / "bird.json", tools)


def task_with(calls, answer="Twelve."):
    """A task whose reference run makes these calls, with their recorded answers."""
    steps = [{"input": "How many?"}]
    for name, arguments, response in calls:
        output = {"name": name, "arguments": arguments}
        steps += [{"plan": "p", "output": output}, {"response": response}]
    steps.append({"plan": "seen", "answer": answer})
    shown = [
        {"type": "function", "function": {
            "name": name, "parameters": {"type": "object", "properties": {}, "required": []}}}
        for name, _, _ in calls
    ]  # fmt: skip
    return Task(
        task_id="t",
        instruction="How many?",
        gold_trajectory=json.dumps([steps]),
        environment_config=json.dumps({"tools": shown, "doc_collections": ["gardens"]}),
    )


def ask(world, name, /, **arguments):
    (result,) = world.step(Turn(calls=(Call(name, json.dumps(arguments)),))).results
    return result


def test_calls_are_answered_by_the_server_and_documents_by_the_recording(bird):
    documents = {"collection": "gardens", "query": "mill"}
    count = name_of("count", "oslo")
    counted = (count, {"name": "Mill", "limit": "3"}, "{'n': 1}")
    task = task_with([counted, ("retrieve_documents", documents, "Old.")])
    with serving(lambda request: as_json({"n": 12, "of": None})) as server:
        world = M3Environment(M3Settings(api=f"openapi:file={bird},server={server.url}"))
        assert world.blocking
        world.reset(task, seed=1)
        # A number that is given as a text is sent like the number.
        result = ask(world, count, name="Mill", limit="3")
        assert result.text == "ToolCallSuccessful: {'n': 12, 'of': None}"
        assert parse_qsl(server.seen[-1].query) == [("name", "Mill"), ("limit", "3")]
        assert ask(world.fork(), count, name="X", limit=1).error is None
        assert ask(world, "retrieve_documents", **documents).text == "ToolCallSuccessful: Old."
        wrong = ask(world, count, name="Mill")
        assert wrong.error is ErrorType.INVALID_ARGS
        assert wrong.text.startswith("ToolMissingArgumentError: ")
        server.answer = lambda request: as_json({"detail": "no"}, 500)
        assert ask(world, count, name="Y", limit=1).text.startswith("ToolCallError: HTTP 500")
    assert len(server.seen) == 3
    world.close()


def test_what_cannot_be_the_api_is_said(bird):
    spec = f"openapi:file={bird},server=http://127.0.0.1:1"
    with pytest.raises(UsageError, match="either inner or api"):
        M3Environment(M3Settings(api=spec, inner="calculator"))
    with pytest.raises(UsageError, match="no functions"):
        M3Environment(M3Settings(api="mcp:url=http://127.0.0.1:1/mcp"))


def gold_server(samples):
    """A server that knows what the reference runs were answered, by operation and query."""
    known = {}
    for sample in samples:
        for turn in sample["trajectory"]:
            for asked, got in itertools.pairwise(turn):
                if isinstance(asked.get("output"), dict) and "response" in got:
                    call = asked["output"]
                    query = frozenset((k, str(v)) for k, v in call["arguments"].items())
                    known[call["name"], query] = got["response"]

    def answer(request):
        key = request.path.rpartition("/")[2], frozenset(parse_qsl(request.query))
        if key not in known:
            return as_json({"detail": "not found"}, 404)
        return as_json(ast.literal_eval(known[key]))

    return known, serving(answer)


@shared
def test_the_reference_runs_are_answered_live_as_they_were_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (file,) = GOLD.rglob("*.json")
    samples = json.loads(file.read_text("utf-8"))
    tools = {entry["name"]: entry for sample in samples for entry in sample["tools"]}
    tools.pop("retrieve_documents")
    path = bird_file(tmp_path / "bird.json", tools.values())
    known, running = gold_server(samples)
    with running as server:
        world = OPENAPI.make(OPENAPI.settings(file=path, server=server.url))
        assert {t["function"]["name"] for t in world.tools()} == set(tools)
        for (name, query), response in known.items():
            result = ask(world, name, **dict(query))
            assert (result.error, str(result.structured)) == (None, response), name
        asked_directly = len(server.seen)
        assert asked_directly == len(known) > 5
        # The same by the commands, with recorded answers, and again without the server.
        adp.convert([str(GOLD)], "m3s")
        spec = 'm3:store=m3s,api="openapi:file=bird.json,server={url},{way}=answers"'
        words = ["collect", "--policy", "expert", "--tasks", "test:3", "--env"]
        assert main([*words, spec.format(url=server.url, way="record"), "-o", "live"]) == 0
        assert "success: 1.000" in capsys.readouterr().out
        assert len(server.seen) > asked_directly
        asked_in_all = len(server.seen)
    assert main([*words, spec.format(url=server.url, way="replay"), "-o", "again"]) == 0
    assert "success: 1.000" in capsys.readouterr().out
    assert len(server.seen) == asked_in_all
    assert observed("live") == observed("again") == observed_in(samples[:3])


def observed(store):
    """What the agent was told, by task."""
    return {
        run.task_id: [step.observations[0].text for step in run.steps if step.observations]
        for run in Store.open(store).trajectories()
    }


def observed_in(samples):
    return {
        sample["sample_id"]: [
            f"ToolCallSuccessful: {item['response']}"
            for turn in sample["trajectory"]
            for item in turn
            if "response" in item
        ]
        for sample in samples
    }


def test_the_kind_takes_its_tasks_from_the_store_alone():
    with pytest.raises(UsageError, match="m3:store=STORE"):
        KIND.tasks(M3Settings(api="calculator"), "test", None, 0)
