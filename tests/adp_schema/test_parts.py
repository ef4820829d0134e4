"""Content parts: order and words, in and out."""

from hypothesis import given
from hypothesis import strategies as st

from adp_schema.parts import Parts, resolve


def columns(*parts):
    collected = Parts()
    for kind, value in parts:
        getattr(collected, kind)(value)
    return collected.columns()


def test_plain_steps_have_no_content():
    assert columns() == {}
    assert columns(("text", "a")) == {"text": "a"}
    assert columns(("reasoning", "r"), ("text", "a"), ("call", 0)) == {
        "text": "a",
        "reasoning": "r",
    }


def test_another_order_or_more_parts_have_content():
    assert "content" in columns(("text", "a"), ("reasoning", "r"))
    assert "content" in columns(("call", 0), ("text", "a"))
    assert "content" in columns(("text", "a"), ("text", "b"))
    assert "content" in columns(("media", "0" * 32))


@given(st.lists(st.tuples(st.sampled_from(["text", "reasoning"]), st.text()), max_size=6))
def test_words_come_back(parts):
    result = columns(*parts)
    if "content" in result:
        got = resolve(result["content"], result.get("text"), result.get("reasoning"))
        assert [(part.type, part.text) for part in got] == parts
    elif parts:
        assert {kind: words for kind, words in parts} == result


def test_an_edit_of_the_words_shows():
    result = columns(("text", "one"), ("media", "0" * 32), ("text", "two"))
    got = resolve(result["content"], "changed")
    assert [(part.type, part.text) for part in got] == [("text", "changed"), ("media", "")]
