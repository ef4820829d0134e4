"""What an op is: the one page that a curation op implements.

An op looks at the trajectories that are still in and says something about them: it adds columns,
leaves some out with a reason, weighs steps, makes preference pairs. It never deletes: what it says
is noted in the ledger, and the selection happens once, at the end.

An op lives in one file of ``adp.curation.ops`` and is listed in ``adp.curation.registry`` (or
under the entry-point group ``adp.ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from adp.core.options import OptionsModel
from adp.curation.pool import Pool
from adp_schema.model import Trajectory


class OpOptions(OptionsModel):
    """Base of the options of an op: what stands under its name in a recipe."""

    def given(self) -> frozenset[str]:
        """Names of the options that differ from their defaults.

        The recipe of a record spells out every option. So what is written and what is asked for
        are two things, and ``model_fields_set`` says the wrong one.
        """
        return frozenset(
            name
            for name, spec in type(self).model_fields.items()
            if getattr(self, name) != spec.get_default(call_default_factory=True)
        )


@dataclass
class OpResult:
    """What an op says. Frames may come in any order of rows; the engine sorts them.

    Attributes:
        columns: ``seq`` and new columns, one row a trajectory; those without a row get null.
        step_columns: ``seq``, ``step`` and new columns.
        dropped: ``seq``, ``reason`` (a few words, the same for all that go for that reason) and
            ``evidence`` (JSON text, or null): trajectories that are out from here on.
        events: ``seq``, ``step`` (or null), ``verdict``, ``reason``, ``evidence``: what else the
            ledger should know, such as ``flagged`` or ``not_paired``.
        weights: ``seq``, ``step``, ``loss_weight``: weights in the training loss. A step that
            several ops weigh gets the lowest.
        copies: ``seq``, ``copies`` (1 or more), ``stage`` (from 0): how often, and in which stage
            of a curriculum, a trajectory is to be in the data; a row for each stage that it is in.
        admitted: ``seq`` of trajectories of reserve inputs that come in, such as replayed ones.
        buffer: ``seq`` of the trajectories that a replay buffer holds from now on.
        pairs: rows of the table ``pairs``; a side is named by its trajectory's id in the pool.
        made: trajectories that the op made up; branches (`parent_id`) of trajectories of the pool.
        edits: ``seq``, ``step``, ``text``: texts of steps that the op repaired.
        splits: ``seq``, ``split``.
        summary: counts and figures for the report; plain JSON.
        lines: what a person should read, one sentence each.
    """

    columns: pl.DataFrame | None = None
    step_columns: pl.DataFrame | None = None
    dropped: pl.DataFrame | None = None
    events: pl.DataFrame | None = None
    weights: pl.DataFrame | None = None
    copies: pl.DataFrame | None = None
    admitted: pl.DataFrame | None = None
    buffer: pl.DataFrame | None = None
    pairs: pl.DataFrame | None = None
    made: list[Trajectory] = field(default_factory=list)
    edits: pl.DataFrame | None = None
    splits: pl.DataFrame | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Op:
    """An op.

    Attributes:
        name: its name in a recipe.
        title: what it does, in one line.
        options: the class of its options.
        run: does it: from the pool and the options to an outcome. The same inputs, options and
            seed give the same outcome, whatever the number of workers.
        cost: what it costs in time and memory, in one sentence.
        source: where the method comes from: paper and section, or the system it follows.
        needs: options -> columns of the pool that it reads besides `pool.COLUMNS`.
        columns: options -> columns that it adds to the trajectories, each with a description.
        step_columns: options -> columns that it adds to the steps, each with a description.
    """

    name: str
    title: str
    options: type[OpOptions]
    run: Callable[[Pool, Any], OpResult]
    cost: str
    source: str
    needs: Callable[[Any], Iterable[str]] = lambda _: ()
    columns: Callable[[Any], Mapping[str, str]] = lambda _: {}
    step_columns: Callable[[Any], Mapping[str, str]] = lambda _: {}
