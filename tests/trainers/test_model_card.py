"""The card beside what was trained: huggingface_hub reads its head, and it says what is known."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from adp.trainers.base_model import BaseModel, base_model
from adp.trainers.model_card import CardFacts, card, metadata
from adp.trainers.run import train
from adp_schema.store import Store
from tests.trainers.small_runs import TRAINING, config_of, write_runs

pytestmark = TRAINING


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_runs(tmp_path_factory.mktemp("runs") / "store")


@pytest.fixture(scope="module")
def out(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that tried its model in an environment."""
    out = tmp_path_factory.mktemp("run") / "out"
    section = {"env": "calculator", "tasks": "validation:2", "policy": {"max_tokens": 4}}
    train(config_of(store, evaluate=section, training__max_steps=2), out)
    return out


def _record(**more: Any) -> dict[str, Any]:
    """A record with as little in it as a run can have."""
    return {
        "method": "sft", "seed": 1, "learning_rate": 1e-4, "config_hash": "c0ffee",
        "config": {}, "stores": [], "precision": {}, "versions": {},
        "plan": {"rows": 1, "tokens": 0, "trained": 0, "longest": 3, "dropped": {}, "notes": {}},
        "result": {}, **more,
    }  # fmt: skip


def test_huggingface_hub_reads_the_card(out: Path) -> None:
    from huggingface_hub import ModelCard

    for name in ("adapter", "best"):
        loaded = ModelCard.load(out / name / "README.md")
        head = loaded.data.to_dict()
        assert head["library_name"] == "peft"
        assert head["pipeline_tag"] == "text-generation"
        assert {"adp", "sft", "lora"} <= set(head["tags"])
        # A toy that nobody can load is no base model on the Hub.
        assert "base_model" not in head
        assert "license" not in head


def test_a_card_says_what_the_record_says(out: Path, store: Store) -> None:
    record = json.loads((out / "run.json").read_text())
    text = (out / "adapter" / "README.md").read_text()
    plan = record["plan"]
    assert f"{plan['tokens']:,} tokens, {plan['trained']:,} of them under the loss" in text
    assert record["stores"][0]["manifest"] in text
    assert f"{record['result']['last_loss']:.4f}".replace(".", "\\.") in text
    assert record["versions"]["torch"].split("+")[0].replace(".", "\\.") in text
    for item in record["result"]["evaluations"]:
        assert f"| {item['step']} | {item['success']:.4g} |" in text
    best = (out / "best" / "README.md").read_text()
    assert "This is the model of step 0, the best by success (0)." in best


def test_a_card_has_no_path_of_the_machine(out: Path) -> None:
    for path in out.glob("*/README.md"):
        text = path.read_text()
        assert str(out.parent) not in text
        assert os.sep + "tmp" not in text


def test_a_base_model_in_a_folder_gives_its_name_and_license(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "config.json").write_text('{"_name_or_path": "someone/model-7b"}')
    (folder / "README.md").write_text(
        "---\nlicense: other\nlicense_name: theirs\nlicense_link: https://example.org/l\n---\nHi\n"
    )
    base = base_model(str(folder))
    assert base == BaseModel(
        "someone/model-7b", "someone/model-7b", "other", "theirs", "https://example.org/l"
    )
    facts = CardFacts(_record(), base, (), adapter=True)
    assert metadata(facts) | {"tags": []} == {
        "base_model": "someone/model-7b",
        "base_model_relation": "adapter",
        "library_name": "peft",
        "pipeline_tag": "text-generation",
        "license": "other",
        "license_name": "theirs",
        "license_link": "https://example.org/l",
        "tags": [],
    }


@pytest.mark.parametrize(
    "readme",
    ["", "---\n", "---\nlicense: [\n---\n", "---\n- a\n---\n", "\xff", "---\nlicense: 3\n---"],
)
def test_a_base_model_without_a_card_is_named_by_its_folder(tmp_path: Path, readme: str) -> None:
    folder = tmp_path / "models" / "mine"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(readme, encoding="latin-1")
    (folder / "config.json").write_text("[]")
    assert base_model(str(folder)) == BaseModel("mine")


def test_known_data_sets_and_their_licenses_stand_in_the_card() -> None:
    from adp.stores.licenses import judge

    rows = [
        judge(dataset="APIGen-MT-5k", license=None, trajectories=7),
        judge(dataset="own <b>runs</b> | 2", license="MIT"),
    ]
    facts = CardFacts(_record(), BaseModel("a/b", "a/b", "mit"), rows, adapter=False)
    text = card(facts)
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["datasets"] == ["Salesforce/APIGen-MT-5k"]
    assert head["base_model_relation"] == "finetune"
    assert "not for commercial use" in text
    assert "<b>" not in text
    table = [line for line in text.splitlines() if line.startswith("| ") and "runs" in line]
    # A bar in a name does not make a cell.
    assert len(table) == 1
    assert table[0].replace("\\|", "").count("|") == 5
