"""A reward for verl: 1 when the answer ends with the ground truth, else 0. Put your own here."""

import re
from typing import Any


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Any = None,
    **other: Any,
) -> float:
    """Compare the end of an answer with the ground truth.

    Args:
        data_source: name of the data set.
        solution_str: what the model wrote.
        ground_truth: text to compare with.
        extra_info: further columns of the row.
        other: what else verl gives.
    """
    answer, truth = _words(solution_str.split("</think>")[-1]), _words(ground_truth)
    return float(bool(truth) and answer[-len(truth) :] == truth)


def _words(text: str) -> list[str]:
    """The words of a text in small letters, without marks."""
    return re.findall(r"\w+", text.casefold())
