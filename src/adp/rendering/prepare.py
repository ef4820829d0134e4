"""A chat made ready: what the options ask for, and what the template cannot write otherwise."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from adp.rendering.chat import Chat, ChatCall, Message
from adp.rendering.m3_forms import written
from adp.rendering.options import Reasoning, RenderOptions, Words
from adp.rendering.probe import Forms, TemplateRefusalError
from adp_schema.ids import digest
from adp_schema.parts import JOINT

SYSTEM_DROPPED = "messages of the system that the template drops"
"""The note that counts them. It may be the first ones that are dropped, or the later ones."""

REASONING_DROPPED = "steps whose reasoning the template drops"
"""The note that counts them."""

WORDS_REFUSED = "words beside calls, which the template drops (set words: before, or drop)"
"""The reason of steps that are not trained."""

WORDS_CONTEXT = "messages of which the template drops the words beside calls"
"""The note that counts them: they are context without these words."""

WORDS_LEFT_OUT = "steps whose words beside calls are left out"
"""The note that counts them: words: drop."""

WORDS_BEFORE = "steps whose words stand in a message before the calls"
"""The note that counts them: words: before."""

SHORT_IDS = "ids of calls, made nine letters and digits as the template asks"
"""The note that counts them."""

TOOLS_DROPPED = "chats whose tools on offer the template does not write"
"""The note that counts them."""

TOOLS_TEXT = """\
# Tools

You may call these functions. Their signatures stand between <tools> tags, one JSON object a line:
<tools>
{tools}
</tools>

For each call, write a JSON object with its name and arguments between <tool_call> tags:
<tool_call>
{{"name": <name of the function>, "arguments": <object of arguments>}}
</tool_call>"""
"""How tools are told about in text, after Hermes 2 Pro's form."""


def prepare(chat: Chat, options: RenderOptions, forms: Forms, notes: Counter[str]) -> Chat:
    """Make a chat ready.

    Args:
        chat: what the model saw.
        options: what is asked for.
        forms: what the template can write.
        notes: counts what is written differently.

    Raises:
        TemplateRefusalError: the template cannot write the chat; says what to do.
    """
    by_m3 = options.wire_form != "template"
    if by_m3:  # thoughts are text there
        forms = replace(forms, reasoning="inline")
    chat = _reason(chat, options.reasoning, forms, notes)
    if options.parallel_calls == "split":
        chat = _split(chat, notes)
    if options.tools == "text":
        chat = as_text(chat, notes)
    elif by_m3:
        chat = written(chat, options.wire_form, options.system_text, notes)
    _check(chat, forms, notes)
    if forms.arguments is not None and not forms.text_with_calls:
        chat = _words(chat, options.words, forms, notes)
    if not forms.system:
        chat = _system_into_user(chat, notes)
    if forms.alternates:
        chat = _merge_users(chat, notes)
    return _short_ids(chat, notes) if forms.short_ids else chat


def last_user(messages: Sequence[Message]) -> int:
    """Index of the last message of the user; -1 without one."""
    return max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)


def _changed(chat: Chat, change: Callable[[Message], Message]) -> Chat:
    return replace(chat, messages=tuple(map(change, chat.messages)))


def _reason(chat: Chat, wanted: Reasoning, forms: Forms, notes: Counter[str]) -> Chat:
    if not any(message.reasoning for message in chat.messages):
        return chat
    if forms.reasoning is None and wanted != "strip":
        notes[REASONING_DROPPED] += sum(
            bool(message.reasoning) for message in chat.messages if message.weight
        )
        wanted = "strip"
    if wanted == "keep":
        return chat
    border = last_user(chat.messages) if wanted == "last_turn" else len(chat.messages)
    messages = tuple(
        replace(message, reasoning=None) if message.reasoning and index < border else message
        for index, message in enumerate(chat.messages)
    )
    return replace(chat, messages=messages)


def _check(chat: Chat, forms: Forms, notes: Counter[str]) -> None:
    """Refuse what the template would drop without a word."""
    other = "use a template that does, or tools: text"
    calling = [message for message in chat.messages if message.calls]
    if calling and forms.arguments is None:
        raise TemplateRefusalError(f"the chat template writes no tool calls; {other}")
    if any(message.role == "tool" for message in chat.messages) and not forms.results:
        raise TemplateRefusalError(f"the chat template writes no results of tools; {other}")
    if not forms.parallel and any(len(message.calls) > 1 for message in calling):
        raise TemplateRefusalError(
            "the chat template takes one call a message; use parallel_calls: split"
        )
    if forms.system and not forms.later_system:
        messages = [message.role == "system" for message in chat.messages]
        notes[SYSTEM_DROPPED] += sum(messages) - (sum(messages) > 0 and messages[0])
    if chat.tools and not forms.tools:
        notes[TOOLS_DROPPED] += 1


def _words(chat: Chat, wanted: Words, forms: Forms, notes: Counter[str]) -> Chat:
    """Words beside calls, for a template that drops them."""
    count = sum(bool(message.calls and message.text.strip()) for message in chat.messages)
    if count and wanted == "refuse":
        raise TemplateRefusalError(
            "the chat template drops the text of a message that has calls; set words: keep, before "
            "or drop, use another template, or tools: text"
        )
    messages: list[Message] = []
    for message in chat.messages:
        if not message.calls or not message.text.strip():
            messages.append(message)
        elif wanted == "drop":
            notes[WORDS_LEFT_OUT] += 1
            messages.append(replace(message, text=""))
        elif wanted == "before" and forms.words_before:
            notes[WORDS_BEFORE] += 1
            messages.append(replace(message, calls=()))
            messages.append(replace(message, text="", reasoning=None))
        else:
            notes[WORDS_CONTEXT] += 1
            messages.append(replace(message, text="", weight=0.0))
    return replace(chat, messages=tuple(messages))


def _split(chat: Chat, notes: Counter[str]) -> Chat:
    """One message a call, each followed by its result."""
    messages: list[Message] = []
    index = 0
    while index < len(chat.messages):
        message = chat.messages[index]
        index += 1
        if len(message.calls) < 2:
            messages.append(message)
            continue
        notes["steps whose calls are split into messages"] += 1
        results: list[Message] = []
        while index < len(chat.messages) and chat.messages[index].role == "tool":
            results.append(chat.messages[index])
            index += 1
        for number, call in enumerate(message.calls):
            first = number == 0
            messages.append(
                replace(
                    message,
                    calls=(call,),
                    text=message.text if first else "",
                    reasoning=message.reasoning if first else None,
                )
            )
            messages += [item for item in results if item.call_id == call.call_id]
        call_ids = {call.call_id for call in message.calls}
        messages += [item for item in results if item.call_id not in call_ids]
    return replace(chat, messages=tuple(messages))


def call_text(call: ChatCall) -> str:
    """A call as text, in Hermes' form. Arguments stand as the source wrote them."""
    name = json.dumps(call.name, ensure_ascii=False)
    return f'<tool_call>\n{{"name": {name}, "arguments": {call.text}}}\n</tool_call>'


def as_text(chat: Chat, notes: Counter[str]) -> Chat:
    """Put tools into the system prompt, and calls and results into the text.

    Args:
        chat: what the model saw.
        notes: counts what is written differently.
    """
    messages: list[Message] = []
    for message in chat.messages:
        if message.calls:
            words = [message.text, *map(call_text, message.calls)]
            messages.append(replace(message, text="\n".join(filter(None, words)), calls=()))
        elif message.role == "tool":
            text = f"<tool_response>\n{message.text}\n</tool_response>"
            if messages and messages[-1].role == "user" and messages[-1].call_id is not None:
                messages[-1] = replace(messages[-1], text=f"{messages[-1].text}\n{text}")
            else:
                messages.append(replace(message, role="user", text=text))
        else:
            messages.append(message)
    if chat.tools:
        notes["chats whose tools stand as text"] += 1
        tool_text = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in chat.tools)
        text = TOOLS_TEXT.format(tools=tool_text)
        if messages and messages[0].role == "system":
            messages[0] = replace(
                messages[0], text=JOINT.join(filter(None, (messages[0].text, text)))
            )
        else:
            messages.insert(0, Message("system", text, -1))
    return replace(chat, messages=tuple(messages), tools=())


def _system_into_user(chat: Chat, notes: Counter[str]) -> Chat:
    """The system's words before those of the user, for templates without a system message."""
    words: list[str] = []
    messages: list[Message] = []
    for message in chat.messages:
        if message.role == "system":
            words.append(message.text)
            notes["system messages written into one of the user"] += 1
        elif message.role == "user" and words:
            messages.append(replace(message, text=JOINT.join([*words, message.text])))
            words = []
        else:
            messages.append(message)
    if words:
        raise TemplateRefusalError(
            "the chat template takes no system message, and no message of the user follows it"
        )
    return replace(chat, messages=tuple(messages))


def _merge_users(chat: Chat, notes: Counter[str]) -> Chat:
    """Messages of the user in a row as one, for templates that want roles to take turns."""
    messages: list[Message] = []
    for message in chat.messages:
        if message.role == "user" and messages and messages[-1].role == "user":
            notes["messages of the user joined with the one before"] += 1
            messages[-1] = replace(messages[-1], text=JOINT.join([messages[-1].text, message.text]))
        else:
            messages.append(message)
    return replace(chat, messages=tuple(messages))


_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_LETTERS = string.digits + string.ascii_letters


def _short_ids(chat: Chat, notes: Counter[str]) -> Chat:
    """Ids of nine letters and digits, which the templates of Mistral ask for.

    One that is such an id is kept. Another one is derived from the id, the name and the arguments
    of its call: the same call has the same id in every row, and calls of different runs that a
    source numbers alike have not.
    """
    known = {call.call_id: (call.name, call.text) for item in chat.messages for call in item.calls}
    for message in chat.messages:
        if message.call_id is not None:
            known.setdefault(message.call_id, ("", ""))
    names = {name: name for name in known if _SHORT_ID.fullmatch(name)}
    taken = set(names)
    for name, call in known.items():
        number = 0
        while name not in names:
            key = json.dumps([name, *call, number]).encode("utf-8", "surrogatepass")
            short = _letters(int(digest(key), 16))
            number += 1
            if short not in taken:
                taken.add(short)
                names[name] = short
                notes[SHORT_IDS] += 1

    def change(message: Message) -> Message:
        calls = tuple(replace(call, call_id=names[call.call_id]) for call in message.calls)
        answered = None if message.call_id is None else names[message.call_id]
        return replace(message, calls=calls, call_id=answered)

    return _changed(chat, change)


def _letters(number: int) -> str:
    """Nine letters and digits of a number."""
    text = ""
    for _ in range(9):
        number, place = divmod(number, len(_LETTERS))
        text += _LETTERS[place]
    return text


def choose(chats: Sequence[Chat], train: str, untrained: Counter[str]) -> Iterator[Chat]:
    """Leave the weight to those trained messages that the option ``train`` wants.

    Args:
        chats: of one trajectory, in order.
        train: ``all``, ``last_step`` or ``last_turn``.
        untrained: counts the others by reason.
    """
    if train == "all":
        yield from chats
        return
    last = next((chat.segment for chat in reversed(chats) if chat.trained()), None)
    for chat in chats:
        indexes: list[int] = []
        before = chat.trained()
        if chat.segment == last:
            border = last_user(chat.messages)
            indexes = before[-1:] if train == "last_step" else [i for i in before if i > border]
        reason = "not the last step" if train == "last_step" else "not in the last turn"
        if len(before) > len(indexes):
            untrained[reason] += len(before) - len(indexes)
        if indexes:
            yield chat.weigh(indexes)


def said_in(text: str, words: str) -> bool:
    """Whether words stand in a text; templates may change the white space between them."""
    core = words.strip()
    return core in text or "".join(core.split()) in "".join(text.split())


def plain_tools(chat: Chat) -> list[dict[str, Any]]:
    """The tools on offer, as templates take them."""
    return list(chat.tools)
