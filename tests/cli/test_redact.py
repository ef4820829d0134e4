from __future__ import annotations

import json
from pathlib import Path

import pytest

from adp.converters.run import ConvertOptions, convert
from adp_schema.store import Store
from tests.stores.redact import planted

KIND, KEY = planted.plain("cli")[4]


@pytest.fixture(scope="module")
def leaky(tmp_path_factory) -> str:
    """A store with a key, an address, and the name of the one who calls, in two chats."""
    folder = tmp_path_factory.mktemp("leaky")
    chats = [
        {"id": "booking-1", "messages": [
            {"role": "user", "content": f"use {KEY}"},
            {"role": "assistant", "content": "in /home/testerina/x, by testerina"}]},
        {"id": "booking-2", "messages": [{"role": "user", "content": "I am ada@analytical.io"}]},
    ]  # fmt: skip
    lines = "".join(json.dumps(chat) + "\n" for chat in chats)
    (folder / "x.jsonl").write_text(lines)
    convert(
        [str(folder / "x.jsonl")], str(folder / "store"), options=ConvertOptions(dataset="chat")
    )
    return str(folder / "store")


@pytest.fixture(autouse=True)
def somebody(monkeypatch) -> None:
    """Who calls the command."""
    monkeypatch.setenv("HOME", "/home/testerina")
    monkeypatch.setenv("USER", "testerina")


def test_dry_run_names_places_and_writes_nothing(run, leaky, tmp_path):
    done = run("redact", leaky, "--dry-run")
    assert done.code == 0
    assert "4 values would be replaced in 2 trajectories" in done.out
    assert f"{KIND}  chat/booking-1 $.steps[0].text  ghp_... (40 characters)" in done.out
    assert "own-home  chat/booking-1 $.steps[1].text" in done.out
    assert KEY not in done.out + done.err
    answer = json.loads(run("redact", leaky, "--dry-run", "--json", "-o", tmp_path / "n").out)
    assert answer["redact"]["by_kind"] == {KIND: 1, "email": 1, "own-home": 1, "own-name": 1}
    assert not (tmp_path / "n").exists()


def test_a_script_can_stop(run, leaky):
    done = run("redact", leaky, "--dry-run", "--fail-on-findings", "--kinds", "secrets")
    assert done.code == 8
    last = done.err.splitlines()[-1]
    assert f"1 value to redact ({KIND} 1); the first: {KIND} chat/booking-1" in last
    assert KEY not in last
    done = run("redact", leaky, "--dry-run", "--fail-on-findings", "--kinds", "us-ssn,iban")
    assert (done.code, done.out) == (0, "nothing was found\n")


def test_no_byte_is_left(run, leaky, tmp_path):
    done = run("redact", leaky, "-o", tmp_path / "new")
    assert done.code == 0
    assert "4 values replaced" in done.out
    files = [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
    for path in files:
        if path.name != "run.json":
            data = path.read_bytes()
            for word in (KEY, "testerina", "ada@analytical.io"):
                assert word.encode() not in data, path
    first = next(iter(Store.open(str(tmp_path / "new")).trajectories()))
    assert first.steps[0].text == f"use [redacted:{KIND}]"
    assert first.steps[1].text == "in [redacted:own-home]/x, by [redacted:own-name]"
    assert run("info", tmp_path / "new", "--verify").code == 0
    assert run("redact", tmp_path / "new", "--dry-run").out == "nothing was found\n"
    assert Path(leaky, "adp.json").exists()


def test_json_and_options(run, leaky, tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text('[{"name": "booking", "regex": "booking-[0-9]"}]')
    words = (
        "--kinds=-email",
        "--kinds=-own,-home-folder",
        "--rules",
        rules,
        "--json",
        "-o",
        tmp_path / "new",
    )
    answer = json.loads(run("redact", leaky, *words).out)
    assert answer["redact"]["by_kind"] == {"booking": 4, KIND: 1}
    assert answer["counts"]["trajectories"] == 2
    ids = [
        trajectory.trajectory_id for trajectory in Store.open(str(tmp_path / "new")).trajectories()
    ]
    assert ids == ["chat/[redacted:booking]", "chat/[redacted:booking]#2"]


def test_list(run):
    done = run("redact", "--list")
    assert done.code == 0
    assert "github-token" in done.out
    rows = json.loads(run("redact", "--list", "--json").out)["kinds"]
    assert {
        name: value for row in rows if row["kind"] == "ip-address"
        for name, value in row.items() if name != "what"
    } == {"kind": "ip-address", "group": "personal", "default": False}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "name a store"),
        (["STORE"], 2, "say where the new store goes"),
        (["STORE", "--dry-run", "--kinds", "emails"], 2, "did you mean email"),
        (["STORE", "--dry-run", "--rules", "NEW"], 3, "cannot read"),
        (["NEW", "--dry-run"], 5, "is not a store"),
        (["STORE", "-o", "STORE"], 5, "holds a store already"),
    ],
)
def test_wrong_calls(run, leaky, tmp_path, words, code, message):
    places = {"NEW": str(tmp_path / "new"), "STORE": leaky}
    done = run("redact", *[places.get(word, word) for word in words])
    assert done.code == code
    assert message in done.err.splitlines()[-1]


def test_the_same_in_one_place_is_listed_once(run, tmp_path):
    ada = "ada@analytical.io"
    chat = {"id": "x", "messages": [
        {"role": "user", "content": f"{ada} or {ada} or {ada}"},
        {"role": "assistant", "content": f"{ada}"}]}  # fmt: skip
    (tmp_path / "x.jsonl").write_text(json.dumps(chat))
    convert([str(tmp_path / "x.jsonl")], str(tmp_path / "s"))
    done = run("redact", tmp_path / "s", "--dry-run")
    shown = [line.split("  ")[-1] for line in done.out.splitlines() if line.startswith("  email")]
    assert shown == ["ada@... (17 characters) (3 times)", "ada@... (17 characters)"]
    assert "more" not in done.out
    answer = json.loads(run("redact", tmp_path / "s", "--dry-run", "--json").out)["redact"]
    assert [place["count"] for place in answer["places"]] == [3, 1]
    assert answer["total"] == 4
    done = run("redact", tmp_path / "s", "--dry-run", "--places", 1)
    assert "  and 1 more\n" in done.out
