"""Hypothesis strategies for records of the format ``sharegpt`` as JSON text."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from tests.converters.strategies import (
    KEYS,
    NAMES,
    NUMBERS,
    PIXEL,
    VALUES,
    Text,
    escaped,
    fields,
    inside,
    literal,
    strings,
    words,
)

_SPACES = st.sampled_from(["", "\n", " ", "\n\n", "\r\n"])
_TOOLS = st.sampled_from(["search", "run", "a.b:0", "", "two words", "caf\xe9", "\ud83d", "it's"])


def _listed(items: list[str]) -> str:
    return f"[{', '.join(items)}]"


def _arguments() -> Text:
    """What stands under ``arguments``: any JSON, or what only looks like it."""
    pairs = st.lists(st.tuples(KEYS, VALUES), max_size=3)
    inner = pairs.map(lambda item: "{" + ", ".join(f"{k}: {v}" for k, v in item) + "}")
    odd = ["null", "[]", '""', '"{}"', '"{bad"', '{"a":\n 1.0}', '{"a": "x\ny"}', '"\\ud83d"']
    return st.one_of(inner, inner, inner.map(escaped), VALUES, st.sampled_from(odd))


def json_calls() -> Text:
    """The JSON of a call, with its keys in some order."""

    @st.composite
    def build(draw: st.DrawFn) -> str:
        name = draw(_TOOLS.map(draw(st.sampled_from([escaped, literal]))))
        pairs = [("name", name)]
        if draw(st.integers(0, 8)):
            key = draw(st.sampled_from(["arguments", "arguments", "parameters"]))
            pairs.append((key, draw(_arguments())))
        if not draw(st.integers(0, 4)):
            pairs.append((draw(st.sampled_from(["id", "x", "type"])), draw(VALUES)))
        colon, comma = draw(st.sampled_from([(": ", ", "), (":", ","), (" : ", " ,\n")]))
        pairs = draw(st.permutations(pairs))
        return "{" + comma.join(f'"{key}"{colon}{value}' for key, value in pairs) + "}"

    return build()


_PYTHON = st.recursive(
    st.sampled_from([None, True, 1, 1.5, "it's", 'a "b"', "\xe9", "\ud83d", "</tool_call>", "\\d"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def python_calls() -> Text:
    """A call as a Python literal."""
    return st.builds(
        lambda name, arguments, turned: repr(
            {"arguments": arguments, "name": name}
            if turned
            else {"name": name, "arguments": arguments}
        ),
        _TOOLS,
        _PYTHON,
        st.booleans(),
    )


def _broken() -> Text:
    return st.sampled_from(
        [
            *("", "{", "[]", "nothing", '{"name": 1}', '{"arguments": {}}', "{'name': f()}"),
            *('{"name": "f", }', "__import__('os')", '[{"name": "f"}, 1]', '{"name": "f"} x'),
        ]
    )


def bare_calls() -> Text:
    """What a turn of calls says: JSON of one or several, perhaps after other words."""
    several = st.one_of(
        st.lists(json_calls(), min_size=1, max_size=3).map(_listed),
        st.lists(json_calls(), min_size=2, max_size=2).map("\n".join),
        st.lists(python_calls(), min_size=1, max_size=2).map(_listed),
    )
    call = st.one_of(json_calls(), json_calls(), several, several, python_calls(), _broken())
    before = st.sampled_from(
        ["", "", "", "<think>\nwhy {x}\n</think>\n\n", "I look.\n", "<think></think>", "x </think>"]
    )
    return st.builds(lambda a, b, c: a + b + c, before, call, st.sampled_from(["", "", "\n", " x"]))


def tagged_calls() -> Text:
    """What the model says with calls in tags."""
    inner = st.one_of(
        json_calls(),
        json_calls(),
        python_calls(),
        st.lists(json_calls(), min_size=1, max_size=2).map(_listed),
        _broken(),
    )
    tag = st.builds(
        lambda a, call, b, end: f"<tool_call>{a}{call}{b}{end}",
        _SPACES,
        inner,
        _SPACES,
        st.sampled_from(["</tool_call>"] * 6 + [""]),
    )
    output = st.one_of(
        words(),
        st.sampled_from(
            [
                *("", "", "\n", "\n\n", "I look.\n", "<think>\nwhy\n</think>\n"),
                *('<think><tool_call>{"name": "no"}</tool_call></think>', "<scratch_pad>a\n"),
                *("</tool_call>", "</scratch_pad>", "</think>", "<think>"),
            ]
        ),
    )
    return st.lists(st.one_of(output, tag, tag), max_size=5).map("".join)


def results() -> Text:
    """What a turn of results says."""
    named = st.sampled_from(
        [
            '{"name": "search", "content": {"a": 1.0}}',
            "{'name': 'run', 'content': None}",
            '{"name": "\\ud83d", "content": 1}',
            '{"name": "a"}',
        ]
    )
    result = st.one_of(words(), named)
    tag = st.builds(
        lambda a, text, b: f"<tool_response>{a}{text}{b}</tool_response>", _SPACES, result, _SPACES
    )
    return st.one_of(
        result,
        tag,
        st.lists(tag, max_size=3).map("\n".join),
        st.lists(tag, min_size=2, max_size=2).map("".join),
        st.lists(words(), max_size=3).map("\n</tool_response>\n<tool_response>\n".join),
    )


def _string(text: Text) -> Text:
    kept = text.filter(lambda item: not any(0x10F7FF <= ord(char) <= 0x10FFFF for char in item))
    return st.builds(lambda item, write: write(item), kept, st.sampled_from([escaped, literal]))


def _roles(*names: str) -> Text:
    return st.sampled_from(names).map(escaped)


def turns() -> Text:
    """Turns of all dialects."""
    weights = st.one_of(st.sampled_from(["true", "false", "null", "1", "1.0", "0.50"]), NUMBERS)
    images = st.sampled_from(["<image>", "<image>\nWhat?", "a<image>b<video>", "<audio>"])
    plain = st.one_of(words(), words(), images)
    offers = st.sampled_from(
        [
            'Tools: <tools></tools> <tools>[{"name": "f", "x": 1.0}]</tools>.',
            '<tools>\n{"name": "f"}\n{"name": "g"}\n</tools>',
            "<tools>[{'name': 'f'}]</tools>",
        ]
    )
    listed = [
        '[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]',
        '[{"type": "text", "value": "v1"}]',
        "[]",
        '{"name": "f", "arguments": {}}',
    ]
    other = st.one_of(st.sampled_from(["null", "7", *listed]), VALUES)
    more = {
        "name": st.one_of(NAMES, st.just("null"), st.just("1")),
        "loss": weights,
        "weight": weights,
        "reasoning_content": strings(),
        "thinking": st.one_of(strings(), VALUES),
        "tool_calls": VALUES,
    }

    def turn(role: Text, text: Text) -> Text:
        value = st.one_of(_string(text), _string(text), _string(text), _string(text), other)
        return st.one_of(
            fields({"from": role, "value": value}, more, required=("from",)),
            fields({"from": role, "value": value}, extra=False, required=("from", "value")),
            fields({"from": role, "value": value}, extra=False, required=("from", "value")),
            fields({"role": role, "content": value}, more, required=("role",)),
            fields(
                {"from": role, "content": value},
                {"role": st.one_of(role, st.just("null")), "value": st.just("null")},
                required=("from",),
            ),
        )

    return st.one_of(
        turn(_roles("system", "System", "developer"), st.one_of(offers, plain)),
        turn(_roles("human", "human", "user", "Human", "critic", "", "r\xe9"), plain),
        turn(_roles("gpt", "gpt", "assistant", "bot"), st.one_of(tagged_calls(), plain)),
        turn(_roles("gpt", "gpt", "assistant", "GPT"), tagged_calls()),
        turn(_roles("function_call", "function_call", "tool_call"), bare_calls()),
        turn(_roles("observation", "tool", "function_response", "ipython"), results()),
        turn(_roles("observation", "tool"), results()),
    )


def _columns() -> dict[str, Text]:
    tools = ['[{"name": "f"}]', "[]", '[{"a": 1.50}]', '"[]"', '"[{\\"name\\": 1}]"', '""', '"x"']
    paths = st.sampled_from(
        ["a.png", "https://x.org/a.png", "", f"data:image/png;base64,{PIXEL}"]
    ).map(escaped)
    media = st.one_of(st.lists(paths, max_size=2).map(_listed), paths, VALUES)
    return {
        "system": st.one_of(strings(), st.sampled_from(["null", '""', "1"])),
        "tools": st.one_of(st.sampled_from([*tools, "null"]), VALUES),
        "id": st.one_of(NAMES, st.sampled_from(["7", "7.0", "null", '"7"', "NaN"])),
        "unique_id": NAMES,
        "model": st.one_of(NAMES, st.just("null")),
        "reward": st.one_of(NUMBERS, st.just("null"), strings()),
        "success": st.sampled_from(["true", "null", '"yes"']),
        "images": media,
        "image": media,
        "videos": media,
        "kto_tag": st.sampled_from(["true", "false", "null"]),
        "label": st.just("false"),
        "chosen": VALUES,
        "source": strings(),
    }


_READABLE = ("from", "role")


def _is_turn(text: str) -> bool:
    """Keys that occur twice, and a role that is none, are other tests' business."""
    pairs = json.loads(text, object_pairs_hook=list)
    names = [key for key, _ in pairs]
    roles = [value for key, value in pairs if key in _READABLE and isinstance(value, str)]
    return len(set(names)) == len(names) and bool(roles)


def sharegpt_records(*, pairs: bool = True) -> st.SearchStrategy[bytes]:
    """Records of the format ``sharegpt`` as JSON text.

    Args:
        pairs: whether some are preference pairs, which become two trajectories.
    """
    good = turns().filter(_is_turn)
    listed = st.lists(good, max_size=6).map(_listed)
    whole = st.one_of(
        *[listed] * 5,
        st.builds(inside, listed.filter(lambda text: "\\ud83d" not in text), st.booleans()),
    )
    key = st.sampled_from(["conversations"] * 4 + ["conversation", "dialog"])
    columns = _columns()
    answers: dict[str, Text] = {}
    if pairs:
        answer = good.filter(
            lambda text: not any(word in text.lower() for word in ("observation", "tool", "python"))
        )
        answers = {"chosen": answer, "rejected": answer}
        del columns["chosen"]
    plain = key.flatmap(lambda name: fields({name: whole}, columns, required=(name,)))
    both = fields({"conversations": listed, **answers}, columns, required=("conversations",))
    record = st.one_of(plain, plain, plain, both) if pairs else plain
    return record.map(lambda text: text.encode("utf-8"))
