"""Rows of pairs and of KTO: exact tokens, one prompt, and nothing but the own steps in the loss."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.core.progress import Silent
from adp.rendering.chat import PairChats
from adp.rendering.options import RenderOptions
from adp.rendering.pairs import BadPair, pairs_of
from adp.rendering.render import Renderer
from adp.trainers import dpo, kto
from adp.trainers.config import TrainConfig
from adp.trainers.kto_rows import rotate
from adp.trainers.preference_rows import TOO_LONG, PairCounts, PairRenderer, PairRow
from adp.trainers.rows import read_arrow
from adp_schema.errors import EmptyResultError, UsageError
from tests.effort import examples
from tests.trainers.pair_stores import call, run, say, sides, write_pairs

RESULT = "RESULT"
"""Stands in every result of a tool, and in no other text."""


def renderer(**options: Any) -> Renderer:
    return Renderer.load("tiny", RenderOptions.model_validate(options))


@pytest.fixture(scope="module")
def tiny() -> Renderer:
    return renderer()


def rows_of(store: Any, renderer: Renderer) -> tuple[list[PairRow], PairCounts]:
    maker, tally = PairRenderer(renderer), PairCounts()
    results = [maker.row(pair, tally) for pair in good_pairs(store)]
    return [row for row in results if row is not None], tally


def good_pairs(store: Any) -> list[PairChats]:
    return [pair for pair in pairs_of(store) if not isinstance(pair, BadPair)]


def trained(renderer: Renderer, side: Any) -> str:
    return renderer.tokenizer.decode(side.ids[side.mask])


def own_text(step: dict[str, Any]) -> str:
    """A step as the tiny template writes it, with its end of turn: the oracle of the mask."""
    words = step["text"]
    if "query" in step:
        words += "\n" if words else ""
        words += f'<tool_call>{{"name": "search", "arguments": {{"query": "{step["query"]}"}}}}'
        words += "</tool_call>"
    return words + "<|im_end|>"


words = st.text("abc xyz.", min_size=1, max_size=12).map(lambda text: text.strip() or "a")
steps = st.one_of(
    st.builds(say, words),
    st.builds(lambda query, text: call(query, f"{RESULT} of {query}", text), words, words),
    st.builds(lambda query: call(query, f"{RESULT} of {query}"), words),
)


@settings(max_examples=examples(50), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    shared=st.lists(steps, max_size=3),
    chosen=st.lists(steps, min_size=1, max_size=3),
    rejected=st.lists(steps, min_size=1, max_size=3),
    bare=st.sets(st.integers(0, 5)),
)
def test_exactly_the_own_steps_are_in_the_loss(
    tiny, tmp_path_factory, shared, chosen, rejected, bare
):
    weighted = [
        {**step, "columns": {"loss_weight": 0.0}} if number in bare else step
        for number, step in enumerate([*chosen, *rejected])
    ]
    chosen, rejected = weighted[: len(chosen)], weighted[len(chosen) :]
    runs = [run("good", "do it", shared + chosen), run("bad", "do it", shared + rejected)]
    pair = sides("good", "bad", 1 + len(shared))
    store = write_pairs(tmp_path_factory.mktemp("s"), runs, [pair])
    rows, tally = rows_of(store, tiny)
    if not rows:
        assert tally.left_out or not good_pairs(store)
        return
    (row,) = rows
    for side, ours in ((row.chosen, chosen), (row.rejected, rejected)):
        expected = "".join(own_text(step) for step in ours if not step["columns"])
        assert trained(tiny, side) == expected
        assert RESULT not in trained(tiny, side)
    # The prompt and the side are the render of the whole chat up to its last trained step.
    chats = good_pairs(store)[0]
    for side, chat in ((row.chosen, chats.chosen), (row.rejected, chats.rejected)):
        (whole,) = tiny.chat(chat).rows
        assert [*row.prompt, *side.ids] == whole.input_ids.tolist()
    assert not tally.notes


def test_a_pair_of_which_one_side_is_masked_gives_no_row(tiny, tmp_path):
    masked = say("no", loss_weight=0.0)
    runs = [run("good", "do it", [say("yes")]), run("bad", "do it", [masked])]
    store = write_pairs(tmp_path / "s", runs, [sides("good", "bad")])
    config = TrainConfig.model_validate({"method": "dpo", "data": str(tmp_path / "s")})
    with pytest.raises(EmptyResultError, match="the rejected side has no step that is trained: 1"):
        dpo.METHOD.prepare(config, tmp_path, Silent())
    assert store.manifest.rows("pairs") == 1


def test_a_step_against_its_alternate(tiny, tmp_path):
    first, taken, other = call("one", RESULT), call("bad", RESULT), call("good", RESULT)
    branch = {
        "parent_id": "d/run",
        "parent_step": 2,
        "branch_kind": "alternate",
        # Branches do not repeat what their parent was offered.
        "tools": None,
    }
    runs = [run("run", "do it", [first, taken]), run("run/alternate", "", [other], **branch)]
    pair = sides("run/alternate", "run", 2, chosen_to=3, rejected_to=3, level="step")
    store = write_pairs(tmp_path / "s", runs, [pair])
    (row,), tally = rows_of(store, tiny)
    assert trained(tiny, row.chosen) == own_text(other)
    assert trained(tiny, row.rejected) == own_text(taken)
    assert not tally.left_out
    assert '"description": "search for a query"' in tiny.tokenizer.decode(row.prompt)


def m3_label(*names: str) -> dict[str, Any]:
    return {"labels": [f"REWARD_{name}" for name in names]}


def test_masks_of_suboptimal_steps_hold_on_both_sides(tiny, tmp_path):
    good, bad = m3_label("SUCCESS_TOOL_CALL"), m3_label("BAD_TOOL_CALL")
    chosen = [call("one", RESULT, **good), call("two", RESULT, **bad), say("three", **good)]
    rejected = [call("four", RESULT, **good), call("five", RESULT, **bad)]
    runs = [run("good", "do it", chosen), run("bad", "do it", rejected)]
    masks = {"chosen_mask": "suboptimal", "rejected_mask": "suboptimal"}
    store = write_pairs(tmp_path / "s", runs, [sides("good", "bad", **masks)])
    (row,), _ = rows_of(store, tiny)
    # M3's mask_suboptimal_traces: only good steps are chosen, and only bad ones rejected.
    assert trained(tiny, row.chosen) == own_text(chosen[0]) + own_text(chosen[2])
    assert trained(tiny, row.rejected) == own_text(rejected[1])


def long_pair(tmp_path: Any, count: int) -> Any:
    shared = [call(f"query {n}", f"{RESULT} {n} " + "word " * 10) for n in range(count)]
    runs = [
        run("good", "the task", [*shared, say("right")]),
        run("bad", "the task", [*shared, say("wrong")]),
    ]
    return write_pairs(tmp_path / "s", runs, [sides("good", "bad", 1 + count)])


@pytest.mark.parametrize("limit", [280, 400, 640])
def test_long_prompts_lose_whole_steps_after_the_task(tmp_path, limit):
    store = long_pair(tmp_path, 8)
    (whole,), _ = rows_of(store, renderer())
    kept = renderer(max_length=limit, window="keep_ends")
    (row,), tally = rows_of(store, kept)
    assert tally.notes == Counter({"pairs whose prompt was cut": 1})
    assert max(len(row.prompt) + len(side.ids) for side in (row.chosen, row.rejected)) <= limit
    assert trained(kept, row.chosen) == trained(kept, whole.chosen)
    assert trained(kept, row.rejected) == trained(kept, whole.rejected)
    text = kept.tokenizer.decode(row.prompt)
    full = kept.tokenizer.decode(whole.prompt)
    head = full[: full.index("<|im_start|>assistant")]
    assert text.startswith(head)
    tail = text[len(head) :]
    assert full.endswith(tail)
    assert tail.count("<tool_call>{") == tail.count(RESULT)
    # One more step would not fit.
    one_more = full[full[: -len(tail)].rindex("<|im_start|>assistant") :]
    assert len(kept.tokenizer(head + one_more)["input_ids"]) + len(row.chosen.ids) > limit


def test_long_pairs_are_left_out_and_counted(tmp_path):
    store = long_pair(tmp_path, 8)
    rows, tally = rows_of(store, renderer(max_length=280))
    assert not rows
    assert tally.left_out == Counter({TOO_LONG: 1})
    rows, tally = rows_of(store, renderer(max_length=64, window="keep_ends"))
    assert not rows
    assert tally.left_out == Counter({TOO_LONG: 1})


def test_windows_that_would_cut_an_answer_are_refused():
    with pytest.raises(UsageError, match="cuts the answers that a pair compares"):
        PairRenderer(renderer(max_length=64, window="sliding"))


def test_a_template_that_rewrites_history_is_reported(tiny, tmp_path):
    # Reasoning is written only while no message of the user follows, so the two sides do not
    # begin alike, and earlier steps of a side are not what the model would have written.
    template = (
        "{% for m in messages %}[{{ m.role }}]"
        "{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>"
        "{% endif %}{{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    thinking = renderer(chat_template=template)
    ask = say("and now?", source="user")
    chosen = [say("one", reasoning="hm"), ask, say("two", reasoning="hm")]
    runs = [run("good", "do it", chosen), run("bad", "do it", [say("no")])]
    store = write_pairs(tmp_path / "s", runs, [sides("good", "bad")])
    rows, tally = rows_of(store, thinking)
    assert [trained(thinking, row.chosen) for row in rows] == ["<think>hm</think>two<|im_end|>"]
    assert tally.notes["steps of a chosen side that are not trained"] == 1


# ---- files -----------------------------------------------------------------------------------


def config(tmp_path: Any, method: str, **values: Any) -> TrainConfig:
    data = {"store": str(tmp_path / "s"), **values.pop("data", {})}
    return TrainConfig.model_validate({"method": method, "data": data, **values})


def rated(count: int) -> list[dict[str, Any]]:
    return [
        run(f"r{n}", f"ask {n}", [call(f"q {n}", f"{RESULT} {n}"), say(f"answer {n}")], success=ok)
        for n in range(count)
        for ok in [None if n == 0 else n % 2 == 0]
    ]


def test_kto_rows_are_the_rows_of_training_with_a_label(tiny, tmp_path):
    store = write_pairs(tmp_path / "s", rated(7))
    plan = kto.METHOD.prepare(
        config(tmp_path, "kto", training={"per_device_train_batch_size": 2}), tmp_path, Silent()
    )
    assert (plan.rows, plan.dropped) == (6, Counter({"its success is unknown": 1}))
    rows = read_arrow(tmp_path / "train.arrow")
    assert rows is not None
    results = {row["source_id"]: row for row in rows}
    assert len(results) == 6
    for name, row in results.items():
        trajectory = store.get(name)
        (whole,) = tiny.trajectory(trajectory).rows
        ids = [*row["prompt_ids"], *row["completion_ids"]]
        mask = [*[0] * len(row["prompt_ids"]), *row["completion_mask"]]
        assert ids == whole.input_ids.tolist()
        assert mask == (whole.labels >= 0).astype(int).tolist()
        assert row["label"] is trajectory.success
    assert plan.trained == sum(map(sum, rows["completion_mask"]))
    assert plan.facts["desirable_rows"] == 3


def test_kto_stands_another_completion_beside_each_as_trl_does(tmp_path):
    write_pairs(tmp_path / "s", rated(8))
    batch = 3
    made = config(tmp_path, "kto", training={"per_device_train_batch_size": batch})
    kto.METHOD.prepare(made, tmp_path, Silent())
    rows = read_arrow(tmp_path / "train.arrow")
    assert rows is not None
    ours, other = list(rows["completion_ids"]), list(rows["KL_completion_ids"])
    for start in range(0, len(ours), batch):
        # How TRL rotates: the last one first.
        group = ours[start : start + batch]
        rotated = [group[-1], *group[:-1]]
        if len(group) == 1:
            rotated = [ours[start - 1]]
        assert other[start : start + batch] == rotated
    masks = zip(rows["KL_completion_ids"], rows["KL_completion_mask"], strict=True)
    assert all(len(ids) == len(mask) and sum(mask) for ids, mask in masks)


@given(st.integers(1, 40), st.integers(2, 7))
def test_no_row_stands_beside_itself(count, batch):
    indices = np.random.default_rng(count).permutation(count)
    result = rotate(indices, batch)
    if count > 1:
        assert (result != indices).all()
    assert set(result) <= set(indices)


def test_kto_from_rewards_and_from_pairs(tmp_path):
    runs = [run(f"r{n}", "ask", [say(f"answer {n}")], reward=n / 4) for n in range(4)]
    runs.append(run("unknown", "ask", [say("answer")]))
    write_pairs(tmp_path / "s", runs, [sides("r3", "r0"), sides("r2", "r1")])
    sizes = {"per_device_train_batch_size": 2}
    by_reward = {"rows": "reward", "reward_threshold": 0.25}
    plan = kto.METHOD.prepare(
        config(tmp_path, "kto", kto=by_reward, training=sizes), tmp_path, Silent()
    )
    rows = read_arrow(tmp_path / "train.arrow")
    assert rows is not None
    labels = dict(zip(rows["source_id"], rows["label"], strict=True))
    assert labels == {"d/r0": False, "d/r1": True, "d/r2": True, "d/r3": True}
    assert plan.dropped == Counter({"its reward is unknown": 1})
    kto.METHOD.prepare(
        config(tmp_path, "kto", kto={"rows": "pairs"}, training=sizes), tmp_path, Silent()
    )
    rows = read_arrow(tmp_path / "train.arrow")
    assert rows is not None
    labels = dict(zip(rows["source_id"], rows["label"], strict=True))
    assert labels == {
        "p0000#chosen": True,
        "p0000#rejected": False,
        "p0001#chosen": True,
        "p0001#rejected": False,
    }


def many_pairs(tmp_path: Any, count: int) -> None:
    runs, pairs = [], []
    for n in range(count):
        task = {"task_id": f"t{n}", "split": "train" if n % 4 else "test"}
        runs.append(run(f"g{n}", f"ask {n}", [say(f"right {n}")], **task))
        runs.append(run(f"b{n}", f"ask {n}", [say(f"wrong {n}")], **task))
        pairs.append(sides(f"g{n}", f"b{n}"))
    write_pairs(tmp_path / "s", runs, pairs)


def pair_ids(path: Any) -> set[str]:
    rows = read_arrow(path)
    return set() if rows is None else set(rows["pair_id"])


def test_a_share_of_the_tasks_is_measured(tmp_path):
    many_pairs(tmp_path, 40)
    plan = dpo.METHOD.prepare(config(tmp_path, "dpo", data={"eval_share": 0.3}), tmp_path, Silent())
    train, measured = pair_ids(tmp_path / "train.arrow"), pair_ids(tmp_path / "eval.arrow")
    assert (plan.rows, plan.eval_rows) == (len(train), len(measured))
    assert len(train | measured) == 40
    assert not train & measured
    assert 4 <= len(measured) <= 20


def test_splits_and_a_largest_number_of_rows(tmp_path):
    many_pairs(tmp_path, 12)
    chosen = {"splits": ["train"], "eval_splits": ["test"], "max_rows": 5}
    plan = dpo.METHOD.prepare(config(tmp_path, "dpo", data=chosen), tmp_path, Silent())
    assert (plan.rows, plan.eval_rows) == (5, 3)
    assert pair_ids(tmp_path / "eval.arrow") == {"p0000", "p0004", "p0008"}
    assert not {"p0000", "p0004", "p0008"} & pair_ids(tmp_path / "train.arrow")
    rows = read_arrow(tmp_path / "train.arrow")
    assert rows is not None
    assert plan.trained == sum(sum(row["chosen_mask"]) + sum(row["rejected_mask"]) for row in rows)


def test_another_store_is_measured(tmp_path):
    many_pairs(tmp_path, 4)
    (tmp_path / "other").mkdir()
    many_pairs(tmp_path / "other", 8)
    data = {"eval_store": str(tmp_path / "other" / "s"), "eval_splits": ["test"]}
    plan = dpo.METHOD.prepare(config(tmp_path, "dpo", data=data), tmp_path, Silent())
    assert (plan.rows, plan.eval_rows) == (4, 2)
