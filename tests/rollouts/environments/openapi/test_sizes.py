"""Large documents: one that is published, where a variable names it, and some that mean harm."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from adp.cli.main import main
from adp.rollouts.environments.openapi.environment import KIND
from adp.rollouts.environments.openapi.offer import offer_of
from adp_schema.errors import UsageError

HERE = Path(__file__).parent
LARGE = os.environ.get("ADP_OPENAPI_DOCUMENT", "")
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def offered(path):
    settings = KIND.settings(file=path, server="http://127.0.0.1:9", allow_writes=True)
    return offer_of(settings)


@pytest.mark.skipif(not LARGE, reason="ADP_OPENAPI_DOCUMENT names no document in JSON")
def test_the_operations_of_a_published_document_are_all_counted():
    offer = offered(Path(LARGE))
    root = json.loads(Path(LARGE).read_text("utf-8"))
    total = sum(len(METHODS & set(item)) for item in root["paths"].values())
    assert len(offer.tools) + len(offer.left_out) == total
    assert len({item.tool.name for item in offer.tools}) == len(offer.tools)
    assert all(item.reason and item.place.startswith("$") for item in offer.left_out)


def test_many_operations_with_odd_names_are_all_counted(tmp_path):
    path = tmp_path / "many.json"
    parameter = {"name": "a[é]", "in": "query", "schema": {"$ref": "#/components/schemas/S"}}
    paths = {
        f"/é {number}": {"get": {"operationId": f"☃ {number % 4999}", "parameters": [parameter]}}
        for number in range(5000)
    }
    schemas = {"S": {"properties": {"s": {"$ref": "#/components/schemas/S"}}}}
    root = {"openapi": "3.0.0", "paths": paths, "components": {"schemas": schemas}}
    path.write_text(json.dumps(root), encoding="utf-8")
    offer = offered(path)
    assert (len(offer.tools), len(offer.left_out)) == (4999, 1)
    assert list(offer.tools[0].tool.parameters["properties"]) == ["a"]


def test_schemas_without_an_end_are_left_out(tmp_path):
    path = tmp_path / "ring.json"
    schemas = {
        f"S{number}": {"properties": {"n": {"$ref": f"#/components/schemas/S{number + 1}"}}}
        for number in range(2000)
    }
    schemas["S2000"] = {}
    parameter = {"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/S0"}}
    paths = {"/a": {"get": {"parameters": [parameter]}}}
    root = {"openapi": "3.0.0", "paths": paths, "components": {"schemas": schemas}}
    path.write_text(json.dumps(root), encoding="utf-8")
    assert "more than 1,000 times" in offered(path).left_out[0].reason


def test_too_many_values_are_refused_before_they_are_made(tmp_path):
    path = tmp_path / "lists.json"
    path.write_text('{"openapi": "3.0.0", "x": [' + "[]," * 3_100_000 + "1]}", encoding="utf-8")
    with pytest.raises(UsageError, match="more than 6,000,000 values"):
        offered(path)


def test_the_list_of_tools_counts_and_names_what_is_left_out(capsys):
    spec = f"openapi:file={HERE / 'pets.yaml'},server=http://127.0.0.1:9"
    assert main(["collect", "--env", spec, "--list"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "getPet(petId: integer)" in shown
    assert "7 operations: 2 tools, 5 left out" in shown
    assert "POST /pets/{petId}/photo: a body of image/png is not supported - at $.paths" in shown
    assert "4 x it may change something: allow_writes=true offers it" in shown
    assert main(["collect", "--env", spec, "--list", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["tools"]) + len(report["left_out"]) == 7
    assert [item["operation"] for item in report["left_out"] if item["wrong"]] == [
        "POST /pets/{petId}/photo"
    ]
