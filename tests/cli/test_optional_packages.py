"""What works without the optional packages, and the sentence where one is missing."""

from __future__ import annotations

import sys

import pytest

from adp.core.extras import EXTRAS

BLOCKED = {package for packages in EXTRAS.values() for package in packages}


@pytest.fixture
def plain(run, store, tmp_path, monkeypatch):
    """The command line in an environment with none of them, in an empty folder."""
    for package in BLOCKED:
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(tmp_path)
    return lambda text: run(*text.replace("STORE", store.root).split())


@pytest.mark.parametrize(
    "call",
    [
        "info STORE",
        "head STORE",
        "stats STORE",
        "query STORE -c SELECT/**/1",
        "validate STORE --fail-on never",
        "export STORE --to openai_chat -o chats",
        "export STORE --to chatml -o rows",
        "drop STORE --where success -o less",
        "report data STORE",
        "report data STORE -o page.md",
        "redact STORE --kinds secrets -o clean",
        "score STORE --with outcome --out scores",
    ],
)
def test_what_needs_none_works(plain, call):
    done = plain(call)
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("call", "package", "extra"),
    [
        ("report data STORE -o page.html", "matplotlib", "report"),
        ("report eval STORE -o page.html", "matplotlib", "report"),
        ("redact STORE -o clean", "phonenumbers", "redact"),
        ("publish STORE me/runs --dry-run --accept-licenses --out out", "phonenumbers", "redact"),
        ("redact STORE --kinds secrets -o clean --engine ray", "ray", "ray"),
        ("train sft STORE --model tiny -o out", "torch", "train"),
    ],
)
def test_what_needs_one_says_what_to_install(plain, call, package, extra, tmp_path):
    done = plain(call)
    assert done.code == 2
    assert done.err.endswith(
        f"error: this needs the package '{package}', which is not installed; "
        f"run: pip install 'adp[{extra}]'\n"
    )
    assert not (tmp_path / "page.html").exists()
    assert not (tmp_path / "clean" / "adp.json").exists()
    assert not (tmp_path / "out" / "README.md").exists()
