"""Running scorers over stores, and reading what they said.

    report = score_store(store, choose(["tool_f1", "schema_validity"]))
    table = read_scores(store)          # the scores that count, by scorer and settings

Scores are kept in files beside the tables of the store (`adp_schema.scores`). No model is called
unless a scorer calls one; what was scored before and came out the same is not written again.
"""

from adp.eval.scoring.choose import ChosenScorer, choose, choose_named, label
from adp.eval.scoring.read import ScoreSet, read_scores
from adp.eval.scoring.references import References, references
from adp.eval.scoring.run import ScoreOptions, ScoreReport, ScorerReport, score_store

__all__ = [
    "ChosenScorer",
    "References",
    "ScoreOptions",
    "ScoreReport",
    "ScoreSet",
    "ScorerReport",
    "choose",
    "choose_named",
    "label",
    "read_scores",
    "references",
    "score_store",
]
