"""Check the sizes that keep this code readable, its docstrings, and its imports for circles.

    python tools/check_sizes.py [FOLDER]       FOLDER is ``src`` unless given

Each violation is printed as ``file:line: what is wrong``; the exit status is 1 if there is one.

- A function has at most 60 lines. Counted are the lines from ``def`` to its end that hold code:
  not decorators, the docstring, blank lines or lines with a comment only. A nested function
  counts by itself and as a part of the one around it.
- A file has at most 400 lines. Here every line counts, because all of them are scrolled past.
- A function has at most 8 parameters, ``self`` and ``cls`` aside. Functions of the command line
  (``adp/cli``) are free: their parameters are the command's options.
- Every public module, class and function has a docstring. A leading underscore makes a name, and
  all inside it, private. Setters, overloads and overrides need none: another place says it.
- No circle of imports that run when a module is loaded. Imports inside functions or under
  ``if TYPE_CHECKING:`` run later or never, so they are free. ``from package import module`` is
  an import of the module, not of the package around it.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 400
MAX_PARAMETERS = 8
FREE_PARAMETERS = ("adp", "cli")
DOCUMENTED_ELSEWHERE = {"setter", "deleter", "overload", "override"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Imports = dict[str, dict[str, int]]
"""For each module, the modules that it imports when it is loaded, with the line of the import."""


@dataclass(frozen=True)
class Module:
    """One parsed file: `parts` is its dotted name, split, with ``__init__`` left out."""

    path: Path
    parts: tuple[str, ...]
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Dotted name."""
        return ".".join(self.parts)


@dataclass(frozen=True, order=True)
class Violation:
    """One broken rule."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path.as_posix()}:{self.line}: {self.message}"


def load(root: Path) -> list[Module]:
    """Parse every Python file under a folder, in order of path."""
    modules = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        text = path.read_text(encoding="utf-8")
        modules.append(Module(path, parts, text, ast.parse(text, str(path))))
    return modules


def lines_with_code(text: str) -> set[int]:
    """Return the numbers of the lines that hold more than white space or a comment."""
    idle = {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in idle:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def docstring_node(node: ast.Module | ast.ClassDef | Function) -> ast.stmt | None:
    """Return the statement that is the docstring of a node, if it has one."""
    return node.body[0] if ast.get_docstring(node, clean=False) is not None else None


def function_length(function: Function, code: set[int]) -> int:
    """Count the lines of code of a function, by the rule of the module's docstring."""
    length = sum(line in code for line in range(function.lineno, (function.end_lineno or 0) + 1))
    docstring = docstring_node(function)
    if docstring is not None:
        length -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return length


def parameter_count(function: Function) -> int:
    """Count the parameters of a function; ``*args`` and ``**kwargs`` are one each."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    if positional and positional[0].arg in {"self", "cls"}:
        positional = positional[1:]
    variadic = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return len(positional) + len(arguments.kwonlyargs) + len(variadic)


def check_sizes(module: Module, lengths: list[int]) -> Iterator[Violation]:
    """Check one file and its functions; the length of each function is added to `lengths`."""
    total = len(module.text.splitlines())
    if total > MAX_FILE_LINES:
        yield Violation(module.path, 1, f"file has {total} lines, at most {MAX_FILE_LINES}")
    code = lines_with_code(module.text)
    free = module.parts[: len(FREE_PARAMETERS)] == FREE_PARAMETERS
    for node in ast.walk(module.tree):
        if not isinstance(node, Function):
            continue
        length = function_length(node, code)
        lengths.append(length)
        if length > MAX_FUNCTION_LINES:
            message = f"{node.name}() has {length} lines, at most {MAX_FUNCTION_LINES}"
            yield Violation(module.path, node.lineno, message)
        count = parameter_count(node)
        if count > MAX_PARAMETERS and not free:
            message = f"{node.name}() has {count} parameters, at most {MAX_PARAMETERS}"
            yield Violation(module.path, node.lineno, message)


def check_docstrings(module: Module) -> Iterator[Violation]:
    """Check that a public module, and what is public in it, is documented."""
    if any(part.startswith("_") for part in module.parts):
        return
    if docstring_node(module.tree) is None:
        yield Violation(module.path, 1, f"module {module.name} has no docstring")
    for node in public_definitions(module.tree):
        if docstring_node(node) is None and not documented_elsewhere(node):
            yield Violation(module.path, node.lineno, f"{node.name} has no docstring")


def statements_in(parent: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements directly inside a module, class or block."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.stmt):
            yield node
        elif isinstance(node, ast.ExceptHandler | ast.match_case):
            yield from node.body


def public_definitions(parent: ast.AST) -> Iterator[ast.ClassDef | Function]:
    """Yield the public classes, functions and methods of a module; nested functions are private."""
    for node in statements_in(parent):
        if not isinstance(node, ast.ClassDef | Function):
            yield from public_definitions(node)
        elif not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node)


def documented_elsewhere(node: ast.ClassDef | Function) -> bool:
    """Tell whether a decorator says that the docstring stands at another definition."""
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return bool(names & DOCUMENTED_ELSEWHERE)


def statements_at_load(parent: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is loaded, those inside blocks too."""
    for node in statements_in(parent):
        yield node
        if not (isinstance(node, Function) or is_type_checking(node)):
            yield from statements_at_load(node)


def is_type_checking(node: ast.stmt) -> bool:
    """Tell whether a statement is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imports_at_load(modules: list[Module]) -> Imports:
    """Return which of the given modules import which others when they are loaded."""
    known = {module.name for module in modules}
    imports: Imports = {}
    for module in modules:
        value = imports.setdefault(module.name, {})
        for node in statements_at_load(module.tree):
            for target in imported_names(node, known):
                if target != module.name:
                    value.setdefault(target, node.lineno)
    return imports


def imported_names(node: ast.stmt, known: set[str]) -> Iterator[str]:
    """Yield the known modules that one import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            text = f"{node.module}.{alias.name}"
            if text in known:
                yield text
            elif node.module in known:
                yield node.module


def check_cycles(modules: list[Module]) -> Iterator[Violation]:
    """Report circles of imports. Each one found is cut at one import, until none is left."""
    paths = {module.name: module.path for module in modules}
    imports = imports_at_load(modules)
    while True:
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            cycle: list[str] = error.args[1][::-1]
            line = imports[cycle[0]].pop(cycle[1])
            yield Violation(paths[cycle[0]], line, f"circle of imports: {' -> '.join(cycle)}")
        else:
            return


def summary(lengths: list[int], files: int) -> str:
    """Say how long the functions are: the 90th percentile should stay near 30."""
    if not lengths:
        return f"no functions in {files} files"
    ordered = sorted(lengths)
    p90 = ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)]
    return (
        f"{len(lengths)} functions in {files} files; lines of code: "
        f"median {statistics.median_low(ordered)}, 90th percentile {p90}, longest {ordered[-1]}"
    )


def main(arguments: list[str]) -> int:
    """Check one folder and return the exit status."""
    root = Path(arguments[0] if arguments else "src")
    modules = load(root)
    if not modules:
        print(f"no Python files in {root}")
        return 1
    lengths: list[int] = []
    violations: list[Violation] = list(check_cycles(modules))
    for module in modules:
        violations += check_sizes(module, lengths)
        violations += check_docstrings(module)
    for violation in sorted(violations):
        print(violation)
    print(summary(lengths, len(modules)))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
