"""What a conversation of OpenHands has spent, as ``base_state.json`` keeps it: by response."""

from __future__ import annotations

from adp.converters.kit.drafts import TrajectoryDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, add_totals, set_usage
from adp.converters.readers.openhands_v0.turns import METRICS
from adp_schema.model import Columns

_RESPONSE = UsageKeys(
    prompt=("prompt_tokens",),
    written=("completion_tokens",),
    cached=("cache_read_tokens",),
    cache_write=("cache_write_tokens",),
    reasoning=("reasoning_tokens",),
)


class ResponseCosts:
    """Tokens and cost of each response, and of all of them.

    Args:
        state: the state of the conversation, which stays as it is.
    """

    def __init__(self, state: SourceObject) -> None:
        self.totals: Columns = {}
        self.responses: dict[str, Columns] = {}
        usages = state.peek("stats").child("usage_to_metrics")
        for name in list(usages.values):
            metrics, sums = usages.child(name), Columns()
            set_usage(metrics, sums, METRICS)
            for column, number in sums.items():
                self.totals[column] = self.totals.get(column, 0) + number
            self._read(metrics)

    def _read(self, metrics: SourceObject) -> None:
        usages, costs = metrics.objects("token_usages"), metrics.objects("costs")
        for place, usage in enumerate(usages):
            columns = self.responses.setdefault(usage.word("response_id"), {})
            set_usage(usage, columns, _RESPONSE)
            if len(costs) == len(usages) and (cost := costs[place].number("cost")) is not None:
                columns["cost_usd"] = cost

    def fill(self, run: TrajectoryDraft) -> None:
        """Fill the columns of turns that have no tokens yet, and the totals.

        Args:
            run: a trajectory, with its branches.
        """
        for step in run.steps:
            spent = self.responses.get(step.columns.get("response_id") or "")
            if spent and step.columns.get("tokens_in") is None:
                step.columns |= spent
        for branch in run.branches:
            self.fill(branch)

    def total(self, columns: Columns) -> None:
        """Fill the totals of the trajectory."""
        totals: Columns = {}
        add_totals(self.totals, totals)
        columns.update({name: it for name, it in totals.items() if columns.get(name) is None})
