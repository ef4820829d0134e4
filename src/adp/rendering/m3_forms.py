"""The wire forms of M3: how tools, calls, results, thoughts and answers stand in its prompts.

    m3_teacher    ``<Action>{...}</Action>``, in the model's own chat template (``teacher_rits``)
    m3_mistral    ``[TOOL_CALLS] [{...}]``    (``student_mistral``)
    m3_qwen3      ``<tool_call>``             (``student_qwen3``)
    m3_granite3   ``<|tool_call|> [{...}]``   (``student_granite3``)

Each turn of the agent is one thought, ``<think>...</think>``, and one call or an answer,
``<FINAL>...</FINAL>``.
Tools and the protocol stand behind the words of the system. A form is two things: `written` makes
plain texts of a chat, and a small chat template (`frame_of`) puts them between the separators of
the student. `adp.rendering.m3_answers` reads what a model writes in it.

Source: m3-train-eval, templates and tool formats; separators and names are facts of it, the
sentences are our own. A user who has the original ones gives them as ``system_text``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from adp.rendering.chat import Chat, ChatCall, Message
from adp.rendering.policies import Policies
from adp.rendering.probe import TemplateRefusalError
from adp_schema.parts import JOINT

WireForm = Literal["template", "m3_teacher", "m3_mistral", "m3_qwen3", "m3_granite3"]
"""How a conversation is written: as the chat template does, or in a form of M3."""

STOPS = (
    *("<Observation>", "<tool_response>", "[TOOL_RESULTS]"),
    *("<|im_end|>", "</s>", "<|end_of_text|>"),
)
"""Texts that end a turn of the agent in M3, whatever the form."""

ERRORS = re.compile(
    r"(?:NoThought|MultipleThoughts|Parsing|InvalidPredictedAction|JSONDecode|ParallelToolCalling"
    r"|MissingKeys?)Error\b"
)
"""Names of what M3 tells about a turn that cannot be read."""

NO_THOUGHT = "steps without a thought, which M3 answers with NoThoughtError"
"""The note that counts them."""

WORDS_THOUGHT = "steps whose words beside a call are written into the thought"
"""The note that counts them."""

SYSTEM = """\
You answer the questions of a user step by step. At each step you either call one tool or give the \
final answer. Keep to what is said about the use of the tools.

"""

PROTOCOL = """\
How to answer:

1. Each message of yours begins with one thought between <think> and </think>: what you know, what \
is missing, and why the next step is the right one.
2. Behind the thought stands exactly one action:
   - a call of a tool: {tool_call_usage}
     The name is one of the list above. The object holds every argument that the tool requires; of \
a tool without arguments it is empty.{tool_use_constraints}
   - or the final answer, a text: <FINAL>the answer</FINAL>
     Give it when the results suffice, or to say that they do not.
3. After a call, wait for its result{result_form}; never write one yourself.
4. When the user asks another question after an answer, earlier questions and answers help, but \
what they do not tell has to be found out.{final_answer_instructions}

Write the thought and the action, and nothing else."""

_CHATML = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ '<|im_start|>assistant\\n' }}"
    "{% generation %}{{ (m.content or '') + '<|im_end|>\\n' }}{% endgeneration %}"
    "{% else %}{{ '<|im_start|>' + ('system' if m.role == 'system' else 'user') + '\\n' + "
    "(m.content or '') + '<|im_end|>\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_GRANITE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}"
    "{{ '<|start_of_role|>assistant<|end_of_role|>' }}"
    "{% generation %}{{ (m.content or '') + '<|end_of_text|>\\n' }}{% endgeneration %}"
    "{% else %}{{ '<|start_of_role|>' + ('system' if m.role == 'system' else 'user') + "
    "'<|end_of_role|>' + (m.content or '') + '<|end_of_text|>\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_of_role|>assistant<|end_of_role|>' }}{% endif %}"
)
# The system's words stand before those of the user who follows; without one, in a turn of theirs.
_MISTRAL = (
    "{{ bos_token or '' }}{% set ns = namespace(system='') %}{% for m in messages %}"
    "{% if m.role == 'system' %}{% set ns.system = ns.system + (m.content or '') + '\\n\\n' %}"
    "{% else %}{% if m.role != 'user' and ns.system %}"
    "{{ '[INST] ' + ns.system + '[/INST]' }}{% set ns.system = '' %}{% endif %}"
    "{% if m.role == 'assistant' %}"
    "{% generation %}{{ ' ' + (m.content or '') + (eos_token or '') }}{% endgeneration %}"
    "{% elif m.role == 'tool' %}{{ m.content or '' }}"
    "{% else %}{{ '[INST] ' + ns.system + (m.content or '') + '[/INST]' }}{% set ns.system = '' %}"
    "{% endif %}{% endif %}{% endfor %}"
    "{% if ns.system %}{{ '[INST] ' + ns.system + '[/INST]' }}{% endif %}"
)


@dataclass(frozen=True)
class M3Form:
    """One form.

    Attributes:
        tools: what is said about the tools, with the slot ``{tool_text}``.
        call: what stands before and after the JSON of a call.
        result: what stands before and after a result.
        result_form: how a result is told about in the protocol.
        listed: whether calls are a JSON list; else each is an object between tags of its own, and
            several are an error.
        tool_lines: whether tools are JSON objects, one a line; else a JSON list.
        result_role: role of a result: ``tool`` where the frame writes it as no message of a user.
        frame: its chat template; None: the model's own.
        stops: texts that end a turn, besides the model's own end.
        empty_thought: what a turn without a thought begins with in history.
    """

    tools: str
    call: tuple[str, str]
    result: tuple[str, str]
    result_form: str
    listed: bool = False
    tool_lines: bool = False
    result_role: Literal["user", "tool"] = "user"
    frame: str | None = None
    stops: tuple[str, ...] = ()
    empty_thought: str = ""


_TOOLS = "You have access to the following tools: {tool_text}"

FORMS: Mapping[str, M3Form] = {
    "m3_teacher": M3Form(
        _TOOLS,
        ("<Action>", "</Action>"),
        ("<Observation>", "</Observation>"),
        " between <Observation> and </Observation>",
        stops=("<Observation>",),
    ),
    "m3_mistral": M3Form(
        _TOOLS.replace("{tool_text}", "\n[AVAILABLE_TOOLS] {tool_text}[/AVAILABLE_TOOLS]"),
        ("[TOOL_CALLS] ", ""),
        ('[TOOL_RESULTS] {"content": ', "}[/TOOL_RESULTS]"),
        " between [TOOL_RESULTS] and [/TOOL_RESULTS]",
        listed=True,
        result_role="tool",
        frame=_MISTRAL,
        stops=("[TOOL_RESULTS]", "</s>"),
    ),
    "m3_qwen3": M3Form(
        _TOOLS.replace("{tool_text}", "\n<tools>{tool_text}\n</tools>"),
        ("<tool_call>\n", "\n</tool_call>"),
        ("<tool_response>\n", "\n</tool_response>"),
        " between <tool_response> and </tool_response>",
        tool_lines=True,
        frame=_CHATML,
        stops=("<tool_response>", "<|im_end|>"),
        empty_thought="<think>\n\n</think>\n\n",
    ),
    "m3_granite3": M3Form(
        _TOOLS.replace("tools: ", "available_tools: "),
        ("<|tool_call|> ", ""),
        ("", ""),
        "",
        listed=True,
        frame=_GRANITE,
        stops=("<|end_of_text|>",),
    ),
}

OF_M3: Mapping[str, WireForm] = {
    "teacher_rits": "m3_teacher",
    "student_mistral": "m3_mistral",
    "student_qwen3": "m3_qwen3",
    "student_granite3": "m3_granite3",
}
"""Names of M3's templates -> ours."""

_SLOT = re.compile(
    r"\{(system|tool_text|tool_call_usage|tool_use_constraints|result_form"
    r"|final_answer_instructions)\}"
)


def frame_of(wire_form: str) -> str | None:
    """The chat template of a form; None where the model's own is used."""
    form = FORMS.get(wire_form)
    return None if form is None else form.frame


def stops_of(wire_form: str) -> list[str]:
    """Texts at which a server should stop: what begins a result, and what ends a turn."""
    return list(FORMS[wire_form].stops) if wire_form in FORMS else []


def written(
    chat: Chat, wire_form: str, system_text: str | None, notes: Counter[str], *, roles: bool = True
) -> Chat:
    """A chat as plain texts in a form of M3.

    Args:
        chat: what the model saw.
        wire_form: name of the form.
        system_text: the system's message with slots, in place of ours.
        notes: counts what is written differently.
        roles: whether results may keep the role of a tool, which the frame of the form knows;
            False makes them messages of the user.

    Raises:
        TemplateRefusalError: a step has several calls, or arguments that are no JSON object.
    """
    form = FORMS[wire_form]
    words = list(chat.messages)
    system = words.pop(0).text if words and words[0].role == "system" else None
    text = system_message(form, chat.tools, chat.policies, system, system_text)
    messages = [Message("system", text, -1)]
    for place, message in enumerate(words):
        after = words[place + 1] if place + 1 < len(words) else None
        if message.role == "tool":
            role = form.result_role if roles else "user"
            content = form.result[0] + message.text + form.result[1]
            messages.append(replace(message, role=role, text=content, call_id=None, name=None))
        elif message.role == "assistant":
            content = _turn(form, message, after, notes)
            messages.append(replace(message, text=content, calls=(), reasoning=None))
        else:
            messages.append(message)
    return replace(chat, messages=tuple(messages), tools=())


def system_message(
    form: M3Form,
    tools: Sequence[Mapping[str, Any]],
    policies: Policies,
    system: str | None,
    system_text: str | None,
) -> str:
    """The message of the system: its words, the tools, the protocol.

    A policy that the words tell already is not told again.
    """
    shown = [json.dumps(tool, ensure_ascii=False) for tool in offered(tools, policies.availability)]
    usage, final = (
        None if text and system and text in system else text
        for text in (policies.usage, policies.final_answer)
    )
    words = SYSTEM if system is None else system
    example = '{"name": the name, "arguments": {an argument: its value, ...}}'
    call = f"[{example}]" if form.listed else example
    slots = {
        "system": words if words[-1:].isspace() or not words else f"{words}{JOINT}",
        "tool_text": "".join(f"\n{tool}" for tool in shown)
        if form.tool_lines
        else f"[{', '.join(shown)}]",
        "tool_call_usage": form.call[0].replace("\n", "") + call + form.call[1].replace("\n", ""),
        "tool_use_constraints": f"\n\n            Tool Usage Constraint: {usage}" if usage else "",
        "result_form": form.result_form,
        "final_answer_instructions": f"\n\n{final}" if final else "",
    }
    text = f"{{system}}{form.tools}\n\n{PROTOCOL}" if system_text is None else system_text
    return _SLOT.sub(lambda slot: slots[slot[1]], text)


def offered(
    tools: Sequence[Mapping[str, Any]], availability: str | None
) -> list[Mapping[str, Any]]:
    """The tools that a policy of availability shows."""
    if availability == "neither_api_rag":
        return []
    if availability not in ("only_api", "only_rag"):
        return list(tools)
    return [tool for tool in tools if _retrieves(tool) == (availability == "only_rag")]


def _retrieves(tool: Mapping[str, Any]) -> bool:
    name = str(tool.get("function", tool).get("name", ""))
    return name == "retrieve_documents" or name.startswith("retriever")


def _turn(form: M3Form, message: Message, after: Message | None, notes: Counter[str]) -> str:
    """A turn of the agent: a thought and an action, or what it wrote, where that was no action."""
    thought, text = message.reasoning, message.text
    if message.calls:
        if len(message.calls) > 1:
            raise TemplateRefusalError(
                "the forms of M3 take one call a message; use parallel_calls: split"
            )
        if text.strip():
            notes[WORDS_THOUGHT] += 1
            thought = JOINT.join(filter(None, (thought, text.strip())))
        text = form.call[0] + _call(form, message.calls[0]) + form.call[1]
    elif not _raw(form, message, after):
        text = f"<FINAL>{text}</FINAL>"
    if "<think>" in text or "</think>" in text:
        return text
    if thought is None:
        notes[NO_THOUGHT] += message.weight > 0
        return form.empty_thought + text
    return f"<think>{thought}</think>{text}"


def _raw(form: M3Form, message: Message, after: Message | None) -> bool:
    """Whether a text is what a model wrote, and no bare answer."""
    marks = ("<FINAL>", "<think>", "</think>", form.call[0].strip())
    if any(mark in message.text for mark in marks):
        return True
    return after is not None and after.role == "user" and ERRORS.match(after.text) is not None


def _call(form: M3Form, call: ChatCall) -> str:
    if not isinstance(call.arguments, dict):
        raise TemplateRefusalError(f"the arguments of a call of '{call.name}' are no JSON object")
    arguments: Any = call.arguments
    if form is FORMS["m3_teacher"]:
        # M3 writes them as JSON in JSON there, and reads both.
        arguments = json.dumps(arguments, ensure_ascii=False)
    text = json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False)
    return f"[{text}]" if form.listed else text
