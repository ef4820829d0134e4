from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adp.converters.export import export
from adp.converters.run import ConvertOptions, convert
from adp.converters.text_calls.store import ParseOptions, parse
from adp.stores.shards import open_finished
from adp_schema.errors import UsageError
from adp_schema.store import Store
from adp_schema.tables import TABLES

PROMPT = "Use this form.\nThought: why\nAction: name\nAction Input: JSON"


def run(number: int) -> dict[str, Any]:
    turns = [("system", PROMPT), ("user", f"task {number}")]
    for turn in range(number % 4):
        act = f'Thought: look {turn}\nAction: search\nAction Input: {{"q": "{number}"}}'
        turns += [("assistant", act), ("user", f"Observation: result {turn}")]
    turns.append(("assistant", "Thought: done\nFinal Answer: it is so"))
    return {"messages": [{"role": role, "content": text} for role, text in turns], "id": number}


def talk(number: int) -> dict[str, Any]:
    turns = [("user", "how do agents act?"), ("assistant", f"They write Action: {number}.")]
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, make in (("runs", run), ("talk", talk)):
        lines = [json.dumps(make(number)) for number in range(30)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def rows(store: Store) -> dict[str, list[dict[str, Any]]]:
    return {
        name: store.scan(name).collect().sort("seq").to_dicts()
        for name in TABLES
        if name not in ("sources", "media", "tasks", "pairs") and store.files(name)
    }


def test_a_parsed_store_is_what_a_conversion_makes(inputs: Path, tmp_path: Path) -> None:
    convert([str(inputs)], str(tmp_path / "direct"))
    convert([str(inputs)], str(tmp_path / "plain"), options=ConvertOptions(dialect="none"))
    plain = open_finished(str(tmp_path / "plain"))
    manifest = parse(plain, str(tmp_path / "parsed"))
    direct = open_finished(str(tmp_path / "direct"))
    parsed = open_finished(str(tmp_path / "parsed"))
    assert manifest.parsed["react: calls"] == sum(number % 4 for number in range(30))
    assert manifest.parsed == direct.manifest.parsed
    assert not plain.manifest.parsed
    assert rows(parsed) == rows(direct)
    assert rows(parsed) != rows(plain)
    assert manifest.lineage[-1].options == {"dialects": {"react": 1}}
    for name in ("direct", "plain", "parsed"):
        store = open_finished(str(tmp_path / name))
        export(store, "openai_chat", str(tmp_path / f"{name}_out"))
        for file in ("runs.jsonl", "talk.jsonl"):
            written = next((tmp_path / f"{name}_out").rglob(file)).read_bytes()
            assert written == (inputs / file).read_bytes()


def test_parsing_again_changes_nothing(inputs: Path, tmp_path: Path) -> None:
    convert([str(inputs)], str(tmp_path / "direct"))
    direct = open_finished(str(tmp_path / "direct"))
    parse(direct, str(tmp_path / "again"), options=ParseOptions(dialect="react"))
    assert rows(open_finished(str(tmp_path / "again"))) == rows(direct)


def test_a_store_without_actions_says_so(inputs: Path, tmp_path: Path) -> None:
    convert([str(inputs / "talk.jsonl")], str(tmp_path / "talk"))
    with pytest.raises(UsageError, match="name one: --dialect NAME"):
        parse(open_finished(str(tmp_path / "talk")), str(tmp_path / "parsed"))


def test_none_is_no_dialect_to_parse_with(inputs: Path, tmp_path: Path) -> None:
    convert([str(inputs)], str(tmp_path / "direct"))
    with pytest.raises(UsageError, match="would leave every text as it is; name a dialect"):
        parse(
            open_finished(str(tmp_path / "direct")),
            str(tmp_path / "parsed"),
            options=ParseOptions(dialect="none"),
        )


def test_an_unknown_dialect_is_refused(inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean react"):
        convert([str(inputs)], str(tmp_path / "out"), options=ConvertOptions(dialect="reakt"))
