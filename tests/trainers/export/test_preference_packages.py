"""What Axolotl and ms-swift make of pairs and labels: their own code says it.

``make rl-tests`` puts them into a folder and names it in ``ADP_RL_LOADERS``; without it the tests
that ask them are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from adp.trainers.export.axolotl_dpo import EXPORTER as AXOLOTL_DPO
from adp.trainers.export.axolotl_kto import EXPORTER as AXOLOTL_KTO
from adp.trainers.export.run import export_rows
from adp.trainers.export.swift_dpo import EXPORTER as SWIFT_DPO
from adp.trainers.export.swift_kto import EXPORTER as SWIFT_KTO
from adp_schema.store import Store
from tests.trainers.export.chats import (
    agent,
    call,
    chat_of,
    export,
    pair_of,
    result,
    task_run,
    user,
)
from tools.oracle.families import write_model
from tools.oracle.runs import made_pairs

LOADERS = os.environ.get("ADP_RL_LOADERS")
asks = pytest.mark.skipif(LOADERS is None, reason="make rl-tests installs Axolotl and ms-swift")
train = pytest.mark.train
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs that are made up, and a tokenizer with the template of Qwen 2.5."""
    place = tmp_path_factory.mktemp("preferences")
    made_pairs(place / "pairs", runs=6)
    write_model(place / "qwen", "qwen2.5")
    return place


def asked(
    folder: Path, work: Path, name: str, more: Sequence[Any] = (), **settings: Any
) -> tuple[list[Any], list[Any]]:
    """The rows of an export and more of them, and what the trainer makes of them."""
    store = Store.open(str(folder / "pairs"))
    report = export_rows(store, name, str(work / "out"), {"multi_turn": "cut", **settings})
    assert report.in_store == report.in_rows + sum(report.left_out.values())
    with (work / "out" / "train.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in more)
    job = {
        "what": name,
        "folder": str(work / "out"),
        "tokenizer": str(folder / "qwen"),
        "work": str(work / "work"),
        "model": "qwen2",
        "template": "qwen2_5",
    }
    jobs, answers = work / "jobs.json", work / "answers.json"
    jobs.write_text(json.dumps({"job": job}), encoding="utf-8")
    script = ROOT / "tools" / "oracle" / "preference_rows.py"
    subprocess.run(
        [sys.executable, str(script), str(jobs), "--out", str(answers)],
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(LOADERS)},
    )
    answer = json.loads(answers.read_text(encoding="utf-8"))["answers"]["job"]
    assert "error" not in answer, answer
    text = (work / "out" / "train.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == len(answer["rows"]) > 5
    return rows, answer["rows"]


def tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder / "qwen")


@train
@asks
def test_axolotl_makes_the_text_of_the_template(folder, tmp_path) -> None:
    rows, answers = asked(folder, tmp_path, "axolotl-dpo", tools="text")
    template = tokenizer(folder)
    for row, answer in zip(rows, answers, strict=True):
        for side in ("chosen", "rejected"):
            whole = [*row["messages"], *row[side]]
            text = template.apply_chat_template(whole, tokenize=False)
            assert answer["prompt"] + answer[side] == text.rstrip()


@train
@asks
def test_axolotl_takes_labelled_text(folder, tmp_path) -> None:
    rows, answers = asked(folder, tmp_path, "axolotl-kto", label="pairs")
    for row, answer in zip(rows, answers, strict=True):
        assert {name: answer[name] for name in row} == row
        assert row["prompt"].endswith("<|im_start|>assistant\n")
    assert {answer["label"] for answer in answers} == {True, False}


@train
@asks
@pytest.mark.parametrize("tools", ["own", "text"])
def test_ms_swift_trains_the_sides_alone(tools, folder, tmp_path) -> None:
    acted = chat_of(user("Where?"), agent("", call("c")), result("c", "here"))
    with_calls = pair_of(acted, agent("", call("d", "shore")), agent("I look.", call("e", "sea")))
    more = export(SWIFT_DPO, with_calls)[0] if tools == "own" else ()
    rows, answers = asked(folder, tmp_path, "swift-dpo", more, tools=tools)
    calls = 0
    for row, answer in zip(rows, answers, strict=True):
        for side, name in (("chosen", "messages"), ("rejected", "rejected_messages")):
            (piece,) = answer[side]
            last = row[name][-1]
            assert last["content"] in piece
            for item in last.get("tool_calls", ()):
                calls += 1
                assert item["function"]["name"] in piece
            assert piece.rstrip().endswith("<|im_end|>")
    assert calls == (2 if tools == "own" else 0)


@train
@asks
def test_ms_swift_trains_labelled_answers_alone(folder, tmp_path) -> None:
    rows, answers = asked(folder, tmp_path, "swift-kto", label="pairs", tools="text")
    for row, answer in zip(rows, answers, strict=True):
        (piece,) = answer["trained"]
        assert piece.rstrip() == f"{row['messages'][-1]['content']}<|im_end|>"
        assert answer["label"] is row["label"]


def test_what_axolotl_cannot_take_is_counted() -> None:
    prompt = chat_of(user("Where?"), agent("", call("c")), result("c", "here"))
    _, tally = export(AXOLOTL_DPO, pair_of(prompt, agent("a"), agent("b")))
    assert list(tally.left_out) == [
        "calls, which Axolotl drops; --set tools=text writes them as words"
    ]
    plain = chat_of(user("Who?"))
    for better, why in (("user", "stand in what a template"), (" ", "without words")):
        _, tally = export(AXOLOTL_DPO, pair_of(plain, agent(better), agent("the other")))
        assert why in next(iter(tally.left_out))
    rows, tally = export(AXOLOTL_DPO, pair_of(plain, agent(" yes\n"), agent("nay")))
    assert rows[0]["chosen"] == [{"role": "assistant", "content": "yes"}]
    assert not tally.left_out
    assert sum(tally.changed.values()) == 1
    short = pair_of(plain, agent("yes"), agent("no"))  # "no" stands in Llama's "Knowledge Date"
    assert not export(AXOLOTL_DPO, short)[0]
    assert export(AXOLOTL_DPO, short, AXOLOTL_DPO.options(template="chatml"))[0]


def test_labels_and_flags() -> None:
    chat = chat_of(user("Where?"), agent("At sea.", weight=0.0), user("Sure?"), agent("Yes."))
    for exporter in (AXOLOTL_KTO, SWIFT_KTO):
        (row,), tally = export(exporter, chat, run=task_run(0))
        assert row["label"] is True
        assert not tally.left_out
    assert [message.get("loss") for message in row["messages"]] == [None, False, None, True]
    _, tally = export(SWIFT_KTO, chat_of(user("Where?"), agent("", call("c"))), run=task_run(0))
    assert "--set tools=text" in next(iter(tally.left_out))
    (row,), _ = export(SWIFT_DPO, pair_of(chat_of(user("a")), agent("", call("c")), agent("x")))
    assert row["messages"][-1]["tool_calls"][0]["function"]["arguments"] == '{"at": "sea"}'
    assert row["rejected_messages"][-1] == {"role": "assistant", "content": "x", "loss": True}
    assert json.loads(row["tools"])[0]["function"]["name"] == "look"
