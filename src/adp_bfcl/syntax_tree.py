"""Syntax trees of Java and JavaScript, from tree-sitter and the grammars that BFCL uses.

The grammars decide what still counts as a call in damaged text, so their versions are those that
bfcl-eval asks for (extra ``bfcl``). Parsing runs nothing.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from adp_bfcl.python_calls import DecodeError
from adp_schema.errors import MissingExtraError

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 10_000
"""Characters of a text that is still parsed. tree-sitter needs memory by the square of the length
for some texts without meaning: 1 GB for this many characters."""


def tree_of(text: str, language: Literal["java", "javascript"]) -> Node:
    """The root of the syntax tree of a text.

    What tree-sitter mends by adding a sign is no error, as in BFCL.

    Args:
        text: the source.
        language: its language.

    Raises:
        DecodeError: the text is not in the language, or it is too long.
        MissingExtraError: tree-sitter or a grammar is not installed.
    """
    if len(text) > LONGEST:
        raise DecodeError(f"the text has more than {LONGEST:,} characters")
    try:
        source = text.encode()
    except UnicodeEncodeError as error:
        raise DecodeError("the text has half characters") from error
    root: Node = _parser(language).parse(source).root_node
    if _has_error(root):
        raise DecodeError(f"the text is no {'Java' if language == 'java' else 'JavaScript'}")
    return root


def check_installed() -> None:
    """Raise MissingExtraError where tree-sitter or a grammar is not installed."""
    _parser("java"), _parser("javascript")


def sides(assignment: Node) -> tuple[Node, Node]:
    """What stands left of the sign of an assignment, and what comes next on its right.

    That may be a comment, which BFCL takes for the value.

    Raises:
        DecodeError: something is missing.
    """
    children = assignment.children
    if len(children) < 3:
        raise DecodeError("an assignment has no value")
    return children[0], children[2]


@cache
def _parser(language: str) -> Any:
    try:
        import tree_sitter
        import tree_sitter_java
        import tree_sitter_javascript
    except ImportError as error:
        raise MissingExtraError((error.name or "tree_sitter").replace("_", "-"), "bfcl") from error
    grammar = tree_sitter_java if language == "java" else tree_sitter_javascript
    made: Any = tree_sitter
    parser: Any = made.Parser()
    if hasattr(parser, "set_language"):  # 0.21
        parser.set_language(made.Language(grammar.language(), language))
        return parser
    with warnings.catch_warnings():
        # These grammars give an address; newer versions of tree-sitter want a capsule.
        warnings.simplefilter("ignore", DeprecationWarning)
        parser.language = made.Language(grammar.language())
    return parser


def _has_error(root: Node) -> bool:
    """Whether something could not be read.

    tree-sitter's own text of a tree would tell, too, but it is made by recursion in C.
    """
    cursor: Any = root.walk()
    while True:
        if cursor.node.type == "ERROR":
            return True
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False
