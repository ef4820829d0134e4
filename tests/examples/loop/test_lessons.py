"""Lessons in copying: what can be known follows from what was said; names of calls are found."""

from __future__ import annotations

import re
from random import Random

import pytest

pytest.importorskip("transformers", reason="needs the train extra")

from adp.rollouts.environments.toolworld import ToolworldSettings, make_tasks
from examples.loop.lessons import LONGEST, lesson, lesson_batch
from examples.loop.names import rows
from examples.loop.tokenizer import build_tokenizer

pytestmark = pytest.mark.train

NAME = re.compile(r"(?:[BDFGHKLMNPRSTVWZ][aeiou]){3}")


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


def test_the_rule_of_a_lesson_says_every_token_that_can_be_known():
    for seed in range(200):
        pieces = lesson(Random(seed))
        question = pieces[0][0].split("<|user|>")[1]
        left, here, last = NAME.findall(question), None, None
        here = left.pop(0)
        for text, certain in pieces[1:]:
            if text == "<|tool|>Error: busy, try again<|end|>":
                continue
            if text.startswith("<|tool|>"):
                last = text.removeprefix("<|tool|>").removesuffix("<|end|>")
                here = last if NAME.fullmatch(last) else (left.pop(0) if left else None)
            elif certain:
                assert text in (here, last)
        assert any(certain for _, certain in pieces)


def test_a_batch_marks_names_and_answers_alone(tokenizer):
    ids, known = lesson_batch(tokenizer, Random(3), 64)
    assert ids.shape == known.shape
    assert ids.shape[1] <= LONGEST
    assert 0.02 < known[ids != tokenizer.pad_token_id].float().mean() < 0.1
    assert not known[ids == tokenizer.pad_token_id].any()
    again, _ = lesson_batch(tokenizer, Random(3), 64)
    assert (again == ids).all()


def test_the_names_in_the_calls_of_an_expert_are_marked(tokenizer):
    tasks = make_tasks(ToolworldSettings(failures=0.0), "train", 20, 4)
    for task, (ids, marks) in zip(tasks, rows(tokenizer, tasks), strict=True):
        marked = tokenizer.decode([token for token, mark in zip(ids, marks, strict=True) if mark])
        wanted = "".join(NAME.findall(task.expected_calls))
        assert marked == wanted
