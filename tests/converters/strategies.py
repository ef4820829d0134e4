"""Hypothesis strategies for records as JSON text, so that every spelling can occur.

Values are `Text` (JSON source) put together by hand: a parsed number has lost its spelling, and
a dict its duplicate keys.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import strategies as st

Text = st.SearchStrategy[str]
Pairs = list[tuple[str, str]]

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(64))).decode()
OTHER = base64.b64encode(b"\xff\xd8\xff" + bytes(range(90))).decode()

NUMBERS = st.sampled_from(
    [
        *("0", "-0", "-0.0", "1", "1.0", "0.50", "1e5", "1E+2", "-1.5e-7", "1e999"),
        *("12345678901234567890123", "3.141592653589793238462643", "NaN", "Infinity", "-Infinity"),
    ]
)
"""Numbers whose spelling is easily lost."""

_LITERALS = st.sampled_from(["null", "true", "false"])

_PIECES = [
    *('"', "\\", "\n", "\r", "\t", "/", "\x7f", "\u2028", "\xe9", "\u0000", "\ufeff", "\ufffd"),
    *("\U0001f600", "\ud83d", "\udc00", "$", "a", "word", " ", "{}", "[", ", "),
    *(f"data:image/png;base64,{PIXEL}", f"see data:image/x;base64,{PIXEL}.", "data:a/b;base64,AA"),
    *("<think>", "null", "NaN", '{"a": 1}'),
]


def escaped(text: str) -> str:
    """A JSON string in ASCII."""
    return json.dumps(text)


def literal(text: str) -> str:
    """A JSON string with its characters as they are; lone surrogates stay escapes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


def words() -> st.SearchStrategy[str]:
    """Texts, most of them plain, some nasty, a few long."""
    nasty = st.lists(st.sampled_from(_PIECES), max_size=4).map("".join)
    long = st.sampled_from(["x", "\xe9\n"]).map(lambda text: text * 9000)
    return st.one_of(
        st.sampled_from(["", "hello", "a b", "line\nline"]), nasty, nasty, st.text(max_size=5), long
    ).filter(lambda text: not any(0x10F7FF <= ord(char) <= 0x10FFFF for char in text))


def strings() -> Text:
    """JSON strings, escaped or not."""
    return st.builds(lambda text, write: write(text), words(), st.sampled_from([escaped, literal]))


KEYS = st.sampled_from(
    ["a", "b", "path", "$shape", "$null", "$a", "x y", "caf\xe9", "A", "", "type", "role"]
).map(escaped)


def _object(pairs: Pairs, spaced: bool) -> str:
    colon, comma = (": ", ", ") if spaced else (":", ",")
    return "{" + comma.join(f"{key}{colon}{value}" for key, value in pairs) + "}"


def _array(items: list[str], spaced: bool) -> str:
    return "[" + (", " if spaced else ",").join(items) + "]"


def values() -> Text:
    """Any JSON value; objects may have a key twice."""
    leaves = st.one_of(NUMBERS, _LITERALS, strings())
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(_array, st.lists(inner, max_size=3), st.booleans()),
            st.builds(_object, st.lists(st.tuples(KEYS, inner), max_size=3), st.booleans()),
        ),
        max_leaves=6,
    )


VALUES = values()


def arguments() -> Text:
    """Arguments: an object, a JSON string of one, or anything else."""
    inner = st.builds(_object, st.lists(st.tuples(KEYS, VALUES), max_size=3), st.booleans())
    return st.one_of(
        inner,
        inner.map(escaped),
        inner.map(literal),
        st.sampled_from(["", "{bad", "{}", "null", " {} ", "[1, 2]", "1e5"]).map(escaped),
        VALUES,
    )


IDS = st.sampled_from(["call_1", "call_1", "call_2", "x", "", "call_000001", "\xe9"]).map(escaped)
_ODD_IDS = st.one_of(IDS, IDS, IDS, st.sampled_from(["null", "7", "7.0", "[]", "NaN"]))
NAMES = st.sampled_from(["search", "run", "a.b:0", "", "two words"]).map(escaped)


def fields(
    usual: dict[str, Text],
    further: dict[str, Text] | None = None,
    *,
    required: tuple[str, ...] = (),
    extra: bool = True,
) -> Text:
    """An object: some of the keys, in the usual order or another one, perhaps with more keys."""

    @st.composite
    def build(draw: st.DrawFn) -> str:
        pairs: Pairs = []
        for key, value in usual.items():
            if key in required or draw(st.integers(0, 7)):
                pairs.append((escaped(key), draw(value)))
        for key, value in (further or {}).items():
            if key in required or not draw(st.integers(0, 5)):
                pairs.append((escaped(key), draw(value)))
        if extra and not draw(st.integers(0, 5)):
            taken = {key for key, _ in pairs}
            more = draw(st.lists(st.tuples(KEYS, VALUES), max_size=2, unique_by=lambda p: p[0]))
            pairs += [pair for pair in more if pair[0] not in taken]
        if not draw(st.integers(0, 4)):
            pairs = draw(st.permutations(pairs))
        return _object(pairs, draw(st.booleans()))

    return build()


def calls() -> Text:
    """Calls of all forms."""
    function = fields({"name": NAMES, "arguments": arguments()})
    kinds = st.sampled_from(['"function"', '"function"', "null", '"other"', "1"])
    normal = fields({"id": _ODD_IDS, "type": kinds, "function": function}, required=("function",))
    custom = fields(
        {
            "id": _ODD_IDS,
            "type": st.just('"custom"'),
            "custom": fields({"name": NAMES, "input": st.one_of(strings(), VALUES)}),
        },
        required=("custom",),
    )
    flat = fields({"id": _ODD_IDS, "type": kinds, "name": NAMES, "arguments": arguments()})
    plain = st.builds(
        lambda i, n, a: f'{{"id":{i},"type":"function","function":{{"name":{n},"arguments":{a}}}}}',
        IDS,
        NAMES,
        arguments(),
    )
    return st.one_of(plain, plain, plain, normal, custom, flat)


def parts() -> Text:
    """Parts of a list content."""
    urls = st.sampled_from(
        [
            *("https://x.org/a.png", "", f"data:image/png;base64,{PIXEL}"),
            *(f"data:image/jpeg;base64,{PIXEL}", f"data:image/jpeg;base64,{OTHER}", "data:,\xe9"),
        ]
    ).map(literal)
    text = fields({"type": st.just('"text"'), "text": strings()})
    inner = st.one_of(
        fields({"url": urls}, {"detail": st.sampled_from(['"low"', "null", "1.50"])}),
        fields({"url": urls, "url ": urls}, extra=False),
        st.builds(lambda a, b: f'{{"url":{a},"url":{b}}}', urls, urls),
        urls,
        st.just("null"),
    )
    image = fields({"type": st.just('"image_url"'), "image_url": inner})
    audio = fields(
        {
            "type": st.just('"input_audio"'),
            "input_audio": fields(
                {
                    "data": st.sampled_from([PIXEL, "AAAA", "no base64", ""]).map(escaped),
                    "format": st.sampled_from(['"wav"', '"mp3"']),
                }
            ),
        }
    )
    unknown = fields({"type": strings(), "value": VALUES})
    return st.one_of(text, text, image, audio, unknown, strings(), VALUES)


def contents() -> Text:
    """Content of a message."""
    listed = st.builds(_array, st.lists(parts(), max_size=4), st.booleans())
    return st.one_of(strings(), strings(), st.just("null"), st.just('""'), listed, VALUES)


def messages() -> Text:
    """Messages of all roles."""
    weights = st.one_of(st.sampled_from(["1", "1.0", "0.50", "0", "null", '"1"']), NUMBERS)
    name = st.one_of(NAMES, NAMES, strings(), st.sampled_from(["null", "1"]))
    reasoning = st.one_of(strings(), strings(), VALUES)
    listed = st.builds(_array, st.lists(calls(), max_size=3), st.booleans())
    role = st.sampled_from(
        ["system", "developer", "user", "human", "critic", "environment", "", "r\xe9"]
    ).map(escaped)
    says = fields({"role": role, "content": contents()}, {"name": name}, required=("role",))
    agent = fields(
        {
            "role": st.sampled_from(['"assistant"', '"assistant"', '"model"', '"user"']),
            "content": contents(),
            "tool_calls": st.one_of(
                listed,
                listed,
                st.sampled_from(["null", "[]"]),
                listed.filter(lambda text: "NaN" not in text and "Inf" not in text).map(inside),
            ),
        },
        {
            "name": name,
            "reasoning_content": reasoning,
            "reasoning": reasoning,
            "thinking": reasoning,
            "reasoning_details": VALUES,
            "function_call": st.one_of(
                fields({"name": NAMES, "arguments": arguments()}),
                st.sampled_from(["null", '"auto"', "[1]"]),
            ),
            "weight": weights,
            "refusal": st.just("null"),
        },
        required=("role",),
    )
    result = fields(
        {
            "role": st.sampled_from(['"tool"', '"tool"', '"function"', '"observation"']),
            "tool_call_id": _ODD_IDS,
            "content": contents(),
        },
        {"name": name, "weight": weights},
        required=("role",),
    )
    return st.one_of(says, agent, agent, result, result)


def inside(text: str, compact: bool = True) -> str:
    """JSON text as a JSON string, laid out compactly or with spaces."""
    value = json.loads(text, parse_int=_Number, parse_float=_Number, object_pairs_hook=_Pairs)
    return json.dumps(_write(value, *((",", ":") if compact else (", ", ": "))))


class _Number(str):
    """A number as written."""


class _Pairs(list[Any]):
    """An object with its keys in order, also those that occur twice."""


def _write(value: Any, comma: str, colon: str) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, _Pairs):
        items = [f"{json.dumps(k)}{colon}{_write(v, comma, colon)}" for k, v in value]
        return "{" + comma.join(items) + "}"
    if isinstance(value, list):
        return "[" + comma.join(_write(item, comma, colon) for item in value) + "]"
    return json.dumps(value)


def _columns(listed: Text) -> dict[str, Text]:
    tools = st.builds(_array, st.lists(VALUES, max_size=2), st.booleans())
    return {
        "tools": st.one_of(tools, tools.map(escaped), st.just("null"), strings()),
        "functions": tools,
        "id": st.one_of(NAMES, st.sampled_from(["7", "7.0", "null", "-1", '"7"', "NaN"])),
        "uuid": NAMES,
        "conversation_id": NAMES,
        "task_id": st.one_of(NAMES, NUMBERS),
        "instance_id": NAMES,
        "model": st.one_of(NAMES, st.just("null")),
        "success": st.sampled_from(["true", "false", "null", "1", '"yes"']),
        "resolved": st.sampled_from(["true", "false"]),
        "reward": st.one_of(NUMBERS, st.just("null"), strings()),
        "parallel_tool_calls": st.just("true"),
    }


def openai_records() -> st.SearchStrategy[bytes]:
    """Records of the format ``openai_chat`` as JSON text."""
    listed = st.builds(_array, st.lists(messages(), max_size=6), st.booleans())
    whole = st.one_of(
        listed,
        listed,
        listed,
        listed,
        st.builds(inside, listed.filter(lambda text: "\\ud83d" not in text), st.booleans()),
    )
    record = fields({"messages": whole}, _columns(listed), required=("messages",))
    return record.map(lambda text: text.encode("utf-8"))


def sts_records() -> st.SearchStrategy[bytes]:
    """Sessions of the format ``sts`` as a JSON array of their lines."""
    stamps = st.one_of(
        st.sampled_from(["1767225600000", "1767225600000.5", "-1", "0.0", "1e12", "null", '"t"']),
        NUMBERS,
    )
    common = {"timestamp": stamps, "model": st.one_of(NAMES, st.just("null")), "line.id": NAMES}
    listed = st.builds(_array, st.lists(calls(), max_size=3), st.booleans())
    role = st.sampled_from(["user", "system", "narrator", "", "r\xe9"]).map(escaped)
    says = fields({"role": role, "content": contents()}, common, required=("role",))
    agent = fields(
        {
            "role": st.sampled_from(['"assistant"', '"assistant"', '"user"']),
            "content": contents(),
            "reasoningContent": st.one_of(strings(), strings(), VALUES),
            "toolCalls": st.one_of(listed, listed, st.sampled_from(["null", "[]", '"x"'])),
        },
        {**common, "toolCallId": IDS},
        required=("role",),
    )
    result = fields(
        {"role": st.just('"tool"'), "toolCallId": _ODD_IDS, "content": contents()},
        {**common, "toolCalls": listed},
        required=("role",),
    )
    message = st.one_of(says, agent, agent, result, result)
    around = {"id": st.one_of(NAMES, NUMBERS), "parentId": st.just("null"), "timestamp": strings()}
    line = fields({"type": st.just('"message"'), "message": message}, around, required=("type",))
    other = fields({"type": strings(), "message": VALUES}, around).filter(_is_no_session)
    columns = {key: value for key, value in _columns(listed).items() if key not in ("id", "uuid")}
    header = fields(
        {"type": st.just('"session"'), "harness": NAMES, "id": NAMES},
        {**columns, "name": strings(), "message": st.just("{}")},
        required=("type",),
    )
    lines = st.lists(st.one_of(line, line, line, other), max_size=6)
    whole = st.builds(
        lambda first, rest, s: _array([first, *rest], s), header, lines, st.booleans()
    )
    return whole.map(lambda text: text.encode("utf-8"))


def _is_no_session(line: str) -> bool:
    return '"session"' not in line and "role" not in line


def _v1(name: str, usual: dict[str, Text], further: dict[str, Text] | None = None) -> Text:
    keys = {"class_": st.just(escaped(name)), **usual}
    return fields(keys, further, required=tuple(keys))


def adp_v1_records() -> st.SearchStrategy[bytes]:
    """Records of ADP v1 JSON as JSON text."""
    plain = st.one_of(strings(), strings(), st.just("null"))
    kwargs = st.builds(
        _object,
        st.lists(st.tuples(KEYS, VALUES), max_size=3, unique_by=lambda pair: pair[0]),
        st.booleans(),
    )
    ids = {"tool_call_id": st.one_of(IDS, st.just("null"))}
    more = {**ids, "reward": st.sampled_from(["1", "0.50", "null"])}
    thought = {"description": plain}
    reasons = {**more, "reasoning_content": plain}
    source = st.sampled_from(['"user"', '"environment"', '"environment"', '"agent"'])
    address = st.sampled_from(["a.png", f"data:image/png;base64,{PIXEL}", PIXEL]).map(escaped)
    boxes = st.one_of(
        st.just("null"), st.builds(_array, st.lists(VALUES, max_size=2), st.just(True))
    )
    image = {"content": address, "annotations": boxes, "source": source}
    items = st.one_of(
        _v1("text_observation", {"content": strings(), "name": plain, "source": source}, more),
        _v1("text_observation", {"content": strings(), "name": plain, "source": source}, more),
        _v1("image_observation", image, more),
        _v1(
            "web_observation",
            {
                **{"html": plain, "axtree": plain, "url": plain},
                "image_observation": st.one_of(st.just("null"), _v1("image_observation", image)),
                "viewport_size": st.sampled_from(["null", "[1280,720]"]),
            },
            more,
        ),
        _v1("api_action", {"function": NAMES, "kwargs": kwargs, **thought}, reasons),
        _v1("api_action", {"function": NAMES, "kwargs": kwargs, **thought}, reasons),
        _v1("code_action", {"language": NAMES, "content": strings(), **thought}, reasons),
        _v1(
            "message_action",
            {"content": strings(), **thought},
            {"reasoning_content": plain, "reward": more["reward"]},
        ),
    )
    content = st.builds(_array, st.lists(items, max_size=6), st.booleans())
    record = fields(
        {"id": NAMES, "content": content, "details": kwargs},
        {"schema_version": st.just('"1.3.1"'), "available_apis": st.just('["x"]')},
        required=("id", "content", "details"),
    )
    return record.map(lambda text: text.encode("utf-8"))


def preference_records() -> st.SearchStrategy[bytes]:
    """Rows of the format ``preference`` as JSON text."""
    listed = st.builds(_array, st.lists(messages(), max_size=3), st.booleans())
    turn = st.sampled_from(["\n\nHuman: ", "\n\nAssistant: ", "\n\nAssistant:", "\n\nHuman:"])
    words_ = st.sampled_from(["", "yes", " no", "\n\n", "a: b", "\xe9"])
    dialogue = st.lists(st.tuples(turn, words_), min_size=1, max_size=4).map(
        lambda turns: escaped("".join(mark + text for mark, text in turns))
    )
    lines = st.lists(st.builds(inside, messages().filter(_is_plain), st.booleans()), max_size=2)
    side = st.one_of(
        strings(), dialogue, listed, messages(), st.builds(_array, lines, st.booleans())
    )

    @st.composite
    def build(draw: st.DrawFn) -> str:
        first, second = draw(side), draw(side)
        head = draw(st.lists(messages(), max_size=2))
        if head and draw(st.booleans()):  # both sides begin alike
            first, second = (_array([*head, draw(messages())], spaced=True) for _ in range(2))
        prompt = draw(st.one_of(side, st.just(_array(head, spaced=True)), st.just("null")))
        names = draw(
            st.sampled_from(
                [("chosen", "rejected"), ("preferred_output", "non_preferred_output"), ("chosen",)]
            )
        )
        known = dict(zip(names, (first, second), strict=False))
        key = draw(st.sampled_from(["prompt", "question", "instruction", "messages", "input"]))
        if key == "input" and prompt != "null":
            known["input"] = _object([('"messages"', prompt), ('"x"', "1.0")], spaced=True)
        elif not (key == "messages" and prompt[:1] not in "[n"):
            known[key] = prompt
        if draw(st.booleans()):
            known["messages"] = first if first[:1] == "[" else _array(head, spaced=True)
        columns = {**_columns(listed), "pair_id": NAMES, "score_chosen": NUMBERS, "label": NAMES}
        for name in draw(st.sets(st.sampled_from(sorted(columns)), max_size=3)):
            known[name] = draw(columns[name])
        return _object([(escaped(name), value) for name, value in known.items()], spaced=True)

    return build().map(lambda text: text.encode("utf-8"))


def _is_plain(text: str) -> bool:
    """Whether a message may stand in a string: what JSON's own decoder reads."""
    return not any(word in text for word in ("NaN", "Infinity", "\\ud"))
