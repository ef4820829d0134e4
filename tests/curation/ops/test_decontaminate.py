"""Ids, repositories, patches, layouts of benchmark files, evidence, and bad input."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from adp.curation.apply import apply
from adp.curation.op import OpResult
from adp.curation.ops.decontaminate.items import read_benchmark
from adp.curation.ops.decontaminate.options import Against
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import AdpError, RecipeError
from adp_schema.store import Store
from tests.store_builders import write_store

DATA = Path(__file__).parents[3].parent / "shared" / "data"

TEXT = "the quick brown fox jumps over the lazy dog and runs far away from here today"
PATCH = """diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1,2 +1,5 @@
 import os
-    return old_value(first, second)
+    total = compute_total(first, second)
+    if total is None:
+        raise ValueError("no total for these")
+    return total + offset_of(first)
+
+x
"""
SWE = {
    "instance_id": "acme__rocket-1234",
    "repo": "acme/rocket",
    "base_commit": "0123456789abcdef0123456789abcdef01234567",
    "problem_statement": TEXT,
    "patch": PATCH,
    "hints_text": "",
}


def _store(folder: Path, *runs: dict[str, Any]) -> Store:
    """A store; of each run: columns of the trajectory, the user's texts, calls, agent's texts."""
    builder = RowBuilder()
    for seq, run in enumerate(runs):
        columns = {"source_format": "x"}
        builder.begin(Origin(seq=seq, dataset=run.get("dataset", "d"), columns=columns))
        builder.trajectory({"source_id": f"run {seq}", **run.get("columns", {})})
        if "task" in run:
            builder.task({"task_id": run.get("columns", {}).get("task_id"), **run["task"]})
        for text in run.get("user", []):
            builder.step({"source": "user", "kind": "message", "text": text})
        for text in run.get("agent", []):
            builder.step({"source": "agent", "kind": "llm_turn", "text": text})
        for call in run.get("calls", []):
            builder.step({"source": "agent", "kind": "llm_turn"})
            builder.call({"kind": "function", "name": "edit", **call})
        builder.finish()
    return write_store(folder, builder)


def _run(
    folder: Path, rows: list[dict[str, Any]], *runs: dict[str, Any], **options: Any
) -> OpResult:
    folder.mkdir(exist_ok=True)
    path = folder / "bench.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return apply("decontaminate", _store(folder / "s", *runs), against=[str(path)], **options)


def _levels(outcome: OpResult) -> list[str | None]:
    assert outcome.columns is not None
    levels: list[str | None] = outcome.columns["contamination_level"].to_list()
    return levels


# ---- ids ----------------------------------------------------------------------------------------


NAMED: list[tuple[dict[str, Any], str | None]] = [
    ({"columns": {"task_id": "acme__rocket-1234"}}, "instance"),
    ({"columns": {"task_id": "ACME__Rocket-1234_17"}}, "instance"),
    ({"columns": {"source_id": "swe/acme__rocket-1234.traj"}}, "instance"),
    ({"columns": {"task_id": "acme__rocket-12345"}}, "repository"),
    ({"columns": {"task_id": "acme__rocket-123"}}, "repository"),
    ({"columns": {"task_id": "acme__rocket.1a2b3c"}}, "repository"),
    ({"columns": {"task_id": "bigacme__rocket-1234"}}, None),
    ({"columns": {"task_id": "acme__rocketry-1234"}}, None),
    ({"columns": {"task_id": None}}, None),
    ({"columns": {"extra": '{"image": "sweb.acme_1776_rocket-1234:latest"}'}}, "instance"),
    (
        {
            "columns": {"task_id": "t"},
            "task": {"environment_config": '{"commit": "0123456789abcdef"}'},
        },
        "instance",
    ),
    ({"columns": {"task_id": "u"}, "task": {"environment": "x0123456789abcdef"}}, None),
    ({"user": ["Fix https://github.com/Acme/rocket/issues/1234 please"]}, "instance"),
    ({"user": ["Fix acme/rocket#1234."]}, "instance"),
    ({"user": ["Fix acme/rocket#12345."]}, "repository"),
    ({"user": ["Clone https://github.com/acme/rocket.git now"]}, "repository"),
    ({"user": ["Clone git@github.com:acme/rocket and go"]}, "repository"),
    ({"user": ["See https://github.com/acme/rocket/blob/main/x.py"]}, "repository"),
    ({"user": ["The repository acme/rocket."]}, "repository"),
    ({"user": ["It is in /src/acme/rocket/x.py or acme/rocket/x.py"]}, None),
    ({"user": ["acme/rocket-ui"]}, None),
    ({"user": ["git checkout 0123456789abcdef0123456789abcdef01234567"]}, "instance"),
    ({"agent": ["acme__rocket-1234"]}, None),
]


def test_ids_issues_commits_and_repositories(tmp_path: Path) -> None:
    row = {name: SWE[name] for name in ("instance_id", "repo", "base_commit")}
    outcome = _run(tmp_path, [row], *(run for run, _ in NAMED))
    result = list(zip([run for run, _ in NAMED], _levels(outcome), strict=True))
    assert result == NAMED
    assert outcome.dropped is not None
    assert outcome.events is not None
    for frame, level in ((outcome.dropped, "instance"), (outcome.events, "repository")):
        assert frame["seq"].to_list() == [n for n, (_, entry) in enumerate(NAMED) if entry == level]


def test_the_place_of_an_id_is_told(tmp_path: Path) -> None:
    text = "Öl: Fix ACME/rocket#1234."
    outcome = _run(tmp_path, [SWE], {"user": ["Hello", text]})
    assert outcome.dropped is not None
    evidence = json.loads(outcome.dropped["evidence"][0])
    assert evidence["item"] == "bench/acme__rocket-1234"
    assert (evidence["found_in"], evidence["step"]) == ("task", 1)
    assert evidence["text"] == text[evidence["start"] : evidence["end"]] == "ACME/rocket#1234"


def test_ids_that_say_little_count_only_in_the_data_set_of_the_benchmark(tmp_path: Path) -> None:
    rows = [{"id": 7, "question": TEXT}, {"id": "x-1", "question": "short one"}]
    outcome = _run(
        tmp_path,
        rows,
        {"dataset": "Ben-ch", "columns": {"task_id": "7"}},
        {"dataset": "Ben-ch", "columns": {"task_id": "X-1"}},
        {"dataset": "other", "columns": {"task_id": "7"}, "user": ["7 x-1"]},
    )
    assert _levels(outcome) == ["instance", "instance", None]


def test_each_level_has_an_action_of_its_own(tmp_path: Path) -> None:
    runs: list[dict[str, Any]] = [
        {"columns": {"task_id": "acme__rocket-1234"}, "user": [TEXT]},
        {"user": ["acme/rocket"]},
        {"user": [TEXT]},
    ]
    outcome = _run(tmp_path, [SWE], *runs)
    assert outcome.dropped is not None
    assert dict(outcome.dropped.select("seq", "reason").iter_rows()) == {
        0: "instance of a benchmark",
        2: "holds the text of a benchmark's item",
    }
    names = ("on_instance", "on_text", "on_repository", "on_patch")
    flagged = _run(tmp_path / "f", [SWE], *runs, **dict.fromkeys(names, "flag"))
    assert flagged.dropped is not None
    assert flagged.events is not None
    assert flagged.dropped.height == 0
    assert sorted(flagged.events["seq"].to_list()) == [0, 0, 1, 2]
    off = _run(tmp_path / "o", [SWE], *runs, **dict.fromkeys(names, "off"))
    assert _levels(off) == [None] * 3
    only = _run(tmp_path / "r", [SWE], *runs, on_instance="off", on_text="off")
    assert _levels(only) == ["repository", "repository", None]


# ---- text ---------------------------------------------------------------------------------------


def test_the_spans_are_where_the_text_stands(tmp_path: Path) -> None:
    text = f"Ü: please --\n{TEXT.upper().replace(' ', ',  ')}! Thanks."
    outcome = _run(tmp_path, [{"question": TEXT, "answer": ["Forty Two"]}], {
        "user": ["Hello there", text], "agent": ["The answer is forty-two."],
    })  # fmt: skip
    assert outcome.dropped is not None
    evidence = json.loads(outcome.dropped["evidence"][0])
    (span,) = evidence["spans"]
    assert span["step"] == 1
    assert text[span["start"] : span["end"]] == TEXT.upper().replace(" ", ",  ")
    assert (evidence["share"], evidence["pieces"], evidence["answer_found"]) == (1.0, 1, True)


def test_other_views_are_looked_at_when_they_are_named(tmp_path: Path) -> None:
    runs: list[dict[str, Any]] = [
        {"agent": [TEXT]},
        {"columns": {"task_id": "t"}, "task": {"instruction": TEXT}},
        {"columns": {"task_id": "t"}},
        {"agent": ["x"], "user": []},
    ]
    rows = [{"question": TEXT}]
    assert _levels(_run(tmp_path, rows, *runs)) == [None, "text", "text", None]
    named = _run(tmp_path / "a", rows, *runs, views=["agent"])
    assert _levels(named) == ["text", None, None, None]


@pytest.mark.parametrize(
    ("question", "comparable"), [("one two three four five six seven", 0), ("a b c d e f g h", 1)]
)
def test_tiny_items_are_reported_as_not_compared(
    tmp_path: Path, question: str, comparable: int
) -> None:
    outcome = _run(tmp_path, [{"question": question}], {"user": [f"so: {question}, yes"]})
    part = outcome.summary["benchmarks"][0]["text"]
    assert (part["comparable"], part["too_short"]) == (comparable, 1 - comparable)
    assert _levels(outcome) == ["text" if comparable else None]
    assert any("too short" in line for line in outcome.lines) == (not comparable)


# ---- patches ------------------------------------------------------------------------------------

LINES = [line[1:] for line in PATCH.splitlines() if line[0] == "+" and line[:3] != "+++"][:4]


EDITS: list[tuple[dict[str, Any], float]] = [
    ({"arguments": json.dumps({"path": "x", "new_str": "\n".join(LINES)})}, 1.0),
    ({"arguments": json.dumps({"path": "x", "new_str": "\n".join(LINES[1:3])})}, 0.5),
    ({"arguments": json.dumps({"path": "x", "new_str": LINES[0]})}, 0.25),
    ({"arguments": json.dumps({"cmd": "cat <<X\n  " + "\n".join(LINES) + "\nX"})}, 1.0),
    ({"arguments": json.dumps({"patch": PATCH})}, 1.0),
    ({"arguments": json.dumps({"old_str": "return old_value(first, second)"})}, 0.0),
    ({"arguments_raw": '{"new_str": ' + "\n".join(LINES), "arguments_kind": "invalid"}, 0.75),
    ({}, 0.0),
]


def test_the_lines_of_a_patch_are_found_in_edits_and_commands(tmp_path: Path) -> None:
    outcome = _run(tmp_path, [SWE], *({"calls": [call]} for call, _ in EDITS))
    assert outcome.columns is not None
    assert outcome.dropped is not None
    shares = [share for _, share in EDITS]
    assert outcome.columns["contamination"].to_list() == shares
    assert _levels(outcome) == ["patch" if share >= 0.5 else None for share in shares]
    for text in outcome.dropped["evidence"]:
        evidence = json.loads(text)
        assert evidence["spans"][0]["step"] == 0
        assert "if total" in evidence["spans"][0]["text"]


def test_lines_that_many_write_are_ignored(tmp_path: Path) -> None:
    others = [
        {
            "user": [f"task number {n}"],
            "calls": [{"arguments": json.dumps({"c": "\n".join(LINES)})}],
        }
        for n in range(12)
    ]
    outcome = _run(tmp_path, [SWE], *others)
    assert _levels(outcome) == [None] * 12
    assert outcome.summary["benchmarks"][0]["patch"]["too_frequent"] == 1


# ---- files --------------------------------------------------------------------------------------


def _write_csv(path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(
            file, ["id", "question"], delimiter="\t" if ".t" in path.name else ","
        )
        writer.writeheader()
        writer.writerows(
            [{"id": "one", "question": TEXT}, {"id": "two", "question": "other, text"}]
        )


ROWS = [{"id": "one", "question": TEXT}, {"id": "two", "question": "other, text"}]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("b.jsonl", lambda path: path.write_text("\n\n".join(map(json.dumps, ROWS)))),
        ("b.json", lambda path: path.write_text(json.dumps(ROWS))),
        ("b.json", lambda path: path.write_text(json.dumps({"version": 1, "data": ROWS}))),
        ("b.json", lambda path: path.write_text(
            json.dumps({row["id"]: {"question": row["question"]} for row in ROWS}))),
        ("b.jsonl.gz", lambda path: path.write_bytes(
            gzip.compress("\n".join(map(json.dumps, ROWS)).encode()))),
        ("b.csv", _write_csv),
        ("b.tsv", _write_csv),
        ("b.parquet", lambda path: pl.DataFrame(ROWS).write_parquet(path)),
    ],
)  # fmt: skip
def test_every_kind_of_file_gives_the_same_items(
    tmp_path: Path, name: str, write: Callable[[Path], Any]
) -> None:
    write(tmp_path / name)
    benchmark = read_benchmark(Against(file=name), tmp_path)
    assert [(item.label, item.texts) for item in benchmark.items] == [
        ("b/one", (TEXT,)),
        ("b/two", ("other, text",)),
    ]


def test_texts_stores_and_patterns_are_benchmarks_too(tmp_path: Path) -> None:
    (tmp_path / "b-1.txt").write_text(f"{TEXT}\n\nother\n")
    (tmp_path / "b-2.txt").write_text("third\n")
    benchmark = read_benchmark(Against(file="b-*.txt", name="b"), tmp_path)
    assert [(item.label, item.texts) for item in benchmark.items] == [
        ("b#1", (TEXT,)), ("b#2", ("other",)), ("b#3", ("third",)),
    ]  # fmt: skip
    _store(
        tmp_path / "held-out",
        {"columns": {"task_id": "t1"}, "user": [TEXT, "and more"]},
        {"columns": {"task_id": "t1"}, "user": [TEXT, "and more"]},
        {"columns": {"task_id": "t2"}, "user": ["ignored"], "task": {"instruction": "asked"}},
        {},
    )
    stored = read_benchmark(Against(file="held-out"), tmp_path)
    assert [(item.label, item.texts) for item in stored.items] == [
        ("held-out/t1", (TEXT, "and more")),
        ("held-out/t2", ("asked",)),
        ("held-out/run 3", ()),
    ]


def test_data_sets_of_a_store_that_number_their_tasks_alike(tmp_path: Path) -> None:
    ours = {"user": ["hello"], "columns": {"task_id": "1"}}
    _store(
        tmp_path / "held-out",
        {**ours, "dataset": "a", "task": {"instruction": "what a asks"}},
        {**ours, "dataset": "b", "task": {"instruction": TEXT}},
        {**ours, "dataset": "b"},
    )
    items = read_benchmark(Against(file="held-out"), tmp_path).items
    assert [item.texts for item in items] == [("what a asks",), (TEXT,)]
    against = [str(tmp_path / "held-out")]
    outcome = apply("decontaminate", _store(tmp_path / "t", {"user": [TEXT]}), against=against)
    assert outcome.dropped is not None
    assert outcome.dropped.height == 1


def test_named_fields_and_fields_in_fields(tmp_path: Path) -> None:
    row = {"a": {"b": TEXT}, "c": [{"role": "system", "content": "no"},
           {"role": "user", "content": [{"type": "text", "text": "yes"}]}], "n": 5}  # fmt: skip
    (tmp_path / "b.jsonl").write_text(json.dumps(row))
    benchmark = read_benchmark(Against(file="b.jsonl", text=["a.b", "c"], id="n"), tmp_path)
    assert benchmark.items[0].texts == (TEXT, "yes")
    assert benchmark.items[0].id == "5"


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ({"file": "missing.jsonl"}, "finds no file missing.jsonl"),
        ({"file": "empty.jsonl"}, "finds no item in empty.jsonl"),
        ({"file": "b.docx"}, "reads .jsonl, .ndjson"),
        ({"file": "broken.json"}, "cannot read broken.json"),
        ({"file": "broken.parquet"}, "cannot read broken.parquet"),
        ({"file": "broken.jsonl.gz"}, "cannot read broken.jsonl.gz"),
        ({"file": "odd.jsonl"}, "cannot tell which field of odd.jsonl holds the task"),
        ({"file": "b.jsonl", "text": "questions"}, "the field questions is in no item of b.jsonl"),
        ({"file": "b.jsonl", "fields": "x"}, "fields is not known"),
    ],
)
def test_a_wrong_benchmark_is_one_sentence(
    tmp_path: Path, against: dict[str, Any], message: str
) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    for name in ("b.docx", "broken.json", "broken.parquet", "broken.jsonl.gz"):
        (tmp_path / name).write_text("{")
    (tmp_path / "odd.jsonl").write_text('{"w": 1}')
    (tmp_path / "b.jsonl").write_text(json.dumps(ROWS[0]))
    store = _store(tmp_path / "s", {"user": [TEXT]})
    given = {**against, "file": str(tmp_path / against["file"])}
    with pytest.raises(AdpError) as caught:
        apply("decontaminate", store, against=[given])
    assert message in str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("options", [{}, {"against": []}, {"against": ["x"], "n": 1}])
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(RecipeError):
        apply("decontaminate", _store(tmp_path / "s", {"user": ["x"]}), **options)


def test_bad_rows_and_empty_trajectories_harm_nothing(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    odd = json.dumps({"instance_id": None, "problem_statement": 5, "patch": 7, "repo": ["x"]})
    lone = '{"problem_statement": "\\ud800 ' + TEXT + '"}'
    path.write_text(f'{json.dumps(SWE)}\nnot json\n[1, 2]\n"text"\n{odd}\n{{}}\n{lone}')
    store = _store(
        tmp_path / "s",
        {},
        {"user": [None, "", " "], "agent": [None]},
        {"calls": [{}, {"arguments_raw": "{", "name": None}]},
        {"columns": {"task_id": "t"}, "task": {"instruction": None}},
    )
    outcome = apply("decontaminate", store, against=str(path))
    assert _levels(outcome) == [None] * 4
    assert any("3 rows are not readable" in line for line in outcome.lines)
    nothing = apply("decontaminate", _store(tmp_path / "n"), against=str(path))
    assert nothing.columns is not None
    assert nothing.columns.height == 0


# ---- real benchmarks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "items", "checkable"),
    [
        ("etagent/test/bamboogle.jsonl", 125, 0.8),
        ("etagent/test/aime25.jsonl", 30, 1.0),
        ("eval/bfcl/ast_oracle_entries.jsonl.gz", None, 0.9),
        ("eval/bfcl/multi_turn_entries.jsonl.gz", 9, 1.0),
        ("etagent/rl_datasets/valid.parquet", None, 0.8),
    ],
)
def test_real_benchmarks_are_found_again_and_nothing_else(
    tmp_path: Path, file: str, items: int | None, checkable: float
) -> None:
    path = DATA / file
    if not path.exists():
        pytest.skip("the shared data is not here")
    result = read_benchmark(Against(file=str(path)), tmp_path).items
    assert items is None or len(result) == items
    assert all(item.texts for item in result)
    half = len(result) // 2
    runs = [{"user": list(item.texts)} for item in result[:half]]
    store = _store(tmp_path / "s", *runs, *[{"user": [f"Something else {n}"]} for n in range(9)])
    (tmp_path / "b").mkdir()
    outcome = apply("decontaminate", store, against=str(path), on_instance="off")
    part = outcome.summary["benchmarks"][0]["text"]
    assert part["comparable"] >= checkable * len(result)
    flagged = [level is not None for level in _levels(outcome)]
    assert sum(flagged[:half]) >= checkable * half * 0.9
    assert not any(flagged[half:])
