"""One file out of several modules of ours, for a program that has no `adp`.

What a module takes from other modules of `adp` is put before it; the rest stays as it is, so that
the file does to the letter what the modules do.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

_LINE = "# ---- {} "


def single_file(module: Path) -> str:
    """The text of a module with all that it takes from `adp` before it.

    Args:
        module: its file. It imports names of modules of `adp` (``from adp.x import y``), and so do
            these; no two of them define the same name at their first level.

    Raises:
        ValueError: two modules define one name, or one is imported in another way.
    """
    parts: dict[str, _Part] = {}
    _gather("", module, parts)
    if len(parts) == 1:
        return module.read_text(encoding="utf-8")
    names: dict[str, str] = {}
    for name, part in parts.items():
        for defined in part.defined:
            if defined in names:
                raise ValueError(
                    f"{defined} is defined in {names[defined]} and in {name or module.name}"
                )
            names[defined] = name or module.name
    first = parts[""]
    imports = _imports([line for part in parts.values() for line in part.imports])
    del parts[""]
    bodies = [f"{_LINE.format(name)}".ljust(100, "-") + f"\n\n{part.body}"
              for name, part in parts.items()]  # fmt: skip
    # No import of annotations from the future: with it a data class cannot be made in a module
    # that stands in no `sys.modules`, which is how verl loads one.
    head = [first.docstring, imports]
    return "\n\n".join([*head, *bodies, "# ".ljust(100, "-"), first.body]).strip() + "\n"


def _imports(lines: Sequence[str]) -> str:
    """Imports, each name once."""
    plain: set[str] = set()
    names: dict[str | None, set[str]] = defaultdict(set)
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.ImportFrom):
            names[node.module].update(ast.unparse(name) for name in node.names)
        else:
            plain.add(ast.unparse(node))
    taken = [f"from {module} import {', '.join(sorted(names[module]))}" for module in names]
    return "\n".join([*sorted(plain), *sorted(taken)])


class _Part:
    """A module, taken apart."""

    def __init__(self, text: str) -> None:
        tree = ast.parse(text)
        lines = text.splitlines()
        self.docstring = ""
        self.imports: list[str] = []
        self.needs: list[str] = []
        self.defined: list[str] = []
        taken: set[int] = set()
        for place, node in enumerate(tree.body):
            span = range(node.lineno - 1, node.end_lineno or node.lineno)
            if not place and isinstance(node, ast.Expr):
                self.docstring = "\n".join(lines[number] for number in span)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node, "\n".join(lines[number] for number in span))
            else:
                self.defined += _names(node)
                continue
            taken.update(span)
        kept = [line for number, line in enumerate(lines) if number not in taken]
        self.body = "\n".join(kept).strip()

    def _import(self, node: ast.Import | ast.ImportFrom, text: str) -> None:
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
        ours = [name for name in names if name.split(".")[0] == "adp"]
        if ours and (isinstance(node, ast.Import) or any(name.asname for name in node.names)):
            raise ValueError(f"{text} cannot be put into one file")
        if ours:
            self.needs += ours
        elif names != ["__future__"]:
            self.imports.append(text)


def _names(node: ast.stmt) -> list[str]:
    """The names that a statement of the first level defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets += [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target)
            if isinstance(name, ast.Name)]  # fmt: skip


def _gather(name: str, path: Path, parts: dict[str, _Part]) -> None:
    """Add a module after those that it needs."""
    part = _Part(path.read_text(encoding="utf-8"))
    for other in part.needs:
        spec = find_spec(other)
        if spec is None or spec.origin is None:
            raise ValueError(f"{other} is no module")
        if other not in parts:
            _gather(other, Path(spec.origin), parts)
    parts[name] = part


def shipped_file(name: str) -> str:
    """A file that lies beside the exporters, with all that it takes from `adp`."""
    folder = resources.files("adp.trainers.export") / "shipped"
    with resources.as_file(folder / name) as path:
        return single_file(path)
