"""What an import may load: starting must stay cheap."""

import ast
import subprocess
import sys
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import adp
from tests.waiting import PATIENCE

SOURCE = Path(__file__).parents[1] / "src"
HEAVY = ("datasets", "duckdb", "pandas", "polars", "torch", "transformers")


def loaded_by(code):
    """Names of the top-level modules that a fresh interpreter has loaded after some code."""
    script = f"{code}\nimport sys\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("code", "banned"),
    [
        ("import adp_schema", (*HEAVY, "pyarrow", "pydantic")),
        ("from adp_schema import *", HEAVY),
        ("import adp_schema.store", HEAVY),
        ("import adp", (*HEAVY, "pyarrow", "pydantic", "numpy")),
        ("from adp import *", HEAVY),
        ("import adp.cli.main", (*HEAVY, "pyarrow", "pydantic", "numpy")),
        ("import adp.cli.main as m; m.main(['--help'])", (*HEAVY, "pyarrow", "pydantic", "numpy")),
        ("import adp.converters.run, adp.converters.export", HEAVY),
    ],
)
def test_imports_stay_cheap(code, banned):
    assert not loaded_by(code) & set(banned)


NEVER = (*HEAVY, "matplotlib", "huggingface_hub", "jinja2", "yaml", "fsspec")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    time = datetime(2026, 3, 1, 10, tzinfo=UTC)
    with adp.grow(tmp_path_factory.mktemp("imports") / "store") as growing:
        step = adp.Step(text="x", timestamp=time)
        growing.append(adp.Trajectory(dataset="d", source_id="a", started_at=time, steps=[step]))
    return adp.seal(growing.root).root


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["formats"], {"yaml", "jinja2"}),
        (["info"], set()),
        (["head"], set()),
        (["show", "d/a"], set()),
        (["show", "d/a", "--json"], set()),
    ],
    ids=lambda words: " ".join(sorted(words)),
)
def test_commands_that_look_import_what_they_need(words, needed, store):
    """Numpy and pyarrow (half of it), pydantic and typer (a third), and rich."""
    place = [] if words == ["formats"] else [store]
    code = f"import adp.cli.main as m; m.main({[words[0], *place, *words[1:]]!r})"
    modules = loaded_by(code)
    assert modules & set(NEVER) <= needed


@pytest.mark.parametrize("name", ["log.jsonl", "rows.jsonl"])
def test_a_conversion_imports_what_it_needs(name, tmp_path):
    """Neither what reads YAML, nor all of Arrow's functions, whether it is a log or rows."""
    lines = {
        "log.jsonl": '{"type": "user", "uuid": "a", "parentUuid": null, "sessionId": "s", '
        '"version": "2.0.1", "timestamp": "2026-03-01T10:00:00Z", '
        '"message": {"role": "user", "content": "hi"}}',
        "rows.jsonl": '{"id": "a", "created_at": "2026-03-01T10:00:00Z", '
        '"messages": [{"role": "user", "content": "hi"}]}',
    }
    (tmp_path / name).write_text(lines[name] + "\n")
    words = ["convert", str(tmp_path / name), "-o", str(tmp_path / "store")]
    code = f"import sys, adp.cli.main as m; m.main({words!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    modules = set(done.stdout.splitlines()[-1].split())
    banned = {*NEVER, "pyarrow.compute", "pyarrow.dataset"}
    assert "1 trajectory" in done.stdout
    assert not modules & banned


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions and for type checkers count, too."""
    files = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in SOURCE.rglob("*.py")
    }
    imports = {}
    for name, path in files.items():
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
        wanted = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                inside = {f"{node.module}.{a.name}" for a in node.names}
                wanted |= inside & files.keys() or {node.module}
        imports[name] = wanted & files.keys() - {name}
    assert list(TopologicalSorter(imports).static_order())  # raises where there is a circle
