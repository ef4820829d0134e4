"""``swift-dpo``: preference pairs for ms-swift: both conversations, whole.

ms-swift trains every message of the assistant in both conversations unless a flag says otherwise.
Only the last one has the flag ``loss`` set here, so the sides alone are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adp.rendering.chat import Message
from adp.trainers.export.exporter import ExportItem, PairOptions, RowExporter, UnwritableChatError
from adp.trainers.export.messages import plain_message, tools_text
from adp.trainers.export.readme import page
from adp.trainers.export.rollout_messages import AS_TEXT
from adp.trainers.export.shapes import SAME, calls_of, plain, sides

REASONING = "reasoning, which ms-swift does not read"
LATER_SYSTEM = "a message of the system that is not the first one, which ms-swift refuses"

_BODY = """
## Train on it

```sh
swift rlhf --rlhf_type dpo --model MODEL --dataset train.jsonl --loss_scale default
```

- `messages` ends with the better answer, `rejected_messages` with the worse one. The flag `loss`
  of a message says whether it is trained: the answers alone are.
- Arguments of calls and the tools on offer are JSON text, so no reader fills them with nulls.
- ms-swift 4.6 does not read `reasoning_content`, so reasoning is left out.
"""


class SwiftDpo(RowExporter):
    """The exporter."""

    name = "swift-dpo"
    title = "ms-swift DPO: messages and rejected_messages, one step a side"
    takes = "pairs"
    mask = "last"
    file = "train.jsonl"
    options = PairOptions

    def row(self, item: ExportItem, options: PairOptions, changed: Counter[str]) -> dict[str, Any]:
        """One row a pair."""
        assert item.pair is not None
        chosen, rejected = sides(item.pair)
        if (chosen.text, calls_of(chosen)) == (rejected.text, calls_of(rejected)):
            raise UnwritableChatError(SAME)
        prompt = item.pair.chosen.messages[: item.pair.shared]
        changed[REASONING] += sum(bool(it.reasoning) for it in (*prompt, chosen, rejected))
        return {
            "messages": flagged((*prompt, chosen)),
            "rejected_messages": flagged((*prompt, rejected)),
            **swift_tools(item.pair.chosen.tools),
            "pair_id": item.pair.pair.pair_id,
        }

    def files(self, options: PairOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        return {"README.md": page("Preference pairs for ms-swift", _BODY, facts)}


def flagged(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as ms-swift reads them; only the last one is trained.

    Args:
        messages: a conversation that ends with an answer.

    Raises:
        UnwritableChatError: ms-swift refuses it.
    """
    if any(message.role == "system" for message in messages[1:]):
        raise UnwritableChatError(LATER_SYSTEM)
    values = []
    for number, message in enumerate(messages):
        value = plain_message(message, AS_TEXT)
        value.pop(AS_TEXT.reasoning_key, None)
        if message.role == "assistant":
            value["loss"] = number == len(messages) - 1
        values.append(plain(value))
    return values


def swift_tools(tools: Sequence[Any]) -> dict[str, str]:
    """The column of the tools, where there are any."""
    text = tools_text(tools)
    return {} if text is None else {"tools": text}


EXPORTER = SwiftDpo()
