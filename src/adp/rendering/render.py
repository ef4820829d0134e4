"""From a trajectory to rows of tokens: the one renderer.

renderer = Renderer.load("Qwen/Qwen3-8B", RenderOptions(max_length=8192, window="sliding"))
for row in renderer.trajectory(store.get("swe/42", resolve=True)).rows:
    row.input_ids, row.labels
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adp.rendering.chat import Chat, Message, chats_of
from adp.rendering.model import load_tokenizer, stop_ids
from adp.rendering.one_row import one_row
from adp.rendering.options import RenderOptions
from adp.rendering.prepare import (
    REASONING_DROPPED,
    WORDS_REFUSED,
    choose,
    plain_tools,
    prepare,
    said_in,
)
from adp.rendering.probe import TemplateRefusalError
from adp.rendering.report import NO_END
from adp.rendering.sampled import Memory
from adp.rendering.spans import Render, Span, renders
from adp.rendering.template import ChatTemplate
from adp.rendering.template_prefixes import Speller
from adp.rendering.tokens import Encoder, Tokens
from adp.rendering.windows import fit
from adp_schema.model import Trajectory

WORDS_DROPPED = "steps of which the template drops words"
"""The note that counts them: what stands of them in the chat is trained."""

IGNORED = -100
"""Label of a token that is not trained; what torch's cross entropy leaves out."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One row of training data. The arrays have one entry a token.

    Attributes:
        trajectory_id: where it comes from.
        seq: its place in the store.
        segment: stretch between two edits of the context, from 0.
        window: number of the row among those of its segment, from 0.
        input_ids: token ids, int32.
        labels: the ids that are trained, -100 elsewhere, int32.
        loss_weights: weight in the loss, 0 where nothing is trained, float32.
        step_index: the step that the token trains, -1 elsewhere, int32.
        context_cut: whether messages were left out to fit the window.
        text: the rendered text.
        spans: the characters of the text that are trained: step, first, end.
    """

    trajectory_id: str
    seq: int
    segment: int
    window: int
    input_ids: Array
    labels: Array
    loss_weights: Array
    step_index: Array
    context_cut: bool
    text: str
    spans: tuple[tuple[int, int, int], ...]


@dataclass
class Rendered:
    """What became of a trajectory or a chat.

    ``steps`` is the number of trained steps that were asked for: those in the rows and those in
    ``lost`` together.

    Attributes:
        rows: the rows.
        steps: steps with a weight.
        trained: steps that are trained in a row.
        lost: reason -> number of steps that are in no row.
        notes: what was written differently, or drifts -> how often.
        rejected: why the template refused a chat.
    """

    rows: list[TokenRow] = field(default_factory=list)
    steps: int = 0
    trained: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    rejected: str | None = None

    def add(self, other: Rendered) -> None:
        """Take up the rows and counts of another one."""
        self.rows += other.rows
        self.steps += other.steps
        self.trained += other.trained
        self.lost += other.lost
        self.notes += other.notes
        self.rejected = self.rejected or other.rejected


class Renderer:
    """Renders with one tokenizer, its chat template and one set of options.

    Args:
        tokenizer: a fast tokenizer of transformers with a chat template.
        options: what is asked for.
        stops: ids of tokens at which generation stops besides the tokenizer's own, such as those
            of the model's generation config.

    Attributes:
        tokenizer: the tokenizer.
        options: the options.
        template: its chat template.
        encoder: makes tokens of text.
        stops: the ids that were given.

    Raises:
        UsageError: the tokenizer has no template, or is not a fast one.
    """

    def __init__(
        self, tokenizer: Any, options: RenderOptions | None = None, stops: Collection[int] = ()
    ) -> None:
        self.tokenizer = tokenizer
        self.options = options or RenderOptions()
        self.stops = tuple(sorted(stops))
        self.template = ChatTemplate(tokenizer, self.options, self.stops)
        self.encoder = Encoder(tokenizer)
        self._memory = Memory() if self.options.check == "sampled" else None

    @classmethod
    def load(cls, model: str, options: RenderOptions | None = None) -> Renderer:
        """Load the tokenizer of a model.

        Args:
            model: a folder, a name on the Hugging Face Hub, or ``tiny``.
            options: what is asked for.

        Raises:
            UsageError: there is no such model, or it cannot be used; says what to do.
            MissingExtraError: transformers is not installed.
        """
        options = options or RenderOptions()
        trust = options.trust_remote_code
        return cls(load_tokenizer(model, trust_remote_code=trust), options, stop_ids(model))

    def trajectory(self, trajectory: Trajectory) -> Rendered:
        """Render a trajectory.

        Args:
            trajectory: with the steps of its parent, when it is a branch (``resolve=True``);
                these are context.
        """
        first = trajectory.parent_step or 0 if trajectory.parent_id is not None else 0
        chats = chats_of(trajectory, first_step=first)
        full = Rendered(steps=chats.steps, lost=Counter(chats.untrained), notes=chats.notes)
        for chat in choose(chats.chats, self.options.train, full.lost):
            part = self.chat(chat)
            part.steps = 0
            full.add(part)
        return full

    def chat(self, chat: Chat) -> Rendered:
        """Render a chat. One without a trained message gives no row."""
        asked = {chat.messages[index].step for index in chat.trained()}
        result = Rendered(steps=len(asked))
        if not asked:
            return result
        try:
            ready = prepare(chat, self.options, self.template.forms, result.notes)
            left = {ready.messages[index].step for index in ready.trained()}
            cut = self._rows(ready, result) if left else set()
        except TemplateRefusalError as error:
            # The counts must add up: what was rendered before does not stand.
            lost = Counter({f"refused: {error}": len(asked)})
            return Rendered(steps=len(asked), lost=lost, rejected=str(error))
        trained = {int(step) for row in result.rows for step in np.unique(row.step_index)} - {-1}
        result.trained = len(trained)
        result.lost = +Counter(
            {
                WORDS_REFUSED: len(asked - left),
                "the window is too small": len((left - trained) & cut),
                "no token of its own": len(left - trained - cut),
            }
        )
        return result

    def _rows(self, chat: Chat, value: Rendered) -> set[int]:
        """Add the rows of a chat; return the steps that no window holds."""
        limit = self.options.max_length
        cut: set[int] = set()
        for render, tokens in self._renders(chat, value.notes):
            if limit is None or len(tokens.ids) <= limit:
                self._add(value, chat, render, tokens)
                continue
            indexes = [span.index for span in render.spans]
            ended = replace(chat, messages=chat.messages[: render.last + 1]).weigh(indexes)
            for fitted in fit(ended, self.options, self._measure, len(tokens.ids)):
                cut.update(fitted.lost)
                if fitted.chat is not None:
                    for result, ids in self._renders(fitted.chat, value.notes):
                        if len(ids.ids) <= limit:
                            self._add(value, fitted.chat, result, ids)
                        else:
                            cut.update(
                                fitted.chat.messages[span.index].step for span in result.spans
                            )
        return cut

    def _measure(self, chat: Chat) -> int:
        """Tokens of a chat up to its last trained message; of all of it without one; 0 of nothing.

        Many templates refuse a conversation without messages.
        """
        if not chat.messages:
            return 0
        last = chat.trained()[-1:] or [len(chat.messages) - 1]
        plain = self.template.plain(chat)[: last[0] + 1]
        text = self.template.render(plain, plain_tools(chat))
        return self.encoder.count(text + self.template.left(plain[-1], text))

    def _renders(self, chat: Chat, notes: Counter[str]) -> Iterator[tuple[Render, Tokens]]:
        speller = Speller(
            self.template, self.template.plain(chat), plain_tools(chat), self.template.special
        )
        spelled = one_row if self.options.history == "one_row" else renders
        for render in spelled(speller, chat.trained(), notes, self._memory):
            edges = [place for span in render.spans for place in (span.start, span.end)]
            yield render, self.encoder.encode(render.text, edges)

    def _stops(self, ids: Array) -> bool:
        """Whether the last id, but for white space, is one at which generation stops."""
        for number in ids[::-1]:
            if int(number) in self.template.stops:
                return True
            if self.encoder.text(int(number)).strip():
                return False
        return False

    def forget(self) -> None:
        """Forget what was found out about the template: what follows does not depend on it then."""
        if self._memory is not None:
            self._memory.clear()

    def _add(self, value: Rendered, chat: Chat, render: Render, tokens: Tokens) -> None:
        """Add a row, unless none of its tokens is trained."""
        count = len(tokens.ids)
        weights = np.zeros(count, np.float32)
        steps = np.full(count, -1, np.int32)
        for span in render.spans:
            message = chat.messages[span.index]
            first, stop, across = tokens.within(span.start, span.end)
            weights[first:stop] = message.weight
            steps[first:stop] = message.step
            value.notes["tokens across the edge of a step, not trained"] += across
            value.notes[NO_END] += first < stop and not self._stops(tokens.ids[first:stop])
            if span.start < span.end:
                value.notes += dropped(message, render.text[span.start : span.end])
        value.notes = +value.notes
        if not weights.any():
            return
        value.rows.append(
            TokenRow(
                trajectory_id=chat.trajectory_id,
                seq=chat.seq,
                segment=chat.segment,
                window=len(value.rows),
                input_ids=tokens.ids,
                labels=np.where(weights > 0, tokens.ids, IGNORED).astype(np.int32),
                loss_weights=weights,
                step_index=steps,
                context_cut=chat.cut,
                text=render.text,
                spans=tuple(_characters(chat, render.spans)),
            )
        )


def dropped(message: Message, text: str) -> Counter[str]:
    """What of a message of the assistant does not stand in a text that the template wrote.

    Args:
        message: the message, made ready by `prepare`.
        text: its own part of the conversation; or all of it, where parts are not told apart.
    """
    names = (call.name for call in message.calls)
    full = all(said_in(text, words) for words in (message.text, *names))
    thought = said_in(text, message.reasoning or "")
    return Counter({REASONING_DROPPED: not thought, WORDS_DROPPED: not full})


def _characters(chat: Chat, spans: tuple[Span, ...]) -> Iterator[tuple[int, int, int]]:
    for span in spans:
        yield chat.messages[span.index].step, span.start, span.end
