"""ET-Agent's reward as one file for verl: alone in a process, equal to the formula."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.trainers.export.single_file import shipped_file, single_file
from adp.trainers.export.verl_rl import EXPORTER
from tests.trainers.export.test_verl import FACTS
from tests.trainers.rollouts.et_agent_reference import (
    RESPONSES,
    SIGMAS,
    TRUTHS,
    Response,
    rewards,
    right,
)

TEXT = shipped_file("et_agent_reward.py")
GOOD = "<think>t</think><answer>\\boxed{4}</answer>"
CALLED = "<think>t</think><search>q</search><result>r</result>" + GOOD


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The module as it lies in an export, loaded as verl loads it: into no `sys.modules`."""
    path = tmp_path_factory.mktemp("file") / "reward.py"
    path.write_text(TEXT, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("written_reward", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_export_holds_it_and_says_how_to_start():
    files = EXPORTER.files(EXPORTER.options(reward="et_agent"), FACTS)
    assert files["reward.py"] == TEXT
    assert "name=EtAgentRewardManager" in files["README.md"]


def test_it_needs_nothing_of_ours(tmp_path):
    path = tmp_path / "reward.py"
    path.write_text(TEXT, encoding="utf-8")
    code = (
        "import sys, json, reward\n"
        f"print(json.dumps(reward.compute_score(['aime24', 'aime24'], {[GOOD, CALLED]!r}, "
        "['4', '[\"4\"]'], [{'index': 1}, {'index': 1}], [5, 5], (1, 2))))\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('adp', 'adp_schema')]"
    )
    output = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    responses = [Response(GOOD, 5, "1"), Response(CALLED, 5, "1")]
    wanted = rewards(responses, ["4"], "math", (0.2, 0.5), (1, 2))
    assert json.loads(output.stdout) == pytest.approx(wanted.tolist())


@given(RESPONSES, TRUTHS, st.sampled_from(["math", "qa"]), SIGMAS, st.integers(1, 9), st.booleans())
def test_it_is_the_formula(written, responses, truths, rule, sigmas, step, decay):
    options = written.EtAgentOptions(sigmas[0], sigmas[1], decay=decay, metric=rule)
    scores = written.compute_score(
        ["d"] * len(responses),
        [response.text for response in responses],
        [json.dumps(truths)] * len(responses),
        [{"index": response.group, "split": "train"} for response in responses],
        [response.tokens for response in responses],
        (step, 5),
        options,
    )
    wanted = rewards(responses, truths, rule, sigmas, (step, 5) if decay else None)
    assert scores == pytest.approx(wanted.tolist())


@given(RESPONSES, TRUTHS)
def test_rows_of_other_splits_only_measure(written, responses, truths):
    scores = written.compute_score(
        ["hotpotqa"] * len(responses),
        [response.text for response in responses],
        [truths] * len(responses),
        [{"index": 1, "split": "test"} for _ in responses],
        [response.tokens for response in responses],
    )
    assert scores == pytest.approx([right(response.text, truths, "qa") for response in responses])


# ---- the manager ----------------------------------------------------------------------------


class Config(dict):
    """A configuration whose keys are attributes, too."""

    __getattr__ = dict.__getitem__


def config(workers=1, batch=4, rollouts=2, steps=3, **kwargs):
    return Config(
        reward=Config(num_workers=workers, reward_kwargs=kwargs),
        actor_rollout_ref=Config(rollout=Config(n=rollouts)),
        data=Config(train_batch_size=batch),
        trainer=Config(total_training_steps=steps),
    )


class Tensor(list):
    """A row of numbers, as far as the manager looks at one."""

    @property
    def shape(self):
        return (len(self),)

    def __getitem__(self, place):
        value = super().__getitem__(place)
        return Tensor(value) if isinstance(place, slice) else value

    def sum(self):
        return sum(self)


class Characters:
    """A tokenizer whose tokens are characters."""

    def decode(self, ids, skip_special_tokens):
        return "".join(map(chr, ids))


def item(text, uid, split="train", done=0, padding=3):
    ids = Tensor([ord(letter) for letter in text] + [0] * padding)
    mask = Tensor([0, 1] + [1] * len(text) + [0] * padding)
    batch = {"prompts": Tensor([0, 7]), "responses": ids, "attention_mask": mask}
    columns = {
        "uid": uid,
        "data_source": "aime24",
        "reward_model": {"ground_truth": ["4"]},
        "extra_info": {"index": 1, "split": split},
        "tool_extra_fields": {"min_global_steps": done},
    }
    return [SimpleNamespace(batch=batch, non_tensor_batch=columns)]


def manager(written, **settings):
    return written.EtAgentRewardManager(config(**settings), Characters())


async def together(made, items):
    return await asyncio.gather(*(made.run_single(entry) for entry in items))


def test_the_manager_compares_the_responses_to_a_prompt(written):
    made = manager(written)
    texts = [GOOD, CALLED, "", GOOD]
    items = [item(text, uid, done=1) for text, uid in zip(texts, "abab", strict=True)]
    items.append(item("<answer>\\boxed{4}</answer>", "v", split="test"))
    results = asyncio.run(together(made, items))
    responses = [Response(text, len(text), uid) for text, uid in zip(texts, "abab", strict=True)]
    wanted = [*rewards(responses, ["4"], "math", (0.2, 0.5), (2, 3)), 1.0]
    assert [result["reward_score"] for result in results] == pytest.approx(wanted)
    assert results[1]["reward_extra_info"] == {
        "acc": 1.0, "raw_score": 1.0, "tool_call": 1, "malformed": 0,
    }  # fmt: skip
    assert not made.groups


def test_a_lost_response_does_not_stop_the_others(written, capsys):
    made = manager(written, rollouts=3, decay=False, wait_s=0.05)
    results = asyncio.run(together(made, [item(GOOD, "a"), item(CALLED, "a")]))
    responses = [Response(GOOD, len(GOOD), "a"), Response(CALLED, len(CALLED), "a")]
    wanted = rewards(responses, ["4"], "math", (0.2, 0.5), None)
    assert [result["reward_score"] for result in results] == pytest.approx(wanted.tolist())
    assert "2 of 3 responses came in time" in capsys.readouterr().out
    assert not made.groups


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 8}, "set reward.num_workers=1"),
        ({"batch": 64, "rollouts": 17}, "make data.train_batch_size or rollout.n smaller"),
        ({"steps": None}, "set trainer.total_training_steps"),
        ({"metric": "em"}, "use auto or math or qa"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(written, settings, message):
    with pytest.raises(ValueError, match=message):
        manager(written, **settings)


# ---- one file out of several ----------------------------------------------------------------


def test_each_name_stands_once():
    names = [line.split("(")[0].split()[1] for line in TEXT.splitlines() if line[:4] == "def "]
    assert len(names) == len(set(names))
    assert "import adp" not in TEXT
    assert "from adp" not in TEXT


def test_two_definitions_of_a_name_are_refused(tmp_path):
    module = tmp_path / "m.py"
    module.write_text('"""M."""\nfrom adp.core.answers.words import exact\n\n\ndef holds(): ...\n')
    with pytest.raises(
        ValueError, match=r"holds is defined in adp\.core\.answers\.words and in m\.py"
    ):
        single_file(module)
    module.write_text('"""M."""\nimport adp.core.answers.words\n')
    with pytest.raises(ValueError, match="cannot be put into one file"):
        single_file(module)
