"""What --json prints: one object with the keys of its page."""

import json
import re
from pathlib import Path

import pytest
import typer

import adp
from adp.cli.commands import command_table
from adp.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "json-output.md"
ROWS = dict(re.findall(r"^\| `(adp [^`]*)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE))
RECIPE = {"recipe": 1, "inputs": {"a": "st"}, "ops": [{"filter": {"sql": "success"}}]}
LOOP = {
    "loop": 1,
    "model": "none",
    "rounds": {"repeat": 1, "stages": [{"score": {"store": "st", "with": ["outcome"]}}]},
}


def keys_of(call):
    """Keys that the page names: those always there, all of them, and whether there are more."""
    text = ROWS[call].partition("; ")[0].replace("of a format: ", "")
    if "those of" in text:
        base, _, more = keys_of("adp convert")
        text = text.partition(",")[2]
    else:
        base, more = set(), "..." in text
    named = re.findall(r"`(\w+)`(\?)?", text)
    needed = base | {name for name, maybe in named if not maybe}
    return needed, needed | {name for name, _ in named}, more


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = {"id": "a", "messages": [{"role": "user", "content": "hi"}], "success": True}
    Path("chat.jsonl").write_text(json.dumps(line) + "\n")
    Path("recipe.yaml").write_text(json.dumps(RECIPE))
    Path("loop.yaml").write_text(json.dumps(LOOP))
    adp.convert("chat.jsonl", "st")
    adp.convert("chat.jsonl", "other", dataset="other")
    adp.grow("growing").close()
    return tmp_path


CALLS = [
    ("adp convert", ["convert", "chat.jsonl", "-o", "new"]),
    ("adp parse", ["parse", "st", "-o", "new", "--dialect", "react"]),
    ("adp merge", ["merge", "st", "other", "-o", "new"]),
    ("adp drop", ["drop", "st", "--where", "false", "-o", "new"]),
    ("adp drop --dry-run", ["drop", "st", "--where", "false", "--dry-run"]),
    ("adp seal", ["seal", "growing"]),
    ("adp export", ["export", "st", "--to", "openai_chat", "-o", "new"]),
    ("adp formats", ["formats"]),
    ("adp formats --dialects", ["formats", "--dialects"]),
    ("adp rejects", ["rejects", "st"]),
    ("adp curate --explain", ["curate", "recipe.yaml", "--explain"]),
    ("adp why", ["why", "st", "a"]),
    ("adp doctor", ["doctor", "chat.jsonl"]),
    ("adp info", ["info", "st"]),
    ("adp head", ["head", "st"]),
    ("adp sample", ["sample", "st"]),
    ("adp show", ["show", "st", "a"]),
    ("adp stats", ["stats", "st"]),
    ("adp query", ["query", "st", "-c", "SELECT 1 AS one, 'x' AS two"]),
    ("adp search", ["search", "st", "hi"]),
    ("adp redact --list", ["redact", "--list"]),
    ("adp validate --list", ["validate", "--list"]),
    ("adp score --list", ["score", "--list"]),
    ("adp eval --list", ["eval", "--list"]),
    ("adp loop --dry-run", ["loop", "loop.yaml", "--dry-run"]),
    ("adp loop --list", ["loop", "--list"]),
    ("adp loop", ["loop", "loop.yaml", "-o", "new"]),
    ("adp collect --list", ["collect", "--list"]),
    ("adp evolve --list", ["evolve", "--list"]),
]

SLOW = [
    ("adp redact", ["redact", "st", "-o", "new"]),
    ("adp redact --dry-run", ["redact", "st", "--dry-run"]),
    ("adp curate", ["curate", "recipe.yaml", "--dry-run", "--set", "ops=[]"]),
    ("adp diff", ["diff", "st", "other"]),
    ("adp validate", ["validate", "st", "--fail-on", "never"]),
    ("adp report data", ["report", "data", "st"]),
    ("adp collect", ["collect", "-e", "toolworld", "-p", "expert", "-t", "test:1", "-o", "new"]),
    ("adp eval", ["eval", "--suite", "toolworld", "-p", "expert", "--limit", "1", "-o", "new"]),
    ("adp report eval", ["report", "eval", "st"]),
    ("adp score", ["score", "st", "--with", "outcome"]),
    ("adp publish", ["publish", "st", "a/b", "--dry-run", "--out", "new", "--license", "mit",
                     "--redact"]),
]  # fmt: skip


def check(call, words, run):
    done = run(*words, "--json")
    assert done.code == 0, done.err
    value = json.loads(done.out)
    needed, known, more = keys_of(call)
    assert isinstance(value, dict)
    assert needed <= set(value)
    assert more or set(value) <= known


def test_every_call_prints_one_object_with_the_keys_of_the_page(folder, run):
    for number, (call, words) in enumerate(CALLS):
        check(call, [f"new{number}" if word == "new" else word for word in words], run)


def test_a_pushed_model(fake_hub, folder, run):
    made = Path("trained", "model")
    made.mkdir(parents=True)
    (made / "config.json").write_text("{}")
    (made / "model.safetensors").write_bytes(b"weights")
    (made / "README.md").write_text("# A model\n")
    check("adp push-model", ["push-model", "trained", "me/agent"], run)
    assert fake_hub.repos.files("models/me/agent")["model.safetensors"] == b"weights"


@pytest.mark.slow
@pytest.mark.parametrize(("call", "words"), SLOW, ids=[call for call, _ in SLOW])
def test_every_longer_call_does_too(call, words, folder, run):
    check(call, words, run)


def test_query_gives_columns_and_rows(folder, run):
    done = run("query", "st", "--json", "-c", "SELECT seq, dataset FROM trajectories")
    assert json.loads(done.out) == {
        "columns": {"seq": "int64", "dataset": "string"},
        "rows": [{"seq": 0, "dataset": "chat"}],
        "count": 1,
    }
    for words in ([], ["-c", "SELECT 1", "--format", "csv"], ["-c", "SELECT 1", "-o", "a.json"]):
        assert run("query", "st", "--json", *words).code == 2


def options_of(command):
    return {option for param in command.params for option in param.opts}


def test_the_page_has_a_row_for_every_command_that_takes_json():
    group = typer.main.get_command(app)
    taking = set()
    for name in command_table():
        command = group.get_command(None, name)
        for part, path in [
            (command, f"adp {name}"),
            *(
                (sub, f"adp {name} {word}")
                for word, sub in getattr(command, "commands", {}).items()
            ),
        ]:
            if any("--json" in param.opts for param in part.params):
                taking.add("adp train" if path.startswith("adp train") else path)
    assert taking <= set(ROWS)
    assert {re.sub(r" --.*", "", call) for call in ROWS} == taking
