"""Count lines by package: code apart from docstrings, comments, blank lines and tables.

    python tools/count_lines.py [FOLDER]       FOLDER is ``src`` unless given

A table is a literal of eight lines or more that a module assigns to a name. Imports are code.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

TABLE_LINES = 8
_QUIET = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
          tokenize.ENCODING, tokenize.ENDMARKER}  # fmt: skip
_LITERALS = (ast.Dict, ast.List, ast.Set, ast.Tuple)


def count(text: str) -> Counter[str]:
    """Count the lines of a module: ``total``, ``docstring``, ``table`` and ``code``."""
    tree = ast.parse(text)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant):
                docstrings.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    tables: set[int] = set()
    for node in tree.body:
        value = getattr(node, "value", None)
        lines = range(node.lineno, (node.end_lineno or 0) + 1)
        if isinstance(node, ast.Assign | ast.AnnAssign) and len(lines) >= TABLE_LINES:
            argument = value.args[0] if isinstance(value, ast.Call) and value.args else value
            if isinstance(argument, _LITERALS):
                tables.update(lines)
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _QUIET:
            code.update(range(token.start[0], token.end[0] + 1))
    return Counter(
        total=text.count("\n"),
        docstring=len(docstrings),
        table=len(tables & code),
        code=len(code - docstrings - tables),
    )


def packages(root: Path) -> dict[str, Counter[str]]:
    """The counts of each package under a folder; that of files beside packages is ``adp``."""
    counts: dict[str, Counter[str]] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts[:-1]
        name = ".".join(parts[:2]) if parts[:1] == ("adp",) else ".".join(parts[:1])
        row = counts.setdefault(name or root.name, Counter())
        row.update(count(path.read_text(encoding="utf-8")), files=1)
    return counts


def main(words: list[str]) -> int:
    """Print a line a package, and all together."""
    counts = packages(Path(words[0] if words else "src"))
    columns = ("files", "total", "code", "table", "docstring")
    print(f"{'package':<18}" + "".join(f"{name:>11}" for name in columns))
    for name, row in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        print(f"{name:<18}" + "".join(f"{row[column]:>11,}" for column in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
