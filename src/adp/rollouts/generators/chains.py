"""The generator ``chains``: paths through a graph of tools become tasks of several calls.

The calls come first, as in GOAT (Min et al. 2025) and FunReason-MT (Xu et al. 2025): a path through
the graph is carried out, each call with an argument that is looked up in the result of an earlier
one. Its questions are made of the calls: a goal that names no value which only a result can tell,
and a query for each call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from adp.core.json_values import json_or_none
from adp.rollouts.generators.carry_out import DraftRunner, made_calls
from adp.rollouts.generators.drafts import (
    Candidate,
    Draft,
    FromResult,
    NoValueError,
    PlannedCall,
    Stream,
)
from adp.rollouts.generators.synthetic import about, listed, refused, tool_name
from adp.rollouts.generators.tool_graph import Edge, TrialCall, find_edges, read_edges
from adp.rollouts.generators.values import ArgumentValues, parameters_of, properties_of
from adp.rollouts.judging.answers import seed_of
from adp.rollouts.turns import Result, Tool
from adp_schema.errors import EmptyResultError
from adp_schema.model import Trajectory

PER_PATH = 5
"""Samples of each path, unless told otherwise."""
_TRIALS = 6
"""Calls of each tool that are made on trial."""
_MOST_PATHS = 400
"""Paths that take turns, at most; of more, as many are drawn by the seed."""


@dataclass(frozen=True)
class ChainOptions:
    """What chains are like.

    Attributes:
        edges: YAML file with the edges; None: they are found.
        max_length: calls of a chain, at most.
        form: ``goal``: one question; ``turns``: a question for each call; ``mixed``: in turn.
        per_path: samples of each path, at most; None: 5, or as many as are asked for.
    """

    edges: Path | None = None
    max_length: int = 3
    form: str = "mixed"
    per_path: int | None = None


def chain_streams(
    tools: Sequence[Tool],
    values: ArgumentValues,
    runner: DraftRunner,
    options: ChainOptions,
    *,
    full: bool,
) -> tuple[list[Stream], list[str]]:
    """A stream for each path of tools.

    Args:
        tools: the tools.
        values: draws arguments.
        runner: makes the calls on trial; its seed fixes everything.
        options: what chains are like.
        full: whether each path brings 5 samples where nothing else is said.

    Returns:
        The streams, and what to say of the graph.

    Raises:
        EmptyResultError: no result of a tool fits an argument of another one.
    """
    seed = runner.seed
    if options.edges is not None:
        edges = read_edges(options.edges, tools)
    else:
        edges = asyncio.run(_found_edges(tools, values, runner))
    paths = paths_of(edges, options.max_length)
    if not paths:
        raise EmptyResultError(
            "no result of a tool fits an argument of another one; name them with --edges"
        )
    note = f"the graph of tools has {len(edges):,} edges and {len(paths):,} paths"
    if len(paths) > _MOST_PATHS:
        note += f", of which {_MOST_PATHS:,} are drawn"
        paths = Random(seed_of("paths", seed)).sample(paths, _MOST_PATHS)
    most = options.per_path or (PER_PATH if full else None)
    by_name = {tool_name(tool): tool for tool in tools}
    return [_stream(path, by_name, values, seed, options.form, most) for path in paths], [note]


async def _found_edges(
    tools: Sequence[Tool], values: ArgumentValues, runner: DraftRunner
) -> list[Edge]:
    """The edges that calls on trial show.

    A tool that takes none of the arguments that are drawn, such as an id that only another tool can
    tell, is called behind a tool that leads to it.
    """
    by_name = {tool_name(tool): tool for tool in tools}
    trials: dict[str, list[TrialCall]] = {}
    reached: dict[str, tuple[Edge, ...]] = {}
    for tool in tools:
        await _try_out(tool_name(tool), (), by_name, values, runner, trials)
    while True:
        edges = find_edges(tools, trials, values)
        new = [edge for edge in edges if edge.source in trials and edge.target not in trials]
        for edge in new:
            path = (*reached.get(edge.source, ()), edge)
            if edge.target not in trials:
                await _try_out(edge.target, path, by_name, values, runner, trials)
                reached[edge.target] = path
        if not any(edge.target in trials for edge in new):
            return edges


async def _try_out(
    name: str,
    path: tuple[Edge, ...],
    tools: Mapping[str, Tool],
    values: ArgumentValues,
    runner: DraftRunner,
    trials: dict[str, list[TrialCall]],
) -> None:
    """Call a tool some times, behind a path that leads to it, and note what it brings."""
    for number in range(_TRIALS):
        rng = Random(seed_of("trial", runner.seed, name, number))
        try:
            draft = (
                _draft(path, tools, values, rng, {}, turns=False)
                if path
                else Draft(name, (PlannedCall(name, values.draw(tools[name], rng)),))
            )
        except NoValueError:
            continue
        done = await runner.run(draft, f"trial-{name}/{number}")
        if done.reason is None and done.trajectory is not None:
            arguments = made_calls(done.trajectory)[-1][1]
            trials.setdefault(name, []).append(TrialCall(arguments, _last_result(done.trajectory)))


def _last_result(trajectory: Trajectory) -> Result:
    seen = [result for step in trajectory.steps for result in step.observations][-1]
    return Result(seen.text or "", structured=json_or_none(seen.structured))


def paths_of(edges: Sequence[Edge], longest: int) -> list[tuple[Edge, ...]]:
    """All paths of 2 to so many calls, the short ones first.

    Args:
        edges: the edges.
        longest: calls of a path, at most.
    """
    after: dict[str, list[Edge]] = {}
    edges = list({edge.model_dump_json(): edge for edge in edges}.values())
    for edge in edges:
        after.setdefault(edge.source, []).append(edge)
    paths: list[tuple[Edge, ...]] = [(edge,) for edge in edges]
    reached = 0
    while reached < len(paths) and len(paths) < 100 * _MOST_PATHS:
        path = paths[reached]
        reached += 1
        if len(path) + 1 < longest:
            paths += [(*path, edge) for edge in after.get(path[-1].target, ())]
    return paths


def _stream(
    path: tuple[Edge, ...],
    tools: Mapping[str, Tool],
    values: ArgumentValues,
    seed: int,
    form: str,
    most: int | None,
) -> Stream:
    name = path[0].source
    for edge in path:
        name += f".{'-'.join(map(str, edge.path)) or 'result'}.{edge.argument}.{edge.target}"
    origin = {"path": [path[0].source, *(edge.target for edge in path)],
              "rules": [edge.rule for edge in path]}  # fmt: skip

    def candidates() -> Iterator[Candidate]:
        number = 0
        while True:
            rng = Random(seed_of("chains", seed, name, number))
            turns = form == "turns" or (form == "mixed" and number % 2 == 1)
            try:
                yield _draft(path, tools, values, rng, origin, turns=turns)
            except NoValueError as error:
                yield refused("no arguments", str(error))
            number += 1

    return Stream(name, candidates, most)


def _draft(
    path: tuple[Edge, ...],
    tools: Mapping[str, Tool],
    values: ArgumentValues,
    rng: Random,
    origin: Mapping[str, Any],
    *,
    turns: bool,
) -> Draft:
    first = tools[path[0].source]
    arguments = values.draw(first, rng)
    calls = [PlannedCall(tool_name(first), arguments)]
    queries = [_query(first, arguments)]
    for number, edge in enumerate(path):
        tool = tools[edge.target]
        link = FromResult(number, edge.path, edge.form)
        drawn = values.draw(tool, rng, {edge.argument: _stand_in(tool, edge, values, rng)})
        others = {key: value for key, value in drawn.items() if key != edge.argument}
        calls.append(PlannedCall(edge.target, {**others, edge.argument: link}))
        queries.append(_query(tool, others, edge))
    last = tools[path[-1].target]
    steps = "; then ".join(_small(query.rstrip(".")) for query in queries)
    goal = f"{about(last)}: {steps}."
    members = {**origin, "queries": queries}
    return Draft(goal, tuple(calls), members, queries=tuple(queries) if turns else ())


def _stand_in(tool: Tool, edge: Edge, values: ArgumentValues, rng: Random) -> Any:
    """A value that fits the schema of an argument, while the one of the result is not known."""
    if edge.form is not None:
        return edge.form
    parameters = parameters_of(tool)
    alone = {
        "name": f"{tool_name(tool)}.{edge.argument}",
        "parameters": {
            **parameters,
            "properties": {edge.argument: properties_of(tool)[edge.argument]},
            "required": [edge.argument],
        },
    }
    return values.draw({"type": "function", "function": alone}, rng)[edge.argument]


def _query(tool: Tool, arguments: Mapping[str, Any], edge: Edge | None = None) -> str:
    """What is asked of one call, without what only an earlier result can tell."""
    text = about(tool)
    given = listed(arguments)
    if edge is not None:
        member = next((str(part) for part in reversed(edge.path) if isinstance(part, str)), "")
        what = f"the {member.replace('_', ' ')} of that result" if member else "that result"
        if edge.form is not None:
            what = edge.form.replace("{value}", what)
        text += f" for {what}"
        return f"{text}, with {given}." if given else f"{text}."
    return f"{text}: {given}." if given else f"{text}."


def _small(text: str) -> str:
    """A sentence as a part of another one."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
