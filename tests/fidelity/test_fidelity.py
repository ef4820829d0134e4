"""Nothing of a record is neither in a target nor reported, for every pair of formats.

The records here are small and have every field; ``make fidelity DATA=...`` does the same over real
files, and in every target what is tried here in one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from adp.converters.atif import write
from adp_schema.losses import Losses
from adp_schema.store import Store
from tests.fidelity import exact
from tests.fidelity.check import Bounds, Source, Trial
from tests.fidelity.product import Product, names
from tests.fidelity.promises import check_promises
from tests.fidelity.structure import check_structure

RECORDS = sorted(Path(__file__).parent.glob("records/*/*"))
LIKE_OTHERS = ("hh", "implicit", "kto_chat", "kto_messages", "openai", "trl_chat")
"""Records of preferences that differ little from others; they are tried by ``make test-slow``."""


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def source(path: Path) -> Source:
    raw = path.read_text(encoding="utf-8")
    lines = (
        [exact.parse(line) for line in raw.split("\n") if line] if path.suffix == ".jsonl" else None
    )
    tree = exact.parse(raw) if lines is None else lines
    return Source(path.parent.name, tree, path.suffix, raw)


@pytest.fixture
def product():
    made = Product()
    yield made
    made.close()


def check_all(product: Product, path: Path, sample: int) -> None:
    trial = Trial(product, source(path), names(), Bounds(1, sample=sample))
    assert trial.base is not None
    trial.values()
    check_promises(trial)
    check_structure(trial)
    assert [finding.line() for finding in trial.findings] == []
    assert [finding.line() for finding in trial.alarms] == []


@pytest.mark.parametrize(
    "path", [path for path in RECORDS if path.stem not in LIKE_OTHERS], ids=name_of
)
def test_nothing_is_silent(path, product):
    """Of 160 kinds of places that a target lacks, one is asked for its report."""
    check_all(product, path, sample=160)


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDS, ids=name_of)
def test_nothing_at_all_is_silent(path, product):
    check_all(product, path, sample=1)


def test_every_format_has_a_record():
    assert {path.parent.name for path in RECORDS} >= set(names())


def record(name: str) -> Source:
    return source(next(path for path in RECORDS if name_of(path) == name))


@pytest.mark.parametrize(
    ("name", "keys", "report"),
    [
        ("openai_chat/tools", ("success",), ".success"),
        ("openai_chat/tools", ("metadata", "tags", 1), ".extra.metadata"),
        ("adp_v1/full", ("content", 3, "url"), ".url"),
        ("atif/full", ("steps", 2, "metrics", "logprobs", 0), ".logprobs"),
    ],
)
def test_a_report_that_is_missing_is_noticed(name, keys, report, product, monkeypatch):
    add = Losses.add

    def forgetful(self, path: str, reason: str) -> None:
        if not path.endswith(report):
            add(self, path, reason)

    assert findings(product, name, keys) == []
    monkeypatch.setattr(Losses, "add", forgetful)
    assert findings(product, name, keys) == [exact.place(keys)]


def findings(product: Product, name: str, keys: exact.Keys) -> list[str]:
    """Where a value is found to be silent, tried alone."""
    trial = Trial(product, record(name), ["sharegpt"], Bounds(1))
    trial.alone([(keys, exact.at(trial.source.tree, keys), ["sharegpt"])])
    return [finding.where for finding in trial.findings]


def test_a_step_that_is_missing_is_noticed(product, monkeypatch):
    trajectories = Store.trajectories

    def without_last_steps(self, *arguments, **options):
        for run in trajectories(self, *arguments, **options):
            yield run.model_copy(update={"steps": run.steps[:-1]})

    monkeypatch.setattr(Store, "trajectories", without_last_steps)
    keys = ("conversations", 12, "value")
    trial = Trial(product, record("sharegpt/tools"), ["openai_chat"], Bounds(1))
    trial.alone([(keys, exact.at(trial.source.tree, keys), ["openai_chat"])])
    assert [finding.where for finding in trial.findings] == ["$.conversations[12].value"]


@pytest.mark.parametrize("wrong", ["sides", "steps", "number"])
def test_a_pair_that_names_other_steps_is_noticed(wrong, product, monkeypatch):
    right = write.write_pairs

    def write_pairs(run):
        pairs = right(run)
        for pair in pairs:
            sides = [pair["chosen_id"], pair["rejected_id"]]
            if wrong == "sides":
                pair["chosen_id"], pair["rejected_id"] = sides[::-1]
            elif wrong == "steps":
                pair["rejected_from"] = pair["rejected_to"] = 0
            else:
                pair["rejected_id"] = 7
        return pairs

    def silent():
        trial = Trial(product, record("sharegpt/pair"), ["atif"], Bounds(1))
        check_promises(trial)
        return {finding.kind for finding in trial.findings}

    assert silent() == set()
    monkeypatch.setattr(write, "write_pairs", write_pairs)
    assert "pair" in silent()
