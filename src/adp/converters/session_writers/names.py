"""Ids and folders of sessions that are written."""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from typing import NamedTuple

from adp.converters.session_writers.values import text_at
from adp_schema.extra_column import unpack
from adp_schema.model import Trajectory

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_uuid(text: str | None) -> bool:
    """Whether a text is a UUID in small letters."""
    return text is not None and _UUID.fullmatch(text) is not None


def uuid_of(*names: str | int) -> str:
    """The UUID that stands for some names; the same ones always give the same."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "\0".join(map(str, names))))


def cwd_of(extra: str | None) -> str:
    """The folder that an agent worked in, as readers keep it in ``extra``; ``/`` when unknown."""
    fields = unpack(extra).fields
    return text_at(fields, "cwd") or text_at(fields, "directory") or "/"


def session_word(run: NamedRun | Trajectory) -> str:
    """The id of a session that may be any word: the source's own when it may name a file."""
    name = run.source_id or ""
    return name if _WORD.fullmatch(name) else session_uuid(run)


def opencode_id(run: NamedRun | Trajectory) -> str:
    """The id of a session of opencode, which begins with ``ses``."""
    name = run.source_id or ""
    if name.startswith("ses") and _WORD.fullmatch(name):
        return name
    return f"ses_{uuid_of(run.trajectory_id or '').replace('-', '')[:26]}"


_PROVIDERS = (("claude", "anthropic"), ("gemini", "google"), ("gpt", "openai"), ("o1", "openai"),
              ("o3", "openai"), ("o4", "openai"), ("codex", "openai"))  # fmt: skip


def provider_of(model: str | None) -> str:
    """Who offers a model, as far as its name shows it; ``unknown`` otherwise."""
    name = (model or "").rpartition("/")[2]
    return next((who for begin, who in _PROVIDERS if name.startswith(begin)), "unknown")


class NamedRun(NamedTuple):
    """The columns of a trajectory that the name of its file may be made of.

    Most are made of the first three (`adp.converters.trajectories_by_file.NAMING`).
    """

    source_file: str | None = None
    dataset: str | None = None
    trajectory_id: str | None = None
    source_id: str | None = None
    started_at: datetime | None = None
    extra: str | None = None
    parent_id: str | None = None
    branch_kind: str | None = None
    source_format: str | None = None
    policy_tool_availability: str | None = None


def session_uuid(run: NamedRun | Trajectory) -> str:
    """The id of a session that needs a UUID: the source's own, or one made of the trajectory's."""
    name = run.source_id or ""
    return name if is_uuid(name) else uuid_of(run.trajectory_id or "")
