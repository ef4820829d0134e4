"""Small records of ADP v1 JSON, for its tests."""

from __future__ import annotations

import base64
import json
from typing import Any

from adp.converters.adp_v1 import CONVERTER
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from tests.roundtrip import read_one, write_one

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(80))).decode()

USER: dict[str, Any] = {
    "class_": "text_observation",
    "content": "hi",
    "name": None,
    "source": "user",
}
ENV: dict[str, Any] = {**USER, "content": "out", "source": "environment"}
SAY: dict[str, Any] = {"class_": "message_action", "content": "done", "description": None}
API: dict[str, Any] = {
    "class_": "api_action",
    "function": "go",
    "kwargs": {"to": "x", "n": 1},
    "description": "I go",
}
CODE: dict[str, Any] = {
    "class_": "code_action",
    "language": "bash",
    "content": "ls",
    "description": None,
}
IMAGE: dict[str, Any] = {
    "class_": "image_observation",
    "content": "a/b.png",
    "annotations": None,
    "source": "environment",
}
WEB: dict[str, Any] = {
    "class_": "web_observation",
    "html": None,
    "axtree": "tree",
    "url": "http://x",
    "image_observation": IMAGE,
    "viewport_size": [1280, 720],
}


def record(*items: Any, **keys: Any) -> dict[str, Any]:
    return {"id": "r", "content": list(items), "details": {}, **keys}


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def read(data: bytes | dict[str, Any]) -> Trajectory:
    (trajectory,) = read_one(CONVERTER, dump(data) if isinstance(data, dict) else data)
    return trajectory


def assert_same(data: bytes | dict[str, Any]) -> Trajectory:
    data = dump(data) if isinstance(data, dict) else data
    losses = Losses()
    trajectory = read(data)
    assert write_one(CONVERTER, trajectory, losses) == data
    assert losses.items == []
    return trajectory


def record_with(item: str) -> bytes:
    return b'{"id":"r","content":[%s],"details":{}}' % item.encode()


def without(item: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != key}
