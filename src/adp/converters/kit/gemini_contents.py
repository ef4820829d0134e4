"""Contents and candidates of Gemini's API into steps and observations."""

from __future__ import annotations

from adp.converters.kit.blocks import BlockReader, call_columns
from adp.converters.kit.chat import free_text
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import GEMINI, take_usage
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.model import Columns

_TEXT_ONLY = ({"text"}, {"text", "thought"})


class GeminiContents:
    """Reads contents into the trajectory of a block reader.

    Args:
        blocks: reads parts.
    """

    def __init__(self, blocks: BlockReader) -> None:
        self.blocks = blocks

    @property
    def run(self) -> TrajectoryDraft:
        """The trajectory that is added to."""
        return self.blocks.run

    def read(self, sources: list[SourceObject]) -> None:
        """Add contents in their order."""
        for source in sources:
            self.content(source)

    def content(self, source: SourceObject) -> StepDraft | None:
        """Add a content; None when it holds results only."""
        role = source.word("role")
        parts = _parts(source)
        results = [part for part in parts if _is_result(part)]
        if role != "model" and results and len(results) == len(parts):
            for part in parts:
                self.blocks.block(part, StepDraft({}))
            if role in ("user", "function", "tool"):
                source.drop("role")
            if rest := source.rest():
                self.run.observations[-1].extra["content"] = rest
            return None
        agent = role == "model"
        step = self.run.step("agent", "llm_turn") if agent else self.run.step("user")
        if role in ("user", "model"):
            source.drop("role")
        self.parts(parts, step)
        step.extra.update(source.rest())
        return step

    def parts(self, parts: list[SourceObject], step: StepDraft) -> None:
        """Add parts; pieces of a text that a stream cut are one text again."""
        pieces: list[str] = []
        thought = False
        for part in parts:
            plain = set(part.values) in _TEXT_ONLY and bool(part.word("text"))
            if "thought" in part and part.first("thought") not in b"tf":
                plain = False
            if pieces and (bytes(part.values.get("thought", b"")) == b"true") != thought:
                self._flush(pieces, step, thought=thought)
            if plain:
                thought = bool(part.flag("thought"))
                pieces.append(part.text("text") or "")
                continue
            self._flush(pieces, step, thought=thought)
            self._part(part, step)
        self._flush(pieces, step, thought=thought)

    def _flush(self, pieces: list[str], step: StepDraft, *, thought: bool) -> None:
        if pieces:
            add = step.parts.reasoning if thought else step.parts.text
            add(self.blocks.builder.text("".join(pieces)))
            pieces.clear()

    def _part(self, part: SourceObject, step: StepDraft) -> None:
        for key in ("executableCode", "executable_code"):
            if part.first(key) == BRACE:
                inner = part.child(key)
                columns = call_columns("code_execution", None, None, "code")
                columns = free_text(columns, inner.text("code") or "")
                columns["call_id"] = inner.name("id")
                columns["language"] = inner.text("language")
                step.call(columns, part.rest())
                return
        for key in ("codeExecutionResult", "code_execution_result"):
            if part.first(key) == BRACE:
                inner = part.child(key)
                draft = self.run.observe({}, answers=inner.name("id"), by_order=True)
                if inner.word("outcome"):
                    draft.columns["is_error"] = inner.word("outcome") != "OUTCOME_OK"
                if (text := inner.text("output")) is not None:
                    draft.parts.text(self.blocks.builder.text(text))
                draft.extra = part.rest()
                return
        self.blocks.block(part, step)

    def reply(self, source: SourceObject) -> StepDraft | None:
        """Read a reply as `replies` does."""
        return self.replies([source])

    def replies(self, sources: list[SourceObject]) -> StepDraft | None:
        """Read the pieces of a streamed reply, or a whole one, as one turn.

        Args:
            sources: replies; what is left of them is for the caller to keep.
        """
        columns: Columns = {}
        candidates: dict[int, list[SourceObject]] = {}
        counted = [source for source in sources if source.first("usageMetadata") == BRACE]
        for source in sources:
            for key, column in (("modelVersion", "model"), ("responseId", "response_id")):
                if columns.get(column) in (None, source.word(key)) and key in source:
                    columns[column] = source.text(key)
            take_time(source, columns, "createTime")
            if counted and source is counted[-1]:
                take_usage(source, "usageMetadata", columns, GEMINI)
            for candidate in source.objects("candidates"):
                candidates.setdefault(candidate.integer_at("index") or 0, []).append(candidate)
        written, thoughts = columns.get("tokens_out"), columns.get("tokens_reasoning")
        if thoughts is not None:
            # Candidates are counted without the thoughts before them.
            columns["tokens_out"] = (written or 0) + thoughts
        main, before, first = self.run, len(self.run.steps), None
        for pieces in candidates.values():
            if first is not None:
                self.blocks.run = main.branch(before, "alternate")
            step = self._candidate(pieces)
            first = first or step
        self.blocks.run = main
        if first is None and columns:
            first = main.step("agent", "llm_turn")
        if first is not None:
            first.columns.update(columns)
        return first

    def _candidate(self, pieces: list[SourceObject]) -> StepDraft:
        step = self.run.step("agent", "llm_turn")
        parts: list[SourceObject] = []
        for piece in pieces:
            content = piece.child("content")
            parts += _parts(content)
            if content.word("role") == "model":
                content.drop("role")
            reason = piece.text("finishReason")
            before = step.columns.get("stop_reason")
            if reason is not None:
                step.columns["stop_reason"] = reason
                if before not in (None, reason):
                    step.extra.setdefault("finishReason before", []).append(before)
            if piece.integer_at("index") == 0:
                piece.drop("index")
        self.parts(parts, step)
        left = [rest for piece in pieces if (rest := piece.rest())]
        if left:
            step.extra["candidate"] = left[0] if len(left) == 1 else left
        return step


def _parts(content: SourceObject) -> list[SourceObject]:
    """The parts of a content; a single one may stand without a list."""
    if content.first("parts") == BRACE:
        return [SourceObject(content.take("parts"), f"{content.path}.parts", content.losses)]
    return content.objects("parts")


def _is_result(part: SourceObject) -> bool:
    """Whether a part is a result; one of another type is kept whole, in a step."""
    return "type" not in part and ("functionResponse" in part or "function_response" in part)


def take_outcome(source: SourceObject, draft: ObservationDraft, status: str | None) -> None:
    """Take what agents of Gemini's family say of a result beside what the model saw.

    Args:
        source: an object with ``errorType`` and ``resultDisplay``, what the user was shown.
        draft: the result.
        status: success, error or cancelled; any other says nothing.
    """
    if status in ("success", "error", "cancelled"):
        draft.columns["is_error"] = status != "success"
    draft.columns["error_type"] = source.text("errorType")
    shown = source.json_object("resultDisplay")
    if shown is not None and draft.columns.get("structured") is None:
        draft.columns["structured"] = shown
    elif shown is not None:
        draft.extra["resultDisplay"] = jsontext.raw(shown)
