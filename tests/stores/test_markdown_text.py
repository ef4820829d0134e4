"""Whatever the text, it stays a text: read back by another program's Markdown parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adp.stores.markdown_text import escape, fenced
from adp.stores.visible_text import visible

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

MARKS = ["`", "``", "*", "_", "[", "](", ")", "<", ">", "<script>", "</td>", "&lt;", "&", "#",
         "-", "---", "===", "+ ", "1. ", "12) ", "|", "\\", "~~", "!", "![x](http://a)", "http://",
         "$", "www.", "a@b.cc", "{{7*7}}", "{% raw %}", "\n", "\n\n", "\r", "\t", "    ", "\0",
         "\x1b[2J", "\u202e", "\u2066", "\ud800", "\u00a0", "\u2028", "a", "b.c", " ", "<!--",
         "-->", "<?", "]]>", "[^1]", "[a]: b", ":smile:", "```", "> ", "\x85",
         "\x0b"]  # fmt: skip
texts = st.text(max_size=40) | st.lists(st.sampled_from(MARKS), max_size=12).map("".join)

DOCUMENT = """\
# A {0}

{0}

{0} and {0}

- {0}
- b {0}

1. {0}

> {0}

| a | b |
|---|---|
| {0} | x {0} y |
| {0} | {0} |

**{0}** and [{0}](x.html)

end
"""


def shape(text):
    """Types of the blocks and of what is in them, without the texts."""
    results = []
    for token in PARSER.parse(DOCUMENT.format(text)):
        results.append((token.type, token.tag, token.markup if token.type != "inline" else ""))
        kinds = [(child.type, child.tag) for child in token.children or []]
        results.append([kind for kind in kinds if kind[0] not in ("text", "text_special")])
    return results


def words(text):
    """The text of a paragraph, as a reader sees it."""
    tokens = PARSER.parse(text)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    children = tokens[1].children or []
    assert {child.type for child in children} <= {"text", "text_special"}
    return "".join(child.content for child in children)


@given(texts)
def test_the_document_keeps_its_structure(text):
    assert shape(escape(f"a{text}")) == shape("word")
    if text.strip():
        assert shape(escape(text)) == shape("word")


@given(texts)
def test_a_reader_sees_the_characters(text):
    wanted = visible(" ".join(text.split()))
    if wanted:
        assert words(escape(text, 10_000)) == wanted


@given(texts, st.integers(1, 20))
def test_it_is_cut(text, limit):
    line = escape(text, limit)
    seen = words(line) if line else ""
    assert len(seen) <= limit
    assert "\n" not in line


@given(texts)
def test_no_control_character_and_no_mark_of_direction_is_left(text):
    assert visible(escape(text)) == escape(text)
    block = fenced(text)
    assert visible(block) == block


@given(texts)
def test_a_block_of_code_is_one_block(text):
    tokens = PARSER.parse(f"before\n\n{fenced(text)}\n\nafter\n")
    kinds = [token.type for token in tokens]
    paragraph = ["paragraph_open", "inline", "paragraph_close"]
    assert kinds == [*paragraph, "fence", *paragraph]


@pytest.mark.parametrize("address", ["https://example.com/x", "www.example.com", "a@example.com"])
def test_no_bare_address_is_left(address):
    """GitHub makes links of these three where they stand as they are."""
    line = escape(address)
    assert address not in line
    assert "://" not in line
    assert "www." not in line


def test_nothing_is_nothing():
    assert escape(None) == escape("") == escape(" \n ") == ""
