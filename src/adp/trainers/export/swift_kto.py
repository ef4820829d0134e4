"""``swift-kto``: single answers with a label, for ms-swift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.rendering.chat import Chat
from adp.trainers.export.exporter import UnwritableChatError
from adp.trainers.export.readme import page
from adp.trainers.export.swift_dpo import flagged, swift_tools
from adp.trainers.export.trl_kto import KtoOptions, TrlKto

CALLS = (
    "an answer that is a call, which ms-swift's KTO refuses; --set tools=text writes it as words"
)

_BODY = """
## Train on it

```sh
swift rlhf --rlhf_type kto --model MODEL --dataset train.jsonl --loss_scale default \\
    --per_device_train_batch_size 8
```

- `messages` ends with the answer, which alone has the flag `loss` set; `label` says whether it is
  desirable.
- ms-swift 4.6 takes the text of another row's answer for its KL term, and stops at an answer that
  is a call. `--set tools=text` writes tools, calls and results as words, in the Hermes manner;
  without it such rows are left out, counted.
- ms-swift shuffles the rows itself. Batches need two rows or more.
- It does not read `reasoning_content`, so reasoning is left out.
"""


class SwiftKto(TrlKto):
    """The exporter."""

    name = "swift-kto"
    title = "ms-swift KTO: messages and a label, a row for each step"
    options = KtoOptions

    def labelled(self, chat: Chat, options: KtoOptions, *, label: bool) -> dict[str, Any]:
        """A row."""
        if chat.messages[-1].calls:
            raise UnwritableChatError(CALLS)
        return {
            "messages": flagged(chat.messages),
            **swift_tools(chat.tools),
            "label": label,
            "trajectory_id": chat.trajectory_id,
        }

    def files(self, options: KtoOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        return {"README.md": page("Labelled answers for ms-swift", _BODY, facts)}


EXPORTER = SwiftKto()
