"""The op as a whole: groups, tokenizers, signs of cheating, and what must not matter."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from adp.curation.apply import apply
from adp.curation.ops.measure import OP, Measure, sizes
from adp.curation.ops.measure.columns import COLUMNS, GROUPS, STEP_COLUMNS
from adp.curation.ops.measure.loops import similar
from adp_schema.errors import MissingExtraError, RecipeError
from tests.curation.ops.acted import agent, call, result, user, write


def shell(command, *answers, **columns):
    return agent("so", call("bash", json.dumps({"command": command}), *answers), **columns)


def edit(command, path, name="str_replace_editor"):
    return agent("so", call(name, json.dumps({"command": command, "path": path})))


def signs(tmp_path, *steps, **columns):
    store = write(tmp_path / "s", [{"steps": [user(), *steps], **columns}])
    outcome = apply("measure", store, only=["cheats"], workers=1)
    row = outcome.columns.drop("seq").row(0, named=True)
    return {name for name, value in row.items() if value}, outcome.events.to_dicts()


# ---- groups and columns ------------------------------------------------------------------------


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_alone_gives_its_columns(tmp_path, group):
    store = write(tmp_path / "s", [{"steps": [user(), shell("ls", result("a"))]}, {"steps": []}])
    outcome = apply("measure", store, only=[group], workers=1)
    options = Measure(only=[group])
    assert outcome.columns.columns == ["seq", *COLUMNS.get(group, {})]
    assert list(OP.columns(options)) == list(COLUMNS.get(group, {}))
    assert outcome.columns.height == 2
    if group == "steps":
        assert outcome.step_columns.columns == ["seq", "step", *STEP_COLUMNS]
        assert outcome.step_columns["step"].to_list() == [1]
    else:
        assert outcome.step_columns is None
    assert (outcome.events is None) == (group != "cheats")


def test_all_columns_are_described():
    names = [name for group in COLUMNS.values() for name in group]
    assert len(names) == len(set(names))
    assert all(text.endswith(".") for text in [*STEP_COLUMNS.values()])
    assert all(text.endswith(".") for group in COLUMNS.values() for text in group.values())


def test_an_unknown_group_is_told(tmp_path):
    store = write(tmp_path / "s", [{"steps": []}])
    with pytest.raises(RecipeError, match="no group 'size'; the groups are sizes, errors"):
        apply("measure", store, only=["size"], workers=1)


def test_nothing_known_is_null_and_not_a_number(tmp_path):
    run = {"steps": [user(), shell("ls", result("Error: no"))]}
    outcome = apply("measure", write(tmp_path / "s", [run]), workers=1)
    row = outcome.columns.row(0, named=True)
    assert row["error_rate"] is None
    assert row["run_truncated"] is None
    assert row["likely_errors"] == 1
    assert "nothing says whether a result is an error" in outcome.lines[1]


# ---- what must not matter ----------------------------------------------------------------------


def busy_runs(count):
    return [
        {
            "steps": [
                user(f"do {number}"),
                *[shell(f"git log --all {number % 3}", result(f"Error: {number} {item}"))
                  for item in range(number % 5)],
                agent("done"),
            ]
        }
        for number in range(count)
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shards", [2, 3])
def test_the_outcome_does_not_depend_on_the_cut(tmp_path, monkeypatch, shards):
    whole = apply("measure", write(tmp_path / "a", busy_runs(23)), workers=1)
    monkeypatch.setattr("adp.curation.partitions.PARTITION_BYTES", 3_000)
    cut = apply("measure", write(tmp_path / "b", busy_runs(23), shards), workers=1)
    assert whole.summary == cut.summary
    assert_frame_equal(whole.columns, cut.columns)
    assert_frame_equal(whole.step_columns, cut.step_columns)
    assert_frame_equal(whole.events, cut.events)


@pytest.mark.slow
def test_processes_do_not_matter(tmp_path, monkeypatch):
    store = write(tmp_path / "a", busy_runs(9))
    alone = apply("measure", store, workers=1)
    monkeypatch.setattr("adp.curation.partitions.PARTITION_BYTES", 3_000)
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    assert_frame_equal(alone.columns, apply("measure", store, workers=2).columns)


# ---- tokens ------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(st.text(), max_size=12), st.integers(1, 5))
def test_the_estimate_does_not_depend_on_the_batches(texts, size):
    whole = sizes.estimate_tokens(pl.Series(texts, dtype=pl.String))
    parts = [
        sizes.estimate_tokens(pl.Series(texts[start : start + size], dtype=pl.String))
        for start in range(0, len(texts), size)
    ]
    assert whole.tolist() == [value for part in parts for value in part.tolist()]


def test_the_estimate_is_near_a_real_count():
    # Lengths by a tokenizer with 131,000 entries.
    counts = {
        "Мы должны сначала посмотреть содержимое файла.": 12,
        "まずファイルの内容を確認してから修正します。": 14,
    }
    estimates = sizes.estimate_tokens(pl.Series(list(counts)))
    for estimate, count in zip(estimates, counts.values(), strict=True):
        assert 0.6 < estimate / count < 1.7


needs_tokenizers = pytest.mark.skipif(
    importlib.util.find_spec("tokenizers") is None, reason="needs the package tokenizers"
)


@needs_tokenizers
def test_a_tokenizer_counts(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {"[U]": 0, "do": 1, "it": 2, "[S]": 3}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[U]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("[S] $A", special_tokens=[("[S]", 3)])
    (tmp_path / "t").mkdir()
    tokenizer.save(str(tmp_path / "t" / "tokenizer.json"))
    run = {
        "steps": [user("do it"), agent("a b c", call("f", "{}", result("x y")), reasoning="m n")]
    }
    store = write(tmp_path / "s", [run])
    for path in (tmp_path / "t", tmp_path / "t" / "tokenizer.json"):
        columns = apply("measure", store, only=["sizes"], tokenizer=str(path), workers=1).columns
        assert columns["tokens"].to_list() == [2 + 3 + 2 + 2 + 2]  # "f", "{}" are two words
        assert columns["tokens_trained"].to_list() == [3 + 2 + 2]
    (tmp_path / "bad.json").write_text("{}")
    for path, output in ((tmp_path / "bad.json", "cannot read"), (tmp_path / "no", "finds no")):
        with pytest.raises(RecipeError, match=output):
            apply("measure", store, tokenizer=str(path), workers=1)


def test_a_missing_tokenizer_package_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    sizes.load_tokenizer.cache_clear()
    with pytest.raises(MissingExtraError, match=r"pip install 'adp\[tokenizers\]'"):
        apply("measure", write(tmp_path / "s", [{"steps": []}]), tokenizer="x", workers=1)


# ---- retries -----------------------------------------------------------------------------------


def test_nearly_the_same_arguments():
    assert similar(b'{"command":"ls"}', b'{"command":"ls -la"}')
    assert similar("cat a.py", "cat a.py")
    assert not similar(b'{"command":"ls"}', b'{"path":"/etc/passwd"}')
    assert not similar("", "x")


# ---- signs of cheating -------------------------------------------------------------------------


def test_spans_are_noted_with_their_step(tmp_path):
    entry, events = signs(tmp_path, shell("ls"), shell("cd r && git log --all | head", result("x")))
    assert entry == {"cheat_git_history"}
    (event,) = events
    assert (event["step"], event["verdict"], event["reason"]) == (2, "flagged", "cheat git history")
    assert json.loads(event["evidence"]) == {"call": 0, "tool": "bash", "span": "git log --all"}


def test_at_most_five_spans_of_a_sign_are_noted(tmp_path):
    _, events = signs(tmp_path, *[shell(f"git fetch {number}") for number in range(9)])
    assert len(events) == 5


def test_an_edit_of_a_test_is_a_sign_but_not_of_one_that_the_run_made(tmp_path):
    assert signs(tmp_path / "a", edit("str_replace", "/testbed/tests/test_a.py"))[0] == {
        "cheat_edited_tests"
    }
    assert not signs(tmp_path / "b", edit("view", "/testbed/tests/test_a.py"))[0]
    ours = [edit("create", "/testbed/test_mine.py"), edit("str_replace", "/testbed/test_mine.py")]
    assert not signs(tmp_path / "c", *ours)[0]
    assert not signs(
        tmp_path / "d", shell("cat > test_mine.py <<E\nx\nE"), shell("rm test_mine.py")
    )[0]
    assert signs(tmp_path / "e", edit(None, "tests/test_a.py", name="Edit"))[0]
    assert not signs(tmp_path / "f", edit("str_replace", "/testbed/src/latest.py"))[0]


def test_the_package_of_the_task_is_read_from_its_id(tmp_path):
    step = shell("pip install --no-deps flask==3.1 --target /tmp/x")
    assert not signs(tmp_path / "a", step)[0]
    assert signs(tmp_path / "b", step, task_id="pallets__flask-5014")[0] == {"cheat_got_package"}
    assert not signs(tmp_path / "c", shell("pip install -e ."), task_id="pallets__flask-5014")[0]
    assert not signs(
        tmp_path / "d", shell("pip install flask-login"), task_id="pallets__flask-5014"
    )[0]


@pytest.mark.parametrize(
    "columns",
    [
        {
            "arguments": None,
            "arguments_raw": "git log --all",
            "arguments_kind": "text",
            "kind": "code",
        },
        {"arguments": '{"cmd": ["bash", "-lc", "git log --all"]}'},
        {"arguments": '{"a": {"b": [{"c": "x\\ngit log --all"}]}}'},
        {"arguments": '"git log --all"'},
    ],
)
def test_commands_are_found_in_any_form_of_arguments(tmp_path, columns):
    results = {"kind": "function", "name": "run", "results": [], **columns}
    assert signs(tmp_path, agent("so", results))[0] == {"cheat_git_history"}


def test_words_of_the_agent_are_no_call(tmp_path):
    assert not signs(tmp_path, agent("I could run git log --all."), user("git fetch"))[0]


# ---- real samples ------------------------------------------------------------------------------

DATA = Path(__file__).parents[5] / "shared" / "data"
M3 = DATA / "m3" / "bird-dev-old" / "dpo_agent_informed_assist"


@pytest.mark.skipif(not M3.exists(), reason="needs the shared samples of M3")
def test_errors_of_m3_are_those_that_its_rewards_name(tmp_path):
    from adp.converters.run import ConvertOptions, convert

    convert([str(M3)], str(tmp_path / "s"), options=ConvertOptions(format="m3", workers=1))
    store = str(tmp_path / "s")
    outcome = apply("measure", store, workers=1)
    columns = apply(
        "annotate",
        store,
        sql="SELECT seq, count(*) FILTER (list_contains(labels, 'REWARD_BAD_TOOL_CALL') OR "
        "list_contains(labels, 'REWARD_PARSING_ERROR') OR "
        "list_contains(labels, 'REWARD_ERROR_NO_CATEGORY')) AS wrong FROM steps SEMI JOIN members "
        "USING (seq) WHERE source = 'agent' GROUP BY seq",
    ).columns
    both = outcome.columns.join(columns, on="seq")
    assert both["wrong"].sum() > 0
    assert both["n_errors"].to_list() == both["wrong"].to_list()


def test_a_part_of_an_array_is_estimated():
    sliced = pl.from_arrow(pa.array(["zz", "ab", "", "1", "yy"]).slice(1, 3))
    assert sizes.estimate_tokens(sliced).tolist() == [2 * 0.15 + 0.7, 0.7, 1.3 + 0.7]
