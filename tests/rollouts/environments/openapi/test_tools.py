"""From operations to tools: names, schemas, and what is wrong with an operation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from adp.rollouts.environments.openapi.environment import KIND
from adp.rollouts.environments.openapi.offer import offer_of
from adp_schema.errors import InputError, UsageError

HERE = Path(__file__).parent
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def offered(path, **settings):
    """What a file offers, with everything that settings can allow."""
    more = {"server": "http://127.0.0.1:9", "allow_writes": True, **settings}
    return offer_of(KIND.settings(file=path, **more))


def written(tmp_path, paths, **more):
    """A file of 3.0 with these paths."""
    path = tmp_path / "api.json"
    path.write_text(json.dumps({"openapi": "3.0.0", "paths": paths, **more}), encoding="utf-8")
    return path


def schemas_of(offer):
    return {item.tool.name: item.tool.parameters for item in offer.tools}


def operations_in(root):
    """A plain count of what a document lists."""
    return sum(len(METHODS & set(item)) for item in root["paths"].values())


def test_a_pet_store_becomes_tools():
    offer = offered(HERE / "pets.yaml")
    tools = schemas_of(offer)
    assert list(tools) == ["listPets", "addPet", "getPet", "deletePet", "renamePet", "addPets"]
    (missing,) = offer.left_out
    assert (missing.operation, missing.wrong) == ("POST /pets/{petId}/photo", True)
    assert missing.place == '$.paths["/pets/{petId}/photo"].post.requestBody.content'
    assert "image/png" in missing.reason
    assert offer.total == operations_in(yaml.safe_load((HERE / "pets.yaml").read_text("utf-8")))
    pets = tools["listPets"]["properties"]
    assert pets["limit"] == {"type": "integer", "exclusiveMinimum": 0}
    assert pets["status"] == {"type": ["string", "null"], "enum": ["available", "sold", "no", None]}
    assert tools["listPets"]["required"] == []
    assert tools["getPet"]["properties"]["petId"] == {
        "type": "integer",
        "description": "Which pet.",
    }
    assert tools["getPet"]["required"] == ["petId"]


def test_bodies_are_taken_apart_where_they_are_plain_objects():
    tools = schemas_of(offered(HERE / "pets.yaml"))
    pet = tools["addPet"]
    assert list(pet["properties"]) == ["name", "tag", "born", "parent"]  # an id is the server's
    assert pet["required"] == ["name"]
    assert pet["properties"]["name"] == {"type": "string", "description": "Pattern: ^[A-Z]"}
    assert pet["properties"]["tag"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert pet["properties"]["parent"] == {"$ref": "#/$defs/Pet"}
    assert list(pet["$defs"]) == ["Pet"]
    # A name that path and body have in common is told apart, and said.
    renamed = tools["renamePet"]["properties"]
    assert renamed["body_petId"]["description"] == "('petId' in the request)"
    assert list(tools["addPets"]["properties"]) == ["body"]


def test_every_schema_is_json_schema_and_circles_of_references_are_checked():
    for name in ("pets.yaml", "geo.json"):
        offer = offered(HERE / name, auth_env={"key": None} if name == "geo.json" else {})
        for parameters in schemas_of(offer).values():
            Draft202012Validator.check_schema(parameters)
    (tool,) = [
        item.tool for item in offered(HERE / "pets.yaml").tools if item.tool.name == "addPet"
    ]
    assert tool.wrong({"name": "A", "parent": {"name": "B", "parent": {"name": "C"}}}) is None
    assert "5 is not of type" in tool.wrong({"name": "A", "parent": {"name": 5}})


def test_names_are_valid_unique_and_stable(tmp_path):
    paths = {
        "/a.b": {"get": {"operationId": "a.b"}},
        "/a-b": {"get": {"operationId": "a b"}},
        "/ä/{x}": {"get": {"parameters": [path_parameter("x")]}},
        "/long": {"get": {"operationId": "x" * 300}},
        "/long2": {"get": {"operationId": "x" * 299}},
        "/odd": {"get": {"operationId": "☃"}},
    }
    names = list(schemas_of(offered(written(tmp_path, paths), longest_name=64)))
    assert names[:3] == ["a_b", "a_b_2", "get_x"]
    assert names[5] == "operation"
    assert len(set(names)) == 6
    assert all(len(name) <= 64 and name.isascii() for name in names)


def path_parameter(name):
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def get(**about):
    return {"/x": {"get": about}}


def query(schema, **more):
    return get(parameters=[{"name": "q", "in": "query", "schema": schema, **more}])


WRONG = [
    ({"/x/{id}": {"get": {}}}, "names {id}", '$.paths["/x/{id}"].get'),
    (get(parameters=[path_parameter("id")]), "no place in its path", '$.paths["/x"].get'),
    ({"x": {"get": {}}}, "does not begin with /", "$.paths.x.get"),
    ({"/x": 5}, "is no object", '$.paths["/x"]'),
    ({"/x": {"get": []}}, "is no object", '$.paths["/x"].get'),
    ({"/x": {"$ref": "other.yaml#/x"}}, "leads out of the file", '$.paths["/x"]["$ref"]'),
    (query({"$ref": "#/components/schemas/No"}), "leads nowhere", ".parameters[0].schema"),
    (query({"$ref": "http://h/x"}), "leads out", ".parameters[0].schema"),
    (query({"$ref": "#/components/schemas/Loop"}), "in a circle", "$.components.schemas.Pool"),
    (query({"$ref": "#/components/schemas/Self"}), "made of itself", ".parameters[0].schema"),
    (query({"$ref": "#/components/schemas/Bad"}), "is not a type", "$.components.schemas.Bad.type"),
    (query({"$ref": 5}), "is no text", ".parameters[0].schema"),
    (query({"type": "int"}), "'int' is not a type", ".schema.type"),
    (query({"enum": []}), "is not a list of values", ".schema.enum"),
    (query({"minimum": "1"}), "is not a number", ".schema.minimum"),
    (query(5), "is no schema", ".parameters[0].schema"),
    (query({}, style="matrix"), "none of a parameter in query", ".parameters[0].style"),
    (get(parameters=5), "is no list", ".parameters"),
    (get(parameters=[{"in": "query"}]), "has no name", ".parameters[0]"),
    (get(parameters=[{"name": "x", "in": "body"}]), "cannot be in 'body'", ".parameters[0].in"),
    (get(parameters=[{"name": "x y", "in": "header"}]), "no name of a header", "[0].name"),
    (
        get(parameters=[{"name": "Host", "in": "header", "required": True}]),
        "by the connection alone",
        ".parameters[0]",
    ),
    (
        get(parameters=[{"name": "x", "in": "query"}, {"name": "x", "in": "query"}]),
        "stands twice",
        ".parameters[1]",
    ),
    (get(requestBody={}), "has no content", ".requestBody"),
    (get(requestBody={"content": {"application/xml": {}}}), "xml is not supported", ".content"),
    (get(security=5), "no list of requirements", ".security"),
    (get(operationId=5), "operationId is no text", ".operationId"),
]
COMPONENTS = {
    "schemas": {
        "Loop": {"$ref": "#/components/schemas/Pool"},
        "Pool": {"$ref": "#/components/schemas/Loop"},
        "Self": {"allOf": [{"$ref": "#/components/schemas/Self"}]},
        "Bad": {"type": "date", "items": {"$ref": "#/components/schemas/Self"}},
    }
}


@pytest.mark.parametrize(("paths", "reason", "place"), WRONG)
def test_an_operation_that_is_wrong_is_named_with_its_place(tmp_path, paths, reason, place):
    path = written(tmp_path, {**paths, "/good": {"get": {}}}, components=COMPONENTS)
    offer = offered(path)
    (missing,) = offer.left_out
    assert reason in missing.reason
    assert place in missing.place
    assert missing.wrong
    assert (len(offer.tools), offer.total) == (1, 2)
    with pytest.raises(UsageError, match="1 of 2 operations cannot be tools"):
        offered(path, strict=True)


def test_an_operation_id_that_stands_twice_is_that_of_the_first(tmp_path):
    paths = {"/a": {"get": {"operationId": "same"}}, "/b": {"get": {"operationId": "same"}}}
    offer = offered(written(tmp_path, paths))
    assert [item.operation.path for item in offer.tools] == ["/a"]
    assert offer.left_out[0].reason == "its operationId 'same' is that of GET /a, too"


def test_settings_leave_operations_out_and_say_which_setting_offers_them():
    offer = offer_of(KIND.settings(file=HERE / "pets.yaml"))
    reasons = {item.operation: item.reason for item in offer.left_out if not item.wrong}
    assert "hosts=[pets.example.com] allows it" in reasons["GET /pets"]
    assert "allow_writes=true" in reasons["POST /pets"]
    assert len(offer.tools) == 0
    offer = offer_of(KIND.settings(file=HERE / "pets.yaml", hosts=["pets.example.com"]))
    assert [item.base for item in offer.tools] == ["https://pets.example.com/v1"] * 2
    offer = offered(HERE / "geo.json")
    assert [item.tool.name for item in offer.tools] == ["tile"]
    assert {item.reason.partition(":")[0] for item in offer.left_out} == {
        "it needs the security scheme 'key'",
        "it needs the security scheme 'signed'",
    }
    named = offer_of(KIND.settings(file=HERE / "geo.json", hosts=["eu.geo.example.com"]))
    assert {item.base for item in named.tools} == {"https://eu.geo.example.com/v2"}
    with pytest.raises(UsageError, match="has no tool nothing"):
        offered(HERE / "pets.yaml", only=["nothing"])
    with pytest.raises(UsageError, match="no security scheme of the file; it has: basic, key"):
        offered(HERE / "geo.json", auth_env={"keys": "X"})


SWAGGER = {
    "swagger": "2.0",
    "host": "old.example.com",
    "basePath": "/api",
    "schemes": ["http", "https"],
    "definitions": {"Item": {"type": "object", "properties": {"a": {"type": "string"}}}},
    "parameters": {"page": {"name": "page", "in": "query", "type": "integer"}},
    "paths": {
        "/items": {
            "get": {
                "operationId": "items",
                "parameters": [
                    {"$ref": "#/parameters/page"},
                    {"name": "ids", "in": "query", "type": "array", "items": {"type": "integer"},
                     "collectionFormat": "pipes"},
                ],
            },
            "post": {
                "operationId": "add",
                "parameters": [
                    {"name": "item", "in": "body", "required": True,
                     "schema": {"$ref": "#/definitions/Item"}}
                ],
            },
            "put": {
                "operationId": "form",
                "parameters": [
                    {"name": "a", "in": "formData", "type": "string", "required": True},
                    {"name": "b", "in": "formData", "type": "array", "items": {"type": "string"},
                     "collectionFormat": "multi"},
                ],
            },
            "patch": {
                "operationId": "upload",
                "consumes": ["multipart/form-data"],
                "parameters": [{"name": "f", "in": "formData", "type": "file"}],
            },
        }
    },
}  # fmt: skip


def test_swagger_is_read(tmp_path):
    path = tmp_path / "swagger.json"
    path.write_text(json.dumps(SWAGGER), encoding="utf-8")
    offer = offer_of(KIND.settings(file=path, hosts=["old.example.com"], allow_writes=True))
    tools = schemas_of(offer)
    assert list(tools) == ["items", "add", "form"]
    assert list(tools["items"]["properties"]) == ["page", "ids"]
    assert list(tools["add"]["properties"]) == ["a"]
    assert tools["form"]["required"] == ["a"]
    assert {item.base for item in offer.tools} == {"https://old.example.com/api"}
    assert "multipart/form-data is not supported" in offer.left_out[0].reason


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("a.json", "{", "cannot be read as JSON"),
        ("a.json", "[]", "no OpenAPI document"),
        ("a.json", "{}", "no OpenAPI document"),
        ("a.json", '{"openapi": "4.0.0"}', "version 4.0.0"),
        ("a.json", '{"swagger": 1.2}', "version 1.2"),
        ("a.json", '{"openapi": "3.0.0", "paths": []}', "'paths' is no object"),
        ("a.json", '{"openapi": "3.0.0", "paths": {"/a": {}, "/a": {}}}', "given twice"),
        ("a.yaml", "openapi: 3.0.0\npaths:\n  /a: {}\n  /a: {}\n", "line 4: the key '/a'"),
        ("a.yaml", "openapi: [", "not valid YAML"),
        ("a.yaml", "a: !!python/object:os.system x", "none of JSON"),
        ("a.yaml", "", "no OpenAPI document"),
        ("a.json", "[" * 5000 + "]" * 5000, "deep"),
        ("a.yaml", "[" * 100_000 + "]" * 100_000, "deep"),
        ("a.yaml", "a: &x [*x]", "holds itself"),
        ("a.yaml", "a: &a {b: 1}\nc: {<<: *a}", "merge keys"),
        (
            "a.yaml",
            "a0: &a0 [x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)),
            "values",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, name, text, part):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=part) as caught:
        offered(path)
    assert len(str(caught.value)) < 700


def test_a_file_that_is_not_there_or_no_text_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        offered(tmp_path / "nothing.yaml")
    (tmp_path / "a.json").write_bytes(b'{"openapi": "3.0.\xff"}')
    with pytest.raises(InputError, match="no UTF-8"):
        offered(tmp_path / "a.json")


def test_yaml_and_json_of_one_document_give_the_same_tools(tmp_path):
    root = json.loads((HERE / "geo.json").read_text("utf-8"))
    path = tmp_path / "geo.yaml"
    path.write_text(yaml.safe_dump(root), encoding="utf-8")
    settings = {"auth_env": dict.fromkeys(("key", "basic", "token", "signed"))}
    tools = schemas_of(offered(path, **settings))
    assert tools == schemas_of(offered(HERE / "geo.json", **settings))
    assert len(tools) == 4
