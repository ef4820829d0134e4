"""What the exporters of rollouts share: options, and what becomes of a rollout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from adp.trainers.export.exporter import (
    ExportCounts,
    ExporterOptions,
    ExportItem,
    Form,
    Mask,
    Takes,
    UnwritableChatError,
)
from adp.trainers.export.readme import page
from adp.trainers.export.rollout_rows import (
    Rollout,
    advantage_of,
    group_of,
    recorded_rows,
    rendered_rows,
    reward_of,
)
from adp.trainers.export.verl_rl import shipped
from adp.trainers.rollouts.sequence import TokenSequence
from adp_schema.errors import UsageError
from adp_schema.model import Trajectory

RENDERED = "rollouts rendered from their messages: token ids by the template, no log probabilities"
NO_LOGPROBS = "rollouts without log probabilities"
SEVERAL_ROWS = "rollouts in several rows, because a later prompt rewrites history"
NO_TASK = "rollouts without a task: each is a group of its own"
_NO_IDS = "not every step has recorded token ids"
_NO_REWARD = "no reward"

_FIXED = ("expand", "train", "reasoning", "tools", "fractions", "tool_names", "unfit")


class RolloutOptions(ExporterOptions):
    """Options of exporters of rollouts."""

    missing_ids: Literal["render", "leave_out", "refuse"] = "render"
    """Rollouts of which not every step of the model has recorded token ids: render them with the
    template of --model, leave them out, or refuse the export."""
    missing_reward: Literal["leave_out", "write_null", "refuse"] = "leave_out"
    """Rollouts without a reward: leave them out, write null, or refuse the export."""
    reward: str | None = None
    """A named reward of the run (column rewards) instead of its reward."""
    shared_steps: Literal["train", "context"] = "train"
    """The steps that a branch shares with its parent, when branches are asked for: trained in each
    row, as in ARPO, or context."""

    @model_validator(mode="after")
    def _fixed(self) -> RolloutOptions:
        for name in _FIXED:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no part in rollouts: tokens are written as they are")
        return self


class RolloutExporter:
    """An exporter of rollouts: it implements `row`, or `rows_of` for one row a rollout."""

    name: str
    title: str
    takes: Takes = "rollouts"
    mask: Mask = "tokens"
    file: str
    options: Any = RolloutOptions
    heading: ClassVar[str]
    """Heading of the README."""
    body: ClassVar[str]
    """How to load it, for the README."""
    code: ClassVar[str | None] = None
    """Name of the shipped file that loads the rows."""
    needs_logprobs: ClassVar[bool] = False
    """Whether the shape has no place for a token whose log probability is not known."""
    needs_reward: ClassVar[bool] = False
    """Whether the shape has no place for a rollout that was not judged."""

    def form(self, options: RolloutOptions) -> Form:
        """Rollouts, with a model where ids are missing."""
        return Form(self.takes, self.mask, self.file, model="optional")

    def schema(self, options: RolloutOptions) -> Any:
        """None: rows are JSON."""

    def row(self, rollout: Rollout, number: int, row: TokenSequence) -> dict[str, Any]:
        """One token row in the trainer's shape.

        Args:
            rollout: the rollout.
            number: number of the row among those of the rollout, from 0.
            row: the tokens.
        """
        raise NotImplementedError

    def rows_of(self, rollout: Rollout) -> Iterator[dict[str, Any]]:
        """The rows of a rollout."""
        for number, row in enumerate(rollout.rows):
            yield self.row(rollout, number, row)

    def rows(
        self, item: ExportItem, options: RolloutOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """The rows of a rollout; what cannot be written is counted."""
        changed: Counter[str] = Counter()
        try:
            rollout = self._rollout(item, options, changed)
            rows = list(self.rows_of(rollout))
        except UnwritableChatError as reason:
            tally.left_out[str(reason)] += 1
            return
        tally.changed += changed
        yield from rows

    def files(self, options: RolloutOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """README, and the code that loads the rows."""
        files = {"README.md": page(self.heading, self.body, facts)}
        return files if self.code is None else {**files, self.code: shipped(self.code)}

    def _rollout(self, item: ExportItem, options: RolloutOptions, changed: Counter[str]) -> Rollout:
        run = item.trajectory
        dataset = item.dataset or "adp"
        reward = self._judged(run, options)
        rows, recorded = self._tokens(item, options, changed)
        unknown = any(row.logprobs is None for row in rows)
        if unknown and self.needs_logprobs:
            raise UnwritableChatError(f"no log probabilities, which {self.name} needs")
        changed[NO_LOGPROBS] += unknown and recorded
        changed[SEVERAL_ROWS] += len(rows) > 1
        changed[NO_TASK] += run.task_id is None
        group, advantage = group_of(run, dataset), advantage_of(run)
        return Rollout(run, group, dataset, tuple(rows), recorded, reward, advantage)

    def _judged(self, run: Trajectory, options: RolloutOptions) -> float | None:
        if self.needs_reward and options.missing_reward == "write_null":
            raise UsageError(
                f"{self.name} needs a reward in each row; leave out --set missing_reward=write_null"
            )
        reward = reward_of(run, options.reward)
        if reward is None and options.missing_reward != "write_null":
            reason = _NO_REWARD if options.reward is None else f"no reward {options.reward!r}"
            if options.missing_reward == "refuse":
                raise UsageError(
                    f"{run.trajectory_id} has {reason}; add --set missing_reward=leave_out to "
                    "leave such rollouts out, or --set missing_reward=write_null to write them so"
                )
            raise UnwritableChatError(reason)
        return reward

    def _tokens(
        self, item: ExportItem, options: RolloutOptions, changed: Counter[str]
    ) -> tuple[list[TokenSequence], bool]:
        run = item.trajectory
        shared = run.parent_step or 0 if run.parent_id is not None else 0
        rows = recorded_rows(run, shared if options.shared_steps == "context" else 0, changed)
        if rows is not None:
            if not rows:
                raise UnwritableChatError("no token that the model wrote is trained")
            return rows, True
        if options.missing_ids == "leave_out":
            raise UnwritableChatError(_NO_IDS)
        if options.missing_ids == "refuse" or item.renderer is None:
            raise UsageError(_no_ids(run, options, self.name if self.needs_logprobs else None))
        rendered = item.renderer.trajectory(run)
        rows = rendered_rows(rendered.rows)
        if not rows:
            reason = next(iter(rendered.lost), "nothing in it is trained")
            raise UnwritableChatError(f"{_NO_IDS}, and no step could be rendered: {reason}")
        changed.update(rendered.notes)
        changed.update({f"not trained: {why}": count for why, count in rendered.lost.items()})
        changed[RENDERED] += 1
        return rows, False


def _no_ids(run: Trajectory, options: RolloutOptions, exact: str | None) -> str:
    """What to do where ids are missing; `exact` names an exporter that needs log probabilities."""
    ways = "add --set missing_ids=leave_out to leave such rollouts out"
    if exact is not None:
        ways = f"{exact} needs log probabilities too (adp collect, logprobs=true); {ways}"
    elif options.missing_ids == "render":
        ways = f"name the model whose template renders them (--model MODEL), or {ways}"
    else:
        ways = f"{ways}, or --set missing_ids=render --model MODEL to render them"
    return f"{run.trajectory_id}: {_NO_IDS}; {ways}"
