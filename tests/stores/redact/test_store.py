"""A planted value is found wherever it is, and no byte of it is in the new store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from adp.stores.checks.run import run_checks
from adp.stores.redact import Findings, RedactOptions, redact, scan
from adp.stores.redact.rules import placeholder
from adp.stores.redact.run import findings_of
from adp_schema.builder import Origin, RowBuilder
from adp_schema.ids import digest
from adp_schema.manifest import Lineage
from adp_schema.media import media_of_bytes, media_of_uri
from adp_schema.parts import Parts, resolve
from adp_schema.store import Store
from adp_schema.tables import TABLES
from tests.converters.test_run import hashes
from tests.effort import examples
from tests.store_builders import reject_row, write_store
from tests.stores import any_store
from tests.stores.redact import planted
from tests.stores.test_drop import everything

OWN_NAMES = (("/home/testerina",), ("testerina",))
OPTIONS = RedactOptions(user=OWN_NAMES, places=10_000, workers=1)
KEYS = planted.plain("2")


def flat(value: str) -> str:
    """A key as one word, for places where a line break makes no sense."""
    return value.replace("\n", "\\n")


def fill(builder: RowBuilder, kind: str, value: str, seq: int) -> None:
    """A trajectory with a key in every place that a text can be."""
    result = flat(value)
    columns = {"source_file": f"logs/{seq}.jsonl", "source_records": [seq], "source_offsets": [0],
               "source_hash": digest(value.encode())}  # fmt: skip
    builder.begin(Origin(seq=seq * 10, dataset="d", columns=columns))
    short = (
        result if len(result) < 200 and "\\" not in result and " " not in result else f"run-{seq}"
    )
    builder.trajectory({
        "source_id": f"run-{short}", "task_id": f"task {short}", "notes": f"n {value}",
        "tags": ["plain", f"t {value}"], "agent_name": f"a {value}", "final_answer": value,
        "tools": json.dumps([{"type": "function", "function": {"name": "f", "what": value}}]),
        "extra": json.dumps({"k": {"deep": [value]}, "$shape": {}}), "session_id": f"s {short}",
        "rewards": '{"a": 1.0}', "losses": json.dumps([{"path": f"$.{short}", "reason": "r"}]),
    })  # fmt: skip
    builder.task(
        {
            "task_id": f"task {short}",
            "instruction": f"do {value}",
            "answers": json.dumps([value]),
            "tests": json.dumps({"env": value}),
        }
    )
    parts = Parts()
    parts.reasoning(f"think {value} one")
    parts.text(f"first {value}, {value}")
    parts.media(builder.media(media_of_uri(f"https://h.example/i.png?k={short}")))
    parts.media(builder.media(media_of_bytes(f'{{"t": "{result}"}}'.encode(), "application/json")))
    parts.media(builder.media(media_of_bytes(b"\x89PNG" + b"\x00" * 40, "image/png")))
    parts.text("in the middle")
    parts.text(f"last {value}.", extra={"note": value})
    builder.step({"source": "user", "kind": "message", **parts.columns()})
    text = f'I call <tool>{{"k": "{result}"}}</tool> now {value} again'
    start = text.index("<tool>")
    builder.step({"source": "agent", "kind": "llm_turn", "text": text, "reasoning": value,
                  "labels": [value], "usage": json.dumps({"who": value})})  # fmt: skip
    call = {"call_id": f"call {short}", "kind": "function", "name": "f"}
    builder.call({**call, "arguments": f'{{"a" : "\\u002f{escaped(value)}", "b":1.50}}',
                  "arguments_kind": "object", "span_start": start,
                  "span_end": text.index(" now"), "origin": "parsed_from_text"})  # fmt: skip
    builder.call({"kind": "code", "name": "python", "arguments_raw": f"print('{result}')",
                  "arguments_kind": "text"})  # fmt: skip
    builder.observation(
        {"text": f"out {value}", "html": f"<p>{value}</p>", "axtree": f"t '{result}'",
         "url": f"https://x.example/{short}", "visible_text": value, "native_call_id": result,
         "structured": json.dumps({"stdout": value}), "error_type": "E",
         "extra": json.dumps({"x": json.dumps({"nested": f"a\n{value}"})})},
        answers=f"call {short}",
    )  # fmt: skip
    builder.link({"kind": "subagent", "step": 1, "target_id": f"elsewhere/{short}",
                  "target_path": f"{short}.json"})  # fmt: skip
    builder.finish()
    builder.keep_raw(json.dumps({"m": json.dumps({"k": f"/\n{value}"})}).encode())


def escaped(value: str) -> str:
    """The inside of a JSON string with every character written as an escape."""
    return "".join(f"\\u{ord(char):04x}" for char in value)


def planted_store(folder: Path, keys: list[tuple[str, str]]) -> Store:
    """A store with every key in every place, a key a trajectory; two shards."""
    builders = [RowBuilder(), RowBuilder()]
    for number, (kind, value) in enumerate(keys, 1):
        fill(builders[number % 2], kind, value, number)
    kind, value = keys[4]
    reject = reject_row(f'{{"k": "{value}'.encode(), f"odd {value}", record=7)
    builders[0].reject({**reject, "seq": 10_001, "path": f"$.{value}"})
    binary = reject_row(b"\xff\xfe " + value.encode() + b" \xff", "binary", record=8)
    builders[0].reject({**binary, "seq": 10_002})
    builders[0].pair({"pair_id": f"p {value}", "chosen_id": f"d/run-{keys[0][1]}",
                      "rejected_id": f"d/run-{value}"})  # fmt: skip
    sources = [
        {"source_file": f"logs/{number}.jsonl", "style": json.dumps({"x": value}), "dataset": "d"}
        for number in range(1, 3)
    ]
    made = write_store(folder, *builders, sources=sources, losses={f"$.{value}: no place": 2})
    made.manifest.lineage.append(Lineage(act="drop", options={"note": f"since {value}"}))
    made.manifest.write(folder)
    return Store.open(str(folder))


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """A store of all keys."""
    return planted_store(tmp_path_factory.mktemp("planted") / "store", KEYS)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Store:
    """A store of a few keys, for what does not depend on the kind of a key."""
    return planted_store(tmp_path_factory.mktemp("planted") / "small", KEYS[:6])


@pytest.fixture(scope="module")
def clean(store: Store, tmp_path_factory) -> Store:
    """The same, redacted."""
    out = tmp_path_factory.mktemp("planted") / "clean"
    redact(store, str(out), OPTIONS)
    return Store.open(str(out))


@pytest.fixture(scope="module")
def table_findings(store: Store) -> Findings:
    """What a search finds in it."""
    return scan(store, OPTIONS)


def test_no_byte_of_a_key_is_left(store, clean):
    before, after = everything(store), everything(clean)
    for _, value in KEYS:
        core = value.split("\n")[1] if "\n" in value else value
        assert core.encode() in before
        assert core.encode() not in after
        assert escaped(core).encode() not in after


def test_a_second_time_finds_nothing_and_changes_nothing(clean, tmp_path):
    again = redact(clean, str(tmp_path / "again"), OPTIONS)
    assert findings_of(again).by_kind.total() == 0
    ours, theirs = hashes(Path(clean.root)), hashes(tmp_path / "again")
    assert {k: v for k, v in ours.items() if k.endswith("parquet")} == {
        k: v for k, v in theirs.items() if k.endswith("parquet")
    }


PLACES = [
    *("trajectories.notes", "trajectories.tags", "trajectories.agent_name", "trajectories.extra"),
    *("trajectories.final_answer", "trajectories.tools", "tasks.instruction", "tasks.answers"),
    *("tasks.tests", "steps.text", "steps.reasoning", "steps.content", "steps.labels"),
    *("steps.usage", "tool_calls.arguments", "tool_calls.arguments_raw", "observations.text"),
    *("observations.html", "observations.axtree", "observations.visible_text", "media.data"),
    *("observations.structured", "observations.extra", "observations.native_call_id", "raw.data"),
]
IDS = [
    *("trajectories.trajectory_id", "trajectories.source_id", "trajectories.task_id"),
    *("trajectories.session_id", "trajectories.losses", "tasks.task_id", "tool_calls.call_id"),
    *("observations.call_id", "observations.url", "links.target_path", "media.uri"),
]
ONCE = [
    *("rejects.data", "rejects.reason", "rejects.path", "pairs.pair_id", "pairs.rejected_id"),
    *("sources.style", "manifest"),
]


def test_every_place_is_searched(table_findings):
    assert (
        table_findings.total == table_findings.by_kind.total() == table_findings.by_column.total()
    )
    assert table_findings.trajectories == len(KEYS)
    missing = {name for name in (*PLACES, *IDS, *ONCE) if not table_findings.by_column[name]}
    assert not missing
    by_place = {(place.kind, place.trajectory_id, place.path.split(".")[-1])
                for place in table_findings.places}  # fmt: skip
    for kind, _ in KEYS:
        for name in PLACES:
            column = name.split(".")[1]
            assert any(k == kind and path == column for k, _, path in by_place), (kind, name)


def test_places_name_what_it_is_and_where_but_never_the_value(table_findings):
    assert sum(place.count for place in table_findings.places) == table_findings.total
    assert Findings.parse(table_findings.plain()) == table_findings
    text = "\n".join([table_findings.text(), json.dumps(table_findings.plain())])
    for _, value in KEYS:
        assert value.split("\n")[-1][5:] not in text or "\n" in value
    place = next(
        item for item in table_findings.places if item.path == "$.steps[1].observations[0].text"
    )
    assert place.trajectory_id is not None
    assert place.trajectory_id.startswith("d/run-[redacted:")
    assert (place.kind, len(place.preview)) == (KEYS[1][0], 4) or place.length > 10


def test_ids_stay_apart_and_join(store, clean):
    old, new = store.scan("trajectories").collect(), clean.scan("trajectories").collect()
    assert new["trajectory_id"].n_unique() == len(KEYS)
    assert new["session_id"].n_unique() == old["session_id"].n_unique()
    assert new["task_id"].n_unique() == old["task_id"].n_unique()
    for table in ("steps", "tool_calls", "observations", "links", "raw", "tasks"):
        pairs = clean.scan(table).select("seq", "trajectory_id").unique().collect()
        joined = pairs.join(new.select("seq", "trajectory_id"), on=["seq", "trajectory_id"])
        assert len(joined) == len(pairs) > 0
    (pair,) = clean.scan("pairs").collect().to_dicts()
    assert pair["rejected_id"] in new["trajectory_id"].to_list()
    assert pair["chosen_id"] in new["trajectory_id"].to_list()
    for trajectory in clean.trajectories():
        assert trajectory.task is not None
        (answer,) = trajectory.steps[1].observations
        assert answer.call_id == trajectory.steps[1].calls[0].call_id


def test_spans_go_with_the_words(store, clean):
    for (kind, value), was, run in zip(
        sorted_by_seq(), store.trajectories(), clean.trajectories(), strict=True
    ):
        word = placeholder(kind)
        step = run.steps[0]
        texts = [part.text for part in resolve(step.content, step.text, step.reasoning)]
        assert [text for text in texts if text] == [
            f"think {word} one", f"first {word}, {word}", "in the middle", f"last {word}.",
        ]  # fmt: skip
        call = run.steps[1].calls[0]
        text = run.steps[1].text
        assert text[call.span_start : call.span_end] == f'<tool>{{"k": "{word}"}}</tool>'
        assert call.arguments == f'{{"a" : "\\u002f{word}", "b":1.50}}'
        assert was.steps[1].text.replace(value, word).replace(flat(value), word) == text


def sorted_by_seq() -> list[tuple[str, str]]:
    """The keys in the order of the store: one shard holds each other one."""
    numbered = list(enumerate(KEYS, 1))
    return [pair for number, pair in numbered if number % 2 == 0] + [
        pair for number, pair in numbered if number % 2
    ]


def test_blobs_are_named_by_what_they_are_now(clean):
    for blob in clean.scan("media").collect().to_dicts():
        data = blob["data"]
        assert blob["media_id"] == digest(data if data is not None else blob["uri"].encode())
        assert data is None or blob["size"] == len(data)


def test_checks_find_nothing_new(store, clean):
    before = {item.check.id: item.findings for item in run_checks(store)[0]}
    after = {item.check.id: item.findings for item in run_checks(clean, verify=True)[0]}
    new = {name for name, count in after.items() if count > before[name]}
    assert new <= {"repeated-source-id"}  # which a conversion of clean records would have too


@settings(max_examples=examples(8))
@given(described=any_store.shards)
def test_a_name_that_is_everywhere_goes_and_all_else_stays(tmp_path_factory, described):
    root = tmp_path_factory.mktemp("any")
    old = any_store.write(root / "old", described, "testerina", file="testerina-")
    redact(old, str(root / "new"), OPTIONS)
    new = Store.open(str(root / "new"))
    assert b"testerina" not in everything(new)
    assert {t: old.manifest.rows(t) for t in TABLES} == {t: new.manifest.rows(t) for t in TABLES}
    before = {item.check.id: item.findings for item in run_checks(old)[0]}
    after = {item.check.id: item.findings for item in run_checks(new, verify=True)[0]}
    assert {name for name, count in after.items() if count > before[name]} == set()
    for trajectory, theirs in zip(new.trajectories(), old.trajectories(), strict=True):
        assert (trajectory.parent_id is None) == (theirs.parent_id is None)
        assert len(trajectory.steps) == len(theirs.steps)
        assert len(trajectory.media) == len(theirs.media)


def test_lineage_counts_and_names_nobody(store, clean, table_findings):
    act = clean.manifest.lineage[-1]
    assert act.act == "redact"
    assert act.options["found"] == dict(sorted(table_findings.by_kind.items()))
    assert len(act.parents) == 1
    text = (Path(clean.root) / "adp.json").read_text()
    assert "testerina" not in text
    assert [item.act for item in clean.manifest.lineage] == ["convert", "drop", "redact"]
    assert clean.manifest.counts == store.manifest.counts


@pytest.mark.slow
def test_the_same_bytes_whatever_the_number_of_workers(small, tmp_path, monkeypatch):
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    for workers in (1, 2):
        redact(small, str(tmp_path / str(workers)), RedactOptions(user=OWN_NAMES, workers=workers))
    result, two = hashes(tmp_path / "1"), hashes(tmp_path / "2")
    result.pop("run.json", None)
    two.pop("run.json", None)
    assert result == two
    many = scan(small, RedactOptions(user=OWN_NAMES, places=50, workers=2))
    assert len(many.places) == 50
    assert many == scan(small, RedactOptions(user=OWN_NAMES, places=50, workers=1))
    few = scan(small, RedactOptions(user=OWN_NAMES, places=3, workers=1))
    assert (few.total, len(few.places)) == (many.total, 3)
