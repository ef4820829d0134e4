"""What `adp make` and a configuration are told, and the run that this makes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.offered_tools import made, offered_tools
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.environment import EnvironmentKind, Settings, as_async
from adp.rollouts.generators.carry_out import ANSWER, DraftRunner
from adp.rollouts.generators.chains import ChainOptions, chain_streams
from adp.rollouts.generators.drafts import Stream
from adp.rollouts.generators.make import MakeSettings, Watch, facts_hash, make_now
from adp.rollouts.generators.report import MakeReport
from adp.rollouts.generators.synthetic import PER_TOOL, synthetic_streams, tool_name
from adp.rollouts.generators.teacher import teacher_streams
from adp.rollouts.generators.templates import (
    CANONICAL,
    TemplateFile,
    read_templates,
    template_streams,
)
from adp.rollouts.generators.values import ArgumentValues
from adp.rollouts.policy import POLICIES, Policy
from adp.rollouts.spec import Named, load, load_environment, split_named
from adp.rollouts.turns import Tool
from adp_schema.errors import UsageError
from adp_schema.model import Task

Generator = Literal["templates", "synthetic", "teacher", "chains"]

_WORLDS = "train:100"
"""Tasks whose worlds are taken where the environment cannot begin without a task of its own."""


class MakeOptions(Settings):
    """Options of `adp make`, by their names on the command line."""

    generator: Generator
    """Who makes the samples."""
    env: Named
    """Environment: NAME:key=value,... or an object with name and settings."""
    count: int | None = Field(default=None, ge=1)
    """Samples, at most; null: as many as per_tool gives."""
    per_tool: int | None = Field(default=None, ge=1)
    """Samples of each tool (canonical sentences, of templates; of each path, of chains)."""
    tools: tuple[str, ...] = ()
    """Only these tools; none: all that are on offer."""
    templates: Path | None = None
    """YAML file with templates, values and words."""
    edges: Path | None = None
    """YAML file with edges of the graph of tools; null: they are found."""
    max_length: int = Field(default=3, ge=2, le=8)
    """Calls of a chain, at most."""
    form: Literal["goal", "turns", "mixed"] = "mixed"
    """Of chains: one question for all calls, a question for each call, or both in turn."""
    policy: Named | None = None
    """Policy that proposes questions and calls, for teacher."""
    tries: int = Field(default=3, ge=1)
    """Calls that a teacher may propose for a question."""
    tasks: str | None = None
    """File of tasks, store, or SPLIT:COUNT[:SEED] whose worlds are taken; null: where needed."""
    answer: str = Field(default=ANSWER, min_length=1)
    """Text of answers, with {result}."""
    seed: int = 0
    """Seed of the run."""
    dataset: str | None = None
    """Data set of the trajectories."""
    split: str | None = None
    """Split of the samples."""
    without: tuple[str, ...] = ()
    """Stores whose samples are left out."""
    concurrency: int = Field(default=16, ge=1)
    """Candidates that are carried out at once."""
    max_failures: int = Field(default=20, ge=1)
    """Stop when so many in a row broke for one reason."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Seconds of a sample, at most."""
    unsafe_python: bool = False
    """Let the environment python run programs without a sandbox, with all your rights."""


def options_of(
    strategy: str,
    generation_type: str | None,
    max_samples: int | None,
    tools: str | Path,
    seed: int = 42,
    *,
    policy: Named | None = None,
) -> MakeOptions:
    """The options for the section ``data`` of a configuration of Tiny Tool Use.

    Args:
        strategy: ``data.strategy``: manual_templates, toolbench or teacher_mode.
        generation_type: ``data.generation_type``: synthetic or real.
        max_samples: ``data.max_samples``.
        tools: the configuration itself, or another file with a section ``tools``.
        seed: its ``seed``.
        policy: the teacher; without one, teacher_mode draws its calls from the schemas, as the
            original does, which asks no model either.

    Raises:
        UsageError: there is no such strategy, or its data are files that are converted.
    """
    if strategy == "toolbench" and generation_type == "real":
        raise UsageError(
            "data.generation_type is real: nothing is made; convert the file of ToolBench with "
            "adp convert"
        )
    generators: dict[str, Generator] = {
        "manual_templates": "templates",
        "toolbench": "synthetic",
        "teacher_mode": "synthetic" if policy is None else "teacher",
    }
    if strategy not in generators:
        raise UsageError(
            f"data.strategy {strategy} has no generator; strategies: {', '.join(generators)}"
        )
    return MakeOptions(
        generator=generators[strategy],
        env={"name": "configured", "file": str(tools)},
        count=max_samples,
        seed=seed,
        policy=policy if strategy == "teacher_mode" else None,
    )


@dataclass(frozen=True)
class PreparedMake:
    """A run of a generator that can begin.

    Attributes:
        streams: the candidates.
        runner: carries them out; its data set is named when it runs.
        tools: the tools on offer.
        settings: settings of the run.
        policies: closed at the end.
        notes: what to say.
    """

    streams: Sequence[Stream]
    runner: DraftRunner
    tools: Sequence[Tool]
    settings: MakeSettings
    policies: Sequence[Policy] = ()
    notes: Sequence[str] = ()

    def run(self, out: str | Path, *, watch: Watch | None = None) -> MakeReport:
        """Make what is missing; see `adp.rollouts.generators.make.make_now`.

        Args:
            out: folder of the store.
            watch: told how many samples are kept.
        """
        report = make_now(
            out, self.streams, self.runner, self.tools, self.settings,
            watch=watch, closing=self.policies,
        )  # fmt: skip
        report.notes[:0] = self.notes
        return report


def prepare_make(options: MakeOptions, out: str | Path) -> PreparedMake:
    """Look at the environment, and make the streams.

    Args:
        options: what is wanted.
        out: folder of the store; its name is that of the data set, unless one is named.

    Raises:
        UsageError: a name or a setting is wrong, or there are no tools.
        InputError: a file cannot be read.
    """
    spec, more = split_named(options.env)
    kind, about = load_environment(spec, unsafe_python=options.unsafe_python, **more)
    tasks, text = _worlds(options, kind, about)
    tools = _chosen(offered_tools(kind, about, text), options.tools)
    file = TemplateFile() if options.templates is None else read_templates(options.templates)
    values = ArgumentValues(file.values)
    name = options.dataset or Path(out).resolve().name or "made"
    runner = DraftRunner(
        lambda: made(kind, about), name, options.generator, options.seed, kind.name, options.split,
        tasks, options.answer, Limits(max_seconds=options.max_seconds),
    )  # fmt: skip
    policies: list[Policy] = []
    notes: list[str] = []
    facts: dict[str, Any] = {"environment": kind_facts(kind.name, about)}
    if options.generator == "templates":
        canonical = options.per_tool or (None if options.count else CANONICAL)
        streams = template_streams(tools, file, values, options.seed, canonical)
    elif options.generator == "synthetic":
        per_tool = options.per_tool or (None if options.count else PER_TOOL)
        streams = synthetic_streams(tools, values, options.seed, per_tool)
    elif options.generator == "chains":
        chains = ChainOptions(options.edges, options.max_length, options.form, options.per_tool)
        streams, notes = chain_streams(tools, values, runner, chains, full=options.count is None)
    else:
        policy, facts["policy"] = _teacher(options)
        policies.append(policy)
        per_tool = options.per_tool or (None if options.count else PER_TOOL)
        streams = teacher_streams(tools, values, policy, options.seed, per_tool, options.tries)
    settings = MakeSettings(
        count=options.count,
        concurrency=options.concurrency,
        max_failures=options.max_failures,
        facts=_facts(options, name, tools, tasks, file, facts),
        without=options.without,
    )
    return PreparedMake(streams, runner, tools, settings, policies, notes)


def _teacher(options: MakeOptions) -> tuple[Policy, dict[str, Any]]:
    if options.policy is None:
        raise UsageError("a teacher proposes the calls; give --policy")
    spec, more = split_named(options.policy)
    kind, about = load(POLICIES, spec, **more)
    return kind.make(about), kind_facts(kind.name, about)


def _worlds(
    options: MakeOptions, kind: EnvironmentKind, about: Any
) -> tuple[Sequence[Task], str | None]:
    """The tasks whose worlds are taken, and the text that names them."""
    if options.tasks is not None:
        return read_tasks(options.tasks, kind, about).tasks, options.tasks
    if kind.tasks is None or asyncio.run(_begins_without(kind, about)):
        return (), None
    return read_tasks(_WORLDS, kind, about).tasks, _WORLDS


async def _begins_without(kind: EnvironmentKind, about: Any) -> bool:
    """Whether an environment can begin with an instruction alone."""
    environment = as_async(made(kind, about))
    try:
        await environment.reset(Task(task_id="tools", instruction="Which tools are there?"), seed=0)
    except UsageError:
        return False
    finally:
        await environment.close()
    return True


def _chosen(tools: Sequence[Tool], names: Sequence[str]) -> list[Tool]:
    known = [tool_name(tool) for tool in tools]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"there is no tool '{unknown[0]}'; tools: {', '.join(known) or 'none'}")
    if not known:
        raise UsageError("the environment offers no tool, so there is nothing to make calls of")
    return [tool for tool in tools if not names or tool_name(tool) in names]


def _facts(
    options: MakeOptions,
    dataset: str,
    tools: Sequence[Tool],
    tasks: Sequence[Task],
    file: TemplateFile,
    made_with: dict[str, Any],
) -> dict[str, Any]:
    """What must not change while a store grows."""
    same = ("generator", "seed", "split", "answer", "max_seconds")
    facts = {name: getattr(options, name) for name in same}
    facts |= {"dataset": dataset, "made_with": made_with}
    facts["tools"] = {"names": [tool_name(tool) for tool in tools], "hash": facts_hash(tools)}
    if tasks:
        facts["tasks"] = facts_hash([task.model_dump_json() for task in tasks])
    if options.templates is not None:
        facts["templates"] = facts_hash(file.model_dump())
    if options.generator == "chains":
        edges = None if options.edges is None else facts_hash(options.edges.read_bytes())
        facts |= {"max_length": options.max_length, "form": options.form, "edges": edges}
    if options.generator == "teacher":
        facts["tries"] = options.tries
    if options.without:
        facts["without"] = [Path(place).resolve().name for place in options.without]
    return facts
