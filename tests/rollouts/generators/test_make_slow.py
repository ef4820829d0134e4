"""Generators at size: killed at random, 1,000 samples of each, a model that learns from them."""

import json
import random

import pytest

from benchmarks.generators import learn, measure_generators
from tests import kill
from tests.rollouts.generators.made import SHOP, TEACHER

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "words",
    [("chains", "-e", SHOP, "-n", 300), ("teacher", "-e", SHOP, "-p", TEACHER, "-n", 300)],
)
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, words):
    def make(out):
        return kill.command("make", *words, "--dataset", "d", "-o", out)

    def hashes(out):
        return {k: value for k, value in kill.hashes(out).items() if k != "make.json"}

    seconds, _ = kill.run(make(tmp_path / "whole"))
    killed, code = 0, -9
    while code:
        _, code = kill.run(
            make(tmp_path / "killed"), random.uniform(0.4, 1) * seconds if killed < 6 else None
        )
        killed += code != 0
    assert killed
    assert hashes(tmp_path / "whole") == hashes(tmp_path / "killed")


def test_a_thousand_samples_of_each(tmp_path):
    for name, counts in measure_generators(tmp_path, 1000).items():
        assert counts["samples"] == 1000, name
        assert counts["calls"] >= 1000
        assert (counts["calls_that_failed"], counts["duplicates"]) == (0, 0)
        covered = counts["coverage"]
        assert covered["tools_covered"] == covered["tools"]
        assert covered["parameters_covered"] == covered["parameters"]


@pytest.mark.train
def test_a_model_learns_which_tool_to_call(tmp_path):
    pytest.importorskip("trl")
    figures = learn(tmp_path, 0, 300, 80, 12)
    print(json.dumps(figures))
    assert figures["untrained"]["tool_name_f1"] < 0.2
    assert figures["trained"]["tool_name_f1"] > 0.8
    assert figures["trained"]["argument_accuracy"] > figures["untrained"]["argument_accuracy"]
