"""What an export gets from a store: chats, pairs or prompts, each counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from adp.core.progress import Progress
from adp.core.tool_names.runs import rename_tools
from adp.rendering.chat import Chat, chats_of
from adp.rendering.pairs import BadPair, pairs_of
from adp.rendering.prepare import choose
from adp.stores.tasks import TaskIndex
from adp.stores.tasks.rows import ROLLOUT
from adp.trainers.export.exporter import ExportCounts, ExporterOptions, ExportItem, Form
from adp_schema.errors import StoreError, UsageError, unknown_name
from adp_schema.model import Step, Trajectory
from adp_schema.store import Store

KINDS = (
    *("all", "alternate", "attempt", "subagent", "continuation", "fork", "rewind", "revision"),
    "unknown",
)
"""Kinds of branches that can be asked for."""


class StoreItems:
    """Streams the items of a store.

    Args:
        store: the store.
        form: says what is taken.
        branches: kinds of branches besides the main lines; ``all`` for all.
        tally: takes what is left out.
        options: says which of the steps that have a weight are trained, and how tools are named.

    Attributes:
        count: steps with a weight, pairs or trajectories that went by, the left out ones too.

    Raises:
        UsageError: no such kind of branch, or branches have no place there.
    """

    def __init__(
        self,
        store: Store,
        form: Form,
        branches: Sequence[str],
        tally: ExportCounts,
        options: ExporterOptions,
    ) -> None:
        if branches and form.takes not in ("chats", "rollouts"):
            raise UsageError(f"branches have no place in {form.takes}; leave out --branches")
        wrong = [kind for kind in branches if kind not in KINDS]
        if wrong:
            raise UsageError(unknown_name("kind of branch", wrong[0], KINDS))
        self.count = 0
        self._store = store
        self._form = form
        self._branches = frozenset(branches)
        self._tally = tally
        self._train = options.train
        self._naming = None if options.tool_names == "store" else options.tool_names
        self._tasks = TaskIndex(store)

    def items(self, progress: Progress) -> Iterator[ExportItem]:
        """The items, in the order of the store; pairs in the order of their ids."""
        if self._form.takes == "pairs":
            progress.total(self._store.manifest.rows("pairs"))
            yield from self._pairs(progress)
            return
        progress.total(self._store.manifest.rows("trajectories"))
        for trajectory in self._store.trajectories():
            if self._naming is not None:
                rename_tools(trajectory, self._naming)
            if self._form.takes == "chats":
                yield from self._chats(trajectory)
            elif self._form.takes == "rollouts":
                yield from self._rollout(trajectory)
            else:
                yield from self._prompt(trajectory)
            progress.advance(1)

    def _chats(self, trajectory: Trajectory) -> Iterator[ExportItem]:
        branch = trajectory.parent_id is not None
        first = trajectory.parent_step or 0 if branch else 0
        full = self._full(trajectory)
        if isinstance(full, str):
            self._leave(trajectory, first, full)
            return
        if self._naming is not None and branch:
            rename_tools(full, self._naming)
        chats = chats_of(full, first_step=first)
        self.count += chats.steps
        self._tally.left_out += chats.untrained
        self._tally.changed += chats.notes
        trained = [chat for chat in chats.chats if chat.trained()]
        for chat in choose(trained, self._train, self._tally.left_out):
            yield ExportItem(chat, None, trajectory)

    def _full(self, trajectory: Trajectory) -> Trajectory | str:
        """A trajectory with the steps of its parent, or why it is left out."""
        kind = trajectory.branch_kind or "unknown"
        if trajectory.parent_id is not None and not self._branches & {"all", kind}:
            return f"in a branch ({kind}); --branches {kind} takes it"
        try:
            return self._store.resolve(trajectory)
        except StoreError:
            return "in a branch whose parent is not in the store, or is its branch"

    def _rollout(self, trajectory: Trajectory) -> Iterator[ExportItem]:
        self.count += 1
        full = self._full(trajectory)
        if isinstance(full, str):
            self._tally.left_out[full] += 1
            return
        full.task = self._tasks.of(trajectory)
        yield ExportItem(None, None, full, dataset=self._dataset(trajectory))

    def _leave(self, trajectory: Trajectory, first: int, reason: str) -> None:
        """Count the steps of a trajectory that is left out."""
        steps = chats_of(trajectory, first_step=first).steps
        if steps:
            self.count += steps
            self._tally.left_out[reason] += steps

    def _pairs(self, progress: Progress) -> Iterator[ExportItem]:
        for pair in pairs_of(self._store, self._naming):
            self.count += 1
            if isinstance(pair, BadPair):
                self._tally.left_out[pair.reason] += 1
            else:
                trajectory = self._store.get(pair.chosen.trajectory_id)
                if self._naming is not None:
                    rename_tools(trajectory, self._naming)
                yield ExportItem(None, pair, trajectory)
            progress.advance(1)

    def _prompt(self, trajectory: Trajectory) -> Iterator[ExportItem]:
        self.count += 1
        if trajectory.parent_id is not None:
            self._tally.left_out["a branch; its main line is enough"] += 1
            return
        chats = chats_of(trajectory).chats
        chat = _before_agent(chats[0], trajectory) if chats else None
        if chat is None or not chat.messages or chat.messages[-1].role == "system":
            self._tally.left_out["nothing was said before the first step of the agent"] += 1
            return
        trajectory.task = self._tasks.of(trajectory)
        yield ExportItem(chat, None, trajectory, dataset=self._dataset(trajectory))

    def _dataset(self, trajectory: Trajectory) -> str | None:
        key = self._tasks.key(trajectory) if trajectory.source_format == ROLLOUT else None
        return (key and (key.dataset or key.environment)) or trajectory.dataset


def _before_agent(chat: Chat, trajectory: Trajectory) -> Chat:
    """The messages before the first step that the agent took itself."""
    first_action = next((n for n, step in enumerate(trajectory.steps) if _acts(step)), None)
    if first_action is None:
        return chat
    first = trajectory.steps[first_action].step
    border = first_action if first is None else first
    count = next(
        (n for n, message in enumerate(chat.messages) if message.step >= border),
        len(chat.messages),
    )
    return replace(chat, messages=chat.messages[:count])


def _acts(step: Step) -> bool:
    """Whether a step is the agent's own, not an example or a copy of earlier context."""
    if step.source != "agent" or step.kind in ("context_edit", "event"):
        return False
    return not step.is_copied_context and step.llm_call_count != 0
