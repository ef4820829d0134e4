"""What an import may load: starting must stay cheap."""

import subprocess
import sys

import pytest

from tests.waiting import PATIENCE

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
