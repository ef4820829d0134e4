"""Writing a small package with a plug-in: its module, its test, and what installs it."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

from adp.core.code_files import attribute_of
from adp_schema.errors import OutputExistsError, UsageError

_FILE = "src/$module/__init__.py"

PLUGINS = {
    "format": ("adp.converters", "CONVERTER", f"adp convert FILES --from {_FILE}:CONVERTER -o OUT"),
    "exporter": ("adp.exporters", "EXPORTER", f"adp export STORE --to {_FILE}:EXPORTER -o OUT"),
    "op": ("adp.ops", "OP", f"ops: [{{{_FILE}:OP: {{}}}}]   # adp curate --allow-python"),
    "scorer": ("adp.scorers", "KIND", f"adp score STORE --with {_FILE}:KIND"),
    "environment": (
        "adp.environments",
        "Counter",
        f"adp collect --env {_FILE}:Counter --policy POLICY --tasks TASKS -o OUT",
    ),
    "policy": (
        "adp.policies",
        "FirstTool",
        f"adp collect --env calculator --policy {_FILE}:FirstTool --tasks test:10 -o OUT",
    ),
}
"""Kind -> entry-point group, name in the module, and a call that uses it."""

_REGISTRIES = {
    "format": "adp.converters.registry:formats",
    "exporter": "adp.trainers.export.registry:exporters",
    "op": "adp.curation.registry:OPS",
    "scorer": "adp.eval.scorer:SCORERS",
    "environment": "adp.rollouts.environment:ENVIRONMENTS",
    "policy": "adp.rollouts.policy:POLICIES",
}


@dataclass(frozen=True)
class WrittenPlugin:
    """A package that was written.

    Attributes:
        folder: its folder.
        files: the files in it.
        call: a call that uses the plug-in from that folder.
    """

    folder: Path
    files: tuple[Path, ...]
    call: str


def write_plugin(kind: str, name: str, folder: Path) -> WrittenPlugin:
    """Write a package with a plug-in and its test.

    Args:
        kind: a key of `PLUGINS`.
        name: its name: lower case letters, digits and ``_``.
        folder: where to write; it must be empty or absent.

    Raises:
        UsageError: there is no such kind, the name cannot be one, or it is taken.
        OutputExistsError: the folder holds something, or cannot be written.
    """
    if kind not in PLUGINS:
        raise UsageError(f"there is no plug-in of the kind {kind}; known: {', '.join(PLUGINS)}")
    if not re.fullmatch(r"[a-z][a-z0-9_]{1,40}", name) or keyword.iskeyword(name):
        raise UsageError(f"'{name}' cannot be a name; use lower case letters, digits and _")
    if name in attribute_of(_REGISTRIES[kind]):
        raise UsageError(
            f"there is a plug-in of the kind {kind} called {name}; choose another name"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputExistsError(f"{folder} is there and not empty; choose another -o")
    group, attribute, call = PLUGINS[kind]
    module = f"adp_{name}"
    words = {
        "kind": kind, "name": name, "module": module, "group": group, "attribute": attribute,
        "dashed": name.replace("_", "-"), "call": Template(call).substitute(module=module),
        "article": "An" if kind[0] in "aeio" else "A",
    }  # fmt: skip
    texts = {
        f"src/{module}/__init__.py": f"{kind}.py.txt",
        f"tests/test_{name}.py": f"test_{kind}.py.txt",
        "pyproject.toml": "pyproject.toml.txt",
        "README.md": "README.md.txt",
    }
    templates = resources.files("adp.workflows.plugin_templates")
    try:
        for path, source in texts.items():
            text = Template(templates.joinpath(source).read_text(encoding="utf-8"))
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.substitute(words), encoding="utf-8")
    except OSError as error:
        raise OutputExistsError(f"cannot write to {folder}: {error.strerror}") from error
    return WrittenPlugin(folder, tuple(folder / path for path in texts), words["call"])
