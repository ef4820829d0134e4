"""A curation that is killed at any moment ends as if nothing had happened."""

from __future__ import annotations

import pytest

from adp.converters.run import convert
from adp_schema.store import Store
from tests import kill

RECIPE = """\
recipe: 1
seed: 5
inputs: {runs: runs}
ops:
  - measure: {only: [sizes, loops]}
  - dedup_exact: {of: actions}
  - dedup_near: {alarm: warn}
  - coreset: {method: random, share: 0.7, coverage: false}
  - pairs: {rule: format_corruption, max_pairs: 50}
  - mask: {policy: [history]}
  - split: {shares: {train: 0.5, test: 0.5}}
"""


@pytest.mark.slow
def test_a_killed_curation_ends_the_same(tmp_path):
    source = kill.write_chats(tmp_path / "chats.jsonl", 24, 3)
    convert([str(source)], str(tmp_path / "runs"))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE)
    (tmp_path / "work").mkdir()
    series = kill.check(
        lambda out: kill.command("curate", recipe, "-o", out, "--workers", "2"),
        tmp_path / "work",
        kills=8,
    )
    assert series.killed
    made = Store.open(str(tmp_path / "work" / "whole"))
    assert made.manifest.rows("pairs") == 50
    assert (
        0
        < made.manifest.rows("trajectories")
        < Store.open(str(tmp_path / "runs")).manifest.rows("trajectories")
    )
