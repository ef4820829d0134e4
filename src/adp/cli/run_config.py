"""``--config`` of `adp collect` and `adp eval`: M3's ``infer_agent.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.cli.mapped_text import say_mapped
from adp.cli.text import say, stdout_to_stderr
from adp.workflows.m3_run import M3Run, read_m3_run
from adp_schema.errors import UsageError


def from_config(
    given: Mapping[str, Any], config: str | None, out: str | None, *, as_json: bool
) -> dict[str, Any]:
    """Options of collecting, from a configuration where the call does not give them.

    Args:
        given: options of the call; None is not given.
        config: the file; None: there is none.
        out: the store that is to be filled.
        as_json: say nothing.

    Raises:
        UsageError: something is missing or wrong.
        InputError: a file cannot be read.
    """
    run = _run(given, config, out, as_json=as_json)
    options = {} if run is None else run.options()
    return {**options, **{k: v for k, v in given.items() if v is not None or k not in options}}


def suite_of(
    given: Mapping[str, Any], config: str | None, out: str | None, *, as_json: bool
) -> dict[str, Any]:
    """Suite and policy, from a configuration where the call does not give them.

    Args:
        given: options of the call; None is not given.
        config: the file; None: there is none.
        out: the store that is to be filled.
        as_json: say nothing.

    Raises:
        UsageError: something is missing or wrong.
        InputError: a file cannot be read.
    """
    run = _run(given, config, out, as_json=as_json)
    if run is None:
        return dict(given)
    suite = given["suite"] or _suite(run)
    return {"suite": suite, "policy": given["policy"] or run.policy}


def _run(
    given: Mapping[str, Any], config: str | None, out: str | None, *, as_json: bool
) -> M3Run | None:
    """What a configuration says, with each of its settings told."""
    if config is None:
        return None
    if out is None:
        raise UsageError("give -o STORE; the reference data become a store beside it")
    with stdout_to_stderr(wanted=as_json):
        run = read_m3_run(config, out, policy=given["policy"] is not None)
    if not as_json:
        say_mapped(run.mapped, config)
        for note in run.notes:
            say(f"  {note}")
    return run


def _suite(run: M3Run) -> dict[str, Any]:
    """A suite of what a configuration says.

    Raises:
        UsageError: it asks for an expert, or for a part of the tasks.
    """
    if run.expert_mode is not None:
        raise UsageError(
            "adp eval lets the policy act alone: set expert_assist_mode to null, or run it with "
            "adp collect and score it with adp score"
        )
    if run.skip:
        raise UsageError("resume_instance is for adp collect; adp eval goes on by itself")
    limits = {} if run.max_turns is None else {"max_turns": run.max_turns}
    return {
        "name": "m3",
        "environment": run.env,
        "tasks": run.tasks,
        "scorers": ["outcome", "m3"],
        "limits": limits,
    }
