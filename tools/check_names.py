"""Check names: each public class stands once, and no name is a word that says nothing.

    python tools/check_names.py [FOLDER...]       all folders of code unless given

A name is that of a module, class, function, parameter, variable or field. The glossary in
CONTRIBUTING.md has the words to use. Names that users write (options, columns) are no part of it.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("src", "tests", "tools", "benchmarks", "examples")
PRONOUNS = frozenset({"each", "found", "mine", "one", "ones", "own", "said", "told"})
METAPHORS = frozenset(
    {"aside", "beside", "claims", "elsewhere", "foreign", "hand", "lean", "mend", "mended", "pen",
     "shelf"}
)  # fmt: skip
RETIRED = PRONOUNS | METAPHORS


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The names that a module gives, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.lineno, node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def faults(folders: list[str]) -> Iterator[str]:
    """What is wrong, a line each."""
    classes: dict[str, list[str]] = defaultdict(list)
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.py")):
            tree = ast.parse(path.read_bytes())
            for line, name in [(1, path.stem), *names(tree)]:
                if name.strip("_").lower() in RETIRED:
                    yield f"{path}:{line}: {name} says nothing; name what it holds or does"
            if folder == "src":
                for node in ast.walk(tree):
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                        classes[node.name].append(f"{path}:{node.lineno}")
    for name, places in sorted(classes.items()):
        if len(places) > 1:
            yield f"{places[0]}: the class {name} stands {len(places)} times: {', '.join(places)}"


def main(words: list[str]) -> int:
    """Print the faults; 1 when there is one."""
    lines = list(faults(words or [*FOLDERS]))
    print("\n".join(lines) or "names: nothing is wrong")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
