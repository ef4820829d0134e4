r"""Final answers against reference answers: exact match, token F1, containment, formulas.

The best of all reference answers counts.

- ``answer_em`` and ``answer_f1``: exact match, and F1 of the bags of words, after normalisation.
  The manner ``squad`` (Rajpurkar et al. 2016, script of SQuAD 1.1) makes letters small and drops
  punctuation and articles; ``et_agent`` (ET-Agent, arXiv 2601.06860, ``evaluate.py``) keeps
  punctuation.
- ``answer_acc``: ET-Agent's ``acc``: the reference is a part of the answer.
- ``answer_math``: the same formula after the clean-up of MATH (Hendrycks et al. 2021): fractions,
  roots, units, degrees, dollar and percent signs; or the same number: 0.5 is ``\frac{1}{2}``, and
  1,000 is 1000. ``formulas=hendrycks`` compares as their own code does, to the letter
  (``is_equiv``), which published figures rest on; ``formulas=math_verify`` by the package
  math-verify, which compares values (extra ``math``).

With ``extract`` the answer is what stands in the last answer tags, and in it in the last box
(``\boxed{}``), as ET-Agent finds it. No answer scores 0; a task without references is unscored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from adp.core.answers.extraction import extract
from adp.core.answers.formulas import math_equal
from adp.core.answers.hendrycks import is_equiv
from adp.core.answers.verified import load_math_verify, verified_equal
from adp.core.answers.words import exact, holds, token_f1
from adp.eval.scorer import Item, Score, ScorerKind
from adp.eval.scorers.base import PerTrajectory, unscored
from adp.eval.scorers.correctness import prediction
from adp.rollouts.environment import Settings
from adp.rollouts.task_references import reference_answers
from adp.rollouts.trajectory_reading import SHOWN, cut

_FORMULAS: Mapping[str, Callable[[str, str], bool]] = {
    "numbers": math_equal,
    "hendrycks": is_equiv,
    "math_verify": verified_equal,
}


class AnswerSettings(Settings):
    """Settings of the scorer ``answer``."""

    manner: Literal["squad", "et_agent"] = "squad"
    """How texts are normalised: squad (no case, punctuation, articles) or et_agent (no case,
    articles; punctuation counts)."""
    prediction: Literal["auto", "final_answer", "last_text"] = "auto"
    """What the answer is: the column final_answer, the agent's last text, or the first of both
    that is there."""
    formulas: Literal["numbers", "hendrycks", "math_verify"] = "numbers"
    """How formulas are compared: cleaned, and as numbers (numbers); as the code of MATH does
    (hendrycks); by their values, with the package math-verify (math_verify)."""
    extract: bool = True
    """Take what stands in the last answer tags and in the last box, where there are any."""


class AnswerScorer(PerTrajectory):
    """Compares final answers.

    Args:
        settings: its settings.

    Raises:
        MissingExtraError: math-verify is wanted and not installed.
    """

    name = "answer"
    metrics = ("answer_em", "answer_f1", "answer_acc", "answer_math")

    def __init__(self, settings: AnswerSettings) -> None:
        self.settings = settings
        self._formulas = _FORMULAS[settings.formulas]
        if settings.formulas == "math_verify":
            load_math_verify()

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        known = reference_answers(item.task)
        if not known:
            return unscored(self.metrics, "the task has no reference answer")
        prediction_text = prediction(item.trajectory, self.settings.prediction)
        text = "" if prediction_text is None else prediction_text
        text = extract(text) if self.settings.extract else text
        manner = self.settings.manner
        best = {
            "answer_em": max(exact(text, entry, manner) for entry in known),
            "answer_f1": max(token_f1(text, entry, manner) for entry in known),
            "answer_acc": max(holds(text, entry, manner) for entry in known),
            "answer_math": max(self._formulas(text, entry) for entry in known),
        }
        evidence = {
            "answer": None if prediction_text is None else cut(text),
            "references": [cut(entry) for entry in known[:SHOWN]],
        }
        if prediction_text is None:
            # Nothing was answered; an empty reference must not make that right.
            best = dict.fromkeys(best, 0.0)
        return [Score(name, float(value), evidence=evidence) for name, value in best.items()]


KIND = ScorerKind(
    name="answer",
    about="Final answers against reference answers: exact match and token F1 in the manners of "
    "SQuAD and ET-Agent, containment, equal formulas as in MATH.",
    settings=AnswerSettings,
    make=AnswerScorer,
)
