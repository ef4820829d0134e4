"""``chatml``: messages with a flag each that says whether it is trained, or ChatML text.

Axolotl, ms-swift and others read messages in the manner of ChatML and know a flag for each; only
the name of the flag differs. Messages are written by the model's own template then. The other form
is the text itself with ``<|im_start|>`` and ``<|im_end|>``, cut into segments that are trained or
not, as Axolotl's ``input_output`` takes it; there, tools stand as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from adp.rendering.chat import Chat, Message
from adp.trainers.export.exporter import ExportCounts, ExportItem, Form, RowExporter
from adp.trainers.export.fit import tools_as_text
from adp.trainers.export.messages import MessageOptions, plain_message, tools_text
from adp.trainers.export.readme import page


class ChatmlOptions(MessageOptions):
    """Options of ``chatml``."""

    form: Literal["messages", "text"] = "messages"
    """messages: each with a flag; text: ChatML in segments with a label each."""
    flag: str = Field(default="train", pattern=r"^\w+$")
    """messages: name of the flag; ms-swift reads loss, tinker trainable."""
    arguments: Literal["object", "text"] = "text"
    """Arguments of calls as JSON text, which Axolotl decodes, or as an object."""


class Chatml(RowExporter):
    """The exporter."""

    name = "chatml"
    title = "Axolotl, ms-swift: messages with a flag each, or ChatML text in segments"
    takes = "chats"
    mask = "binary"
    file = "train.jsonl"
    options = ChatmlOptions

    def form(self, options: ChatmlOptions) -> Form:
        """The same for both forms: each message is trained or not."""
        return Form("chats", "binary", self.file)

    def rows(
        self, item: ExportItem, options: ChatmlOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """One row a chat."""
        assert item.chat is not None
        if options.form == "text":
            chat = tools_as_text(item.chat, tally.changed)
            yield {"segments": list(_segments(chat)), "trajectory_id": chat.trajectory_id}
            return
        yield {
            "messages": [
                {**plain_message(message, options), options.flag: message.weight > 0}
                for message in item.chat.messages
            ],
            "tools": tools_text(item.chat.tools),
            "trajectory_id": item.chat.trajectory_id,
        }

    def files(self, options: ChatmlOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        if options.form == "text":
            return {"README.md": page("ChatML text for Axolotl", _TEXT, facts)}
        body = _MESSAGES.replace("FLAG", options.flag)
        return {"README.md": page("Messages with a flag for Axolotl and ms-swift", body, facts)}


def _segments(chat: Chat) -> Iterator[dict[str, Any]]:
    """The text of a chat; what is trained ends with the end of its turn."""
    context = ""
    for message in chat.messages:
        context += f"<|im_start|>{message.role}\n"
        words = f"{turn_text(message)}<|im_end|>"
        if message.weight:
            yield {"label": False, "text": context}
            yield {"label": True, "text": words}
            context = "\n"
        else:
            context += f"{words}\n"
    yield {"label": False, "text": context}


def turn_text(message: Message) -> str:
    """The text of a message in ChatML, its reasoning included."""
    thought = f"<think>\n{message.reasoning}\n</think>\n\n" if message.reasoning else ""
    return thought + message.text


_MESSAGES = """
Each message has the flag `FLAG`: true where it is trained. Arguments of calls and the tools on
offer are JSON text, so no reader fills them with nulls.

## Train on it with Axolotl

```yaml
datasets:
  - path: train.jsonl
    ds_type: json
    type: chat_template
    field_messages: messages
    message_field_training: FLAG
    roles_to_train: []
    train_on_eos: turn
```

- `roles_to_train: []` leaves it to the flag alone, and `train_on_eos: turn` trains the end of
  those turns that are trained.
- Axolotl decodes the JSON text of arguments and tools before it calls the template.
- Axolotl writes a conversation once. Where the template takes earlier reasoning out (Qwen3), it
  trains those steps without theirs, and the last one without the tag that opens it. To train each
  step as the model will write it, export tokens: `--to trl-sft --set form=tokens --model MODEL`.
- Where the template ends a turn with another token than the tokenizer's `eos_token`, name that
  token beside `datasets`, or Axolotl does not train the end of a turn. For Llama 3:

```yaml
eot_tokens:
  - "<|eot_id|>"
```

Gemma 2 and 3 end a turn with `<end_of_turn>`, ChatML with `<|im_end|>`. GLM-4.5 stops at what
begins the next message, so it takes two: `<|user|>` and `<|observation|>`.

## Train on it with ms-swift

Export with `--set flag=loss`, then:

```sh
swift sft --model MODEL --dataset train.jsonl --loss_scale default
```

- ms-swift drops `reasoning_content`: export with `--set reasoning=strip` when that is not
  wanted, or have the reasoning in the text.
- It trains the token that ends the last message even if the flag of that message is false.
- It makes one turn of two messages of the assistant in a row, such as words and then a call: the
  token between them that ends the first one is not trained.
- It refuses a row with a system message that is not the first one.
- Under `datasets` 5 it rounds numbers in the arguments of calls to ten digits behind the point.
  Where those matter, export tokens: `--to trl-sft --set form=tokens --model MODEL`.
"""

_TEXT = """
Each row is a text in ChatML, cut into segments; those with the label true are trained. Tools, calls
and results stand in the text in the Hermes manner.

## Train on it with Axolotl

```yaml
datasets:
  - path: train.jsonl
    ds_type: json
    type: input_output
```

- No chat template is used, so this is right only for models that know `<|im_start|>` and
  `<|im_end|>`.
- Each segment becomes tokens by itself, so the borders of segments are borders of tokens.
"""

EXPORTER = Chatml()
