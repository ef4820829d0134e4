"""A run of M3 from its own ``infer_agent.json``: collecting and evaluating.

The reference data become a store beside the output, ``OUT-reference-HASH``, which is made once.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.converters.run import convert
from adp.core.config_mapping import MappedConfig
from adp.core.input_files import read_text
from adp.rollouts.readers.infer_agent import is_infer_agent, read_infer_agent
from adp.rollouts.readers.infer_provider import Provider
from adp.rollouts.spec import Named, spec_text
from adp_schema.errors import InputError, StoreError, UsageError
from adp_schema.ids import digest_file
from adp_schema.store import Store

_OUTCOMES = ("truncated", "terminated", "success")


@dataclass(frozen=True)
class M3Run:
    """What a configuration says about a run.

    Attributes:
        mapped: what became of each setting.
        env: the environment with its settings.
        policy: the policy; None where the call has to name one.
        expert_mode: spec of the expert; None without one.
        tasks: store of the tasks.
        max_turns: turns of an episode, at most.
        skip: tasks at the beginning that are left out.
        notes: what else to say.
    """

    mapped: MappedConfig
    env: Named
    policy: Named | None
    expert_mode: str | None
    tasks: str
    max_turns: int | None
    skip: int = 0
    notes: list[str] = field(default_factory=list)

    def options(self) -> dict[str, Any]:
        """What of `adp.rollouts.collecting.collect_options.CollectOptions` it says."""
        names = ("env", "policy", "expert_mode", "tasks", "max_turns", "skip")
        return {name: getattr(self, name) for name in names}


def read_m3_run(path: str, out: str, *, policy: bool = False) -> M3Run:
    """Read a configuration, and convert the reference data that it names.

    Paths in the file are those of the working folder, as in M3; what is not there is looked for
    beside the file and in the folder above it.

    Args:
        path: the file.
        out: folder of the store that the run is to fill.
        policy: whether the call names a policy of its own.

    Raises:
        UsageError: it is no such file, or a value in it is wrong.
        InputError: a file that it names cannot be read.
    """
    given = _object(Path(path))
    if not is_infer_agent(given):
        raise UsageError(
            f"{path} is no infer_agent.json of M3: it lacks path_to_env_data, horizon and the like"
        )
    place = Path(path).parent
    variables = given.get("path_to_env_vars")
    _set_variables(_path_of(variables, place) if isinstance(variables, str) else None)
    hf: Mapping[str, Any] = {}
    if given.get("is_hf_agent") and isinstance(given.get("path_to_hf_config"), str):
        hf = _object(_path_of(given["path_to_hf_config"], place))
    provider = Provider(dict(os.environ), hf, policy, lambda name: _path_of(name, place))
    mapped = read_infer_agent(given, provider)
    plain = mapped.plain
    store = _reference(_path_of(str(plain["data"]), place), out)
    skip = plain.get("resume", 0)
    if not isinstance(skip, int) or skip < 0:
        raise UsageError(f"resume_instance: {skip!r} is no number of an instance")
    acting = plain.get("policy")
    if not policy and "name" not in (acting or {}):
        raise UsageError(f"agent_model_name_or_path is missing in {path}; or give --policy")
    notes = [f"tasks: {store}"]
    if plain.get("previous"):
        notes.append(_previous(_path_of(str(plain["previous"]), place)))
    return M3Run(
        mapped=mapped,
        env={"name": "m3", "store": store, **_in_text(plain.get("env", {}))},
        policy=None if policy else acting,
        expert_mode=_assist_text(plain.get("assist")),
        tasks=store,
        max_turns=plain.get("max_turns"),
        skip=skip,
        notes=notes,
    )


def _path_of(name: str, place: Path) -> Path:
    """A file that a configuration names."""
    for path in (Path(name), place / name, place.parent / name):
        if path.exists():
            return path
    return Path(name)


def _object(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(read_text(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} holds no JSON object")
    return value


def _set_variables(path: Path | None) -> None:
    """Set what a file of variables says and the environment does not; M3 loads it likewise."""
    if path is None or not path.is_file():
        return
    for line in read_text(path).splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and name.strip().isidentifier():
            os.environ.setdefault(name.strip(), value.strip().strip("\"'"))


def _reference(path: Path, out: str) -> str:
    """The store of the reference data; made when it is not there."""
    if path.is_dir():
        return str(path)
    if not path.is_file():
        raise InputError(f"path_to_env_data: {path} is not there")
    place = f"{out.rstrip('/')}-reference-{digest_file(str(path))[:8]}"
    try:
        Store.open(place)
    except StoreError:
        convert([str(path)], place)
    return place


def _previous(folder: Path) -> str:
    """What came of the run that is gone on with, from its files of metadata."""
    files = sorted(folder.glob("metadata_*.json")) or sorted(folder.glob("*/metadata_*.json"))
    if not files:
        raise InputError(f"path_to_prev_run_dir: {folder} holds no metadata_*.json")
    counts: Counter[str] = Counter()
    for path in files:
        counts.update(name for name in _OUTCOMES if _object(path).get(name) is True)
    outcomes = ", ".join(f"{name} {counts[name]}" for name in _OUTCOMES)
    return f"the run before: {len(files)} instances, {outcomes}"


def _in_text(env: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the environment; what names a thing with settings of its own is one text."""
    return {
        key: spec_text(value) if isinstance(value, Mapping) else value for key, value in env.items()
    }


def _assist_text(assist: Mapping[str, Any] | None) -> str | None:
    """The settings of an expert as `adp collect --expert-mode` takes them."""
    if assist is None:
        return None
    settings = {name: value for name, value in assist.items() if name != "mode"}
    parts = [
        f"{name}={json.dumps(spec_text(value) if isinstance(value, Mapping) else value)}"
        for name, value in settings.items()
    ]
    return f"{assist['mode']}:{','.join(parts)}" if parts else str(assist["mode"])
