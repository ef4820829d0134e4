"""The journal of a session of Mistral Vibe since 2.20: what happened since an earlier snapshot.

It repeats the messages. It alone has the system prompt, and the tokens of each answer; older parts
of it are removed.
"""

from __future__ import annotations

from collections.abc import Mapping

from adp.converters.kit.source_object import SourceObject
from adp_schema import jsontext
from adp_schema.losses import Losses

_ANSWERED = b'"completion_succeeded"'


class VibeJournal:
    """What the journal of a session has that nothing else has.

    Attributes:
        paths: its files.
        answers: id of an answer of the model -> its ``usage`` and ``finish_reason``.
        prompt: the message with the system prompt.
    """

    def __init__(self, files: Mapping[str, bytes], losses: Losses) -> None:
        self.paths = {path for path in files if "/journal/" in f"/{path}"}
        self.answers: dict[str, SourceObject] = {}
        self.prompt: SourceObject | None = None
        for path in sorted(self.paths):
            if not files[path]:
                continue
            reason = "of the journal only the system prompt and the tokens are kept"
            losses.add(f"$side.{path}", f"{reason}; it repeats the messages")
            for line in files[path].splitlines():
                self._line(SourceObject(line if jsontext.is_valid(line) else None, path, losses),
                           _ANSWERED in line)  # fmt: skip

    def _line(self, event: SourceObject, has_answer: bool) -> None:
        payload = event.child("payload")
        if has_answer and event.word("type") == "action_result":
            answer = payload.child("result").child("result")
            self.answers[payload.word("action_id")] = answer
        elif self.prompt is None and payload.word("kind") == "completion":
            messages = payload.child("request").child("model_input").child("messages")
            first = next(iter(messages.objects("messages")), None)
            self.prompt = first if first is not None and first.word("role") == "system" else None
