"""Messages of a chat, by their ``role``, into steps and observations.

OpenAI's chat completions, Anthropic's messages, and what gateways and frameworks make of them:
calls in ``tool_calls`` or as blocks, results as messages or as blocks, reasoning under five names.
"""

from __future__ import annotations

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.chat import RESULTS, SOURCES, chat_result, take_calls, take_reasoning
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, merge_extra
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.token_columns import take_tokens
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

_PLAIN = frozenset({"system", "user", "assistant", "tool"})


class ChatMessages:
    """Reads messages into the trajectory of a block reader.

    Args:
        blocks: reads the content of messages.
    """

    def __init__(self, blocks: BlockReader) -> None:
        self.blocks = blocks

    @property
    def run(self) -> TrajectoryDraft:
        """The trajectory that is added to."""
        return self.blocks.run

    def system(self, raw: Raw | None, path: str) -> StepDraft | None:
        """Add a system prompt that stands outside the messages; None when there is none."""
        if raw is None or jsontext.first_byte(raw) not in (QUOTE, BRACE, BRACKET):
            return None
        step = self.run.step("system")
        self.blocks.content(raw, step, path)
        return step

    def messages(self, sources: list[SourceObject]) -> None:
        """Add messages in their order."""
        for source in sources:
            self.message(source)

    def message(self, source: SourceObject, role: str | None = None) -> StepDraft | None:
        """Add a message.

        Args:
            source: the message.
            role: its role, where it does not say it under ``role``.

        Returns:
            Its step; None when it holds results only.
        """
        role = source.word("role") if role is None else role
        if role in _PLAIN and source.word("role") == role:
            source.drop("role")
        if role in RESULTS:
            self._result(source, role)
            return None
        if SOURCES.get(role) == "agent":
            return self.assistant(source)
        if SOURCES.get(role) is None:
            self.blocks.losses.unknown(f"role {role or 'missing'}")
        return self._prompt(source, SOURCES.get(role, "environment"))

    def _prompt(self, source: SourceObject, origin: str) -> StepDraft | None:
        """A message to the model; the results at its beginning answer what came before."""
        blocks = source.copy().objects("content")
        content = source.take("content")
        count = 0
        while count < len(blocks) and blocks[count].word("type") == "tool_result":
            self.blocks.block(blocks[count], StepDraft({}))
            count += 1
        if count and count == len(blocks):
            if rest := source.rest():
                merge_extra(self.run.observations[-1].extra, {"message": rest})
            return None
        step = self.run.step(origin)
        self._identify(source, step.columns)
        if count:
            for block in blocks[count:]:
                self.blocks.block(block, step)
        else:
            self.blocks.content(content, step, f"{source.path}.content")
        step.extra.update(source.rest())
        return step

    def _result(self, source: SourceObject, role: str) -> None:
        draft = chat_result(source, self.blocks)
        if role not in _PLAIN:
            draft.extra.setdefault("role", role)

    def assistant(self, source: SourceObject, step: StepDraft | None = None) -> StepDraft:
        """Add a model's turn, of which a compaction inside it makes two.

        Args:
            source: the message.
            step: the turn where it has begun already, such as with its reasoning.
        """
        if source.word("role") == "assistant":
            source.drop("role")
        blocks = source.copy().objects("content")
        content = source.take("content")
        if any(block.word("type") == "compaction" for block in blocks):
            for block in blocks:
                if block.word("type") == "compaction":
                    self._compaction(block)
                    step = None
                else:
                    step = step or self.run.step("agent", "llm_turn")
                    self.blocks.block(block, step)
            content = None
        step = step or self.run.step("agent", "llm_turn")
        thought = any(block.word("type") in ("thinking", "reasoning") for block in blocks)
        if not thought:
            take_reasoning(source, step, self.blocks)
        self.blocks.content(content, step, f"{source.path}.content")
        take_calls(source, step, self.blocks)
        if refusal := source.word("refusal"):
            source.drop("refusal")
            step.parts.text(self.blocks.builder.text(refusal), {"type": "refusal"})
        self._identify(source, step.columns)
        take_tokens(source, step.columns)
        step.extra.update(source.rest())
        return step

    def _compaction(self, block: SourceObject) -> None:
        """The summary stands for everything before it."""
        edit = self.run.step("system", "context_edit", edit_boundary="replace")
        edit.columns["edit_summary"] = block.text("content")
        edit.extra.update(block.rest())

    def _identify(self, source: SourceObject, columns: Columns) -> None:
        columns["native_id"] = source.name("id")
        take_time(source, columns, "timestamp", "created_at")
        actor = source.text("name")
        if actor is not None:
            columns["actor"] = actor
