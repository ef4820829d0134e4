"""Fitting chats and pairs to what a format can carry. No mask is dropped in silence.

The context after the last trained message of a chat has no part in its loss, so it is cut off where
it would be in the way. What cannot be carried at all stops the export with one sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from adp.rendering.chat import Chat, Message, PairChats, expand
from adp.rendering.options import RenderOptions
from adp.rendering.prepare import prepare
from adp.rendering.probe import Forms
from adp.trainers.export.exporter import ExporterOptions, Form, PairOptions
from adp_schema.errors import UsageError

_ANY = Forms(
    arguments="object",
    text_with_calls=True,
    results=True,
    tools=True,
    system=True,
    later_system=True,
    parallel=True,
    reasoning="field",
)
"""A template that can write everything: what one can is known only when its model is."""


class UnfitError(Exception):
    """A format cannot carry the mask of a chat.

    Args:
        reason: why, in a few words, for the counts.
        sentence: where, why, and what to do.
    """

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(f"{sentence}; or leave such chats out: --set unfit=leave_out")
        self.reason = reason


class Fitter:
    """Fits chats and pairs to one form.

    Args:
        name: the exporter's, for messages.
        form: what it writes.
        options: as given.
        changed: counts what is written differently.
    """

    def __init__(
        self, name: str, form: Form, options: ExporterOptions, changed: Counter[str]
    ) -> None:
        self._name = name
        self._form = form
        self._options = options
        self._changed = changed
        if form.mask == "all" and options.expand:
            raise UsageError(
                f"expand=true does not help here: in each row of {name} the trainer learns from "
                f"every message of the assistant, so early steps would be learned again and again; "
                f"{form.instead}"
            )
        self._prepare = RenderOptions(
            reasoning=options.reasoning, tools="text" if options.tools == "text" else "template"
        )

    def chats(self, chat: Chat) -> Iterator[Chat]:
        """The chats that carry the mask of one; several when it is expanded.

        Raises:
            UnfitError: the format cannot carry the mask.
        """
        chat = self._all_ones(chat if self._form.model else self.written(chat))
        trained = chat.trained()
        if self._form.mask == "last":
            if len(trained) > 1 and not self._options.expand:
                raise UnfitError(
                    "several trained steps in a chat",
                    f"{_where(chat, trained[-1])} and {len(trained) - 1} before it are trained, "
                    f"and {self._name} trains only the last message of a row; add "
                    "--set expand=true for a row a step, or --set train=last_step",
                )
            yield from expand(chat)
        elif self._form.mask == "all":
            yield self._whole(chat, trained)
        else:
            yield from expand(chat) if self._options.expand else [chat]

    def written(self, chat: Chat) -> Chat:
        """A chat with reasoning and tools as the options want them."""
        return prepare(chat, self._prepare, _ANY, self._changed)

    def _whole(self, chat: Chat, trained: Sequence[int]) -> Chat:
        """A chat of which every assistant's message is trained."""
        chat = replace(chat, messages=chat.messages[: trained[-1] + 1])
        for index, message in enumerate(chat.messages):
            if message.role == "assistant" and not message.weight:
                raise UnfitError(
                    "a step before the last trained one is not trained",
                    f"{_where(chat, index)} is not trained, and {self._name} cannot say so: the "
                    f"trainer learns from every message of the assistant; {self._form.instead}",
                )
        return chat

    def _all_ones(self, chat: Chat) -> Chat:
        """Weights as the format knows them."""
        if self._form.mask in ("tokens", "weights"):
            return chat
        odd = [index for index in chat.trained() if chat.messages[index].weight != 1]
        if not odd:
            return chat
        if self._options.fractions == "refuse":
            message = chat.messages[odd[0]]
            raise UnfitError(
                "a weight that is neither 0 nor 1",
                f"{_where(chat, odd[0])} has the weight {message.weight:g}, and {self._name} knows "
                "only 0 and 1; add --set fractions=ones, or use an exporter that takes weights: "
                "--to trl-sft --set form=tokens --set weights=true",
            )
        self._changed["weights between 0 and 1 or above, written as 1"] += len(odd)
        messages = tuple(
            replace(message, weight=1.0) if message.weight else message for message in chat.messages
        )
        return replace(chat, messages=messages)

    def pair(self, pair: PairChats) -> PairChats | str:
        """A pair as the format takes it, or why it is left out.

        Raises:
            UsageError: the format cannot carry the pair.
        """
        pair = replace(pair, chosen=self.written(pair.chosen), rejected=self.written(pair.rejected))
        if self._options.tools == "text":  # a message more or less at the beginning
            pair = replace(pair, shared=_common(pair.chosen, pair.rejected))
        if self._form.mask != "last":
            return replace(
                pair, chosen=self._all_ones(pair.chosen), rejected=self._all_ones(pair.rejected)
            )
        wanted = getattr(self._options, "multi_turn", PairOptions().multi_turn)
        if not (_single(pair.chosen, pair.shared) and _single(pair.rejected, pair.shared)):
            if wanted == "refuse":
                raise UsageError(
                    f"pair {pair.pair.pair_id}: a side is more than one step, and {self._name} "
                    "takes one message a side (the results of tools between them would be "
                    "trained); add --set multi_turn=cut to compare the first step in which the "
                    "sides differ, or --set multi_turn=leave_out"
                )
            if wanted == "leave_out":
                return "a side is more than one step"
            cut = self._cut(pair)
            if not isinstance(cut, str):
                self._changed["pairs cut to the first step in which their sides differ"] += 1
            return cut
        return self._cut(pair)

    def _cut(self, pair: PairChats) -> PairChats | str:
        """Both sides up to their first difference, which has to be a trained step of each."""
        at = _common(pair.chosen, pair.rejected)
        if at == len(pair.chosen.messages) == len(pair.rejected.messages):
            return "both sides say the same"
        sides = []
        for name, chat in (("chosen", pair.chosen), ("rejected", pair.rejected)):
            if at >= len(chat.messages):
                return f"the {name} side is the beginning of the other one"
            if not chat.messages[at].weight:
                return f"the sides first differ in a message of the {name} side that is no target"
            ended = replace(chat, messages=chat.messages[: at + 1])
            sides.append(self._all_ones(ended.weigh([at])))
        return replace(pair, chosen=sides[0], rejected=sides[1], shared=at)


def tools_as_text(chat: Chat, changed: Counter[str]) -> Chat:
    """A chat with tools in the system prompt, and calls and results in the text.

    Args:
        chat: a chat.
        changed: counts what is written differently.
    """
    return prepare(chat, RenderOptions(tools="text"), _ANY, changed)


def _where(chat: Chat, index: int) -> str:
    return f"{chat.trajectory_id}: step {chat.messages[index].step}"


def _single(chat: Chat, shared: int) -> bool:
    """Whether a side is one trained message, right after what both have in common."""
    trained = chat.trained()
    return trained == [shared]


def _common(chosen: Chat, rejected: Chat) -> int:
    """Number of messages at the beginning that say the same on both sides."""
    count = 0
    for message, other in zip(chosen.messages, rejected.messages, strict=False):
        if _in_words(message) != _in_words(other):
            break
        count += 1
    return count


def _in_words(message: Message) -> tuple[object, ...]:
    """What a message says, without ids: those differ between runs that say the same."""
    calls = tuple((call.name, call.text) for call in message.calls)
    return message.role, message.text, message.reasoning, calls, message.name
