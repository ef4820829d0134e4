"""What the user of Cline or Roo Code saw (``ui_messages.json``), and what each request took.

A request is an entry ``api_req_started``, whose text is JSON with its tokens. Beside a conversation
the tokens go to the turn that the request made, and all entries are events at the end; alone, a
request is a turn of the model, with the texts that follow it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns

REQUEST = "api_req_started"
TEXTS = frozenset({"text", "reasoning", "completion_result"})
"""What a model says, as the user sees it."""
PROMPTS = frozenset({"task", "user_feedback", "user_feedback_diff"})

_APART = UsageKeys(
    prompt=("tokensIn",),
    written=("tokensOut",),
    cached=("cacheReads",),
    cache_write=("cacheWrites",),
    cost=("cost", "totalCost"),
    apart=True,
)
_WHOLE = replace(_APART, apart=False)


@dataclass(frozen=True)
class ClineRequest:
    """One request to a model.

    Attributes:
        columns: its tokens and cost, as columns of a step.
        time: when it began, in milliseconds.
        after: place, in the conversation, of the last message before its prompt.
    """

    columns: Columns
    time: int | None
    after: int | None


def request_of(source: SourceObject, losses: Losses) -> ClineRequest | None:
    """The request that an entry tells of; None for another entry, or one without tokens.

    Args:
        source: the entry, which keeps all of it.
        losses: takes keys that occur twice.
    """
    if source.word("say") != REQUEST:
        return None
    report = embedded(source.word("text"), f"{source.path}.text", losses)
    prompt = report.integer_at("tokensIn")
    if prompt is None and report.integer_at("tokensOut") is None:
        return None
    cached = (report.integer_at("cacheReads") or 0) + (report.integer_at("cacheWrites") or 0)
    is_whole = "apiProtocol" in report and prompt is not None and prompt >= cached
    columns: Columns = {}
    set_usage(report, columns, _WHOLE if is_whole else _APART)
    numbers = {key: raw for key, raw in report.values.items() if key != "request"}
    columns["usage"] = jsontext.text_of(numbers)
    return ClineRequest(
        columns, source.integer_at("ts"), source.integer_at("conversationHistoryIndex")
    )


def assign(
    requests: Sequence[ClineRequest], turns: Sequence[tuple[StepDraft, int | None, int]]
) -> list[ClineRequest]:
    """Give the tokens of requests to the turns that they made.

    Args:
        requests: in their order.
        turns: a turn, its time, and its place in the conversation; those whose tokens are known
            already keep them.

    Returns:
        The requests for which no turn was found.
    """
    left: list[ClineRequest] = []
    in_order = len(requests) == len(turns)
    for number, request in enumerate(requests):
        step: StepDraft | None = turns[number][0] if in_order else None
        if step is None:
            following = requests[number + 1].time if number + 1 < len(requests) else None
            step = _turn_of(request, following, turns)
        if step is None:
            left.append(request)
        elif "usage" not in step.columns:
            step.columns |= request.columns
    return left


def _turn_of(
    request: ClineRequest, until: int | None, turns: Sequence[tuple[StepDraft, int | None, int]]
) -> StepDraft | None:
    """The turn that ended between a request and the next one, or that stands after its prompt."""
    for step, time, place in turns:
        if time is not None and request.time is not None:
            if time >= request.time and (until is None or time < until):
                return step
        elif request.after is not None and place == request.after + 2:
            return step
    return None


def entries_of(data: bytes, losses: Losses) -> Iterator[SourceObject]:
    """The entries of a file; nothing when it is no list of objects."""
    if not jsontext.is_valid(data) or jsontext.first_byte(data) != BRACKET:
        return
    for number, item in enumerate(jsontext.decode_array(data)):
        if jsontext.first_byte(item) == BRACE:
            yield SourceObject(item, f"$[{number}]", losses)
        else:
            losses.add(f"$[{number}]", "the entry is no object")
