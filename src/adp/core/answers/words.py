"""Answers in words: normalisation, exact match, containment, token F1.

- **squad** (Rajpurkar et al. 2016, the script of SQuAD 1.1): small letters, no punctuation, no
  articles, single spaces.
- **et_agent** (ET-Agent, arXiv 2601.06860, ``evaluate.py``): small letters, no articles, single
  spaces; punctuation stays.
- **plain** (the same for formulas): small letters, single spaces.
"""

from __future__ import annotations

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """A text in the manner of SQuAD: lower case, no punctuation, no articles, single spaces."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def normalize(text: str, manner: str = "squad") -> str:
    """A text as it is compared.

    Args:
        text: the text.
        manner: ``squad``, ``et_agent`` or ``plain``.
    """
    if manner == "squad":
        return normalised(text)
    if manner == "plain":
        return " ".join(text.lower().split())
    return " ".join(_ARTICLES.sub(" ", text.lower()).split())


def exact(prediction: str, reference: str, manner: str = "squad") -> bool:
    """Whether two answers are the same when normalised."""
    return normalize(prediction, manner) == normalize(reference, manner)


def holds(prediction: str, reference: str, manner: str = "squad") -> bool:
    """ET-Agent's ``acc``: whether the reference is a part of the prediction."""
    wanted = normalize(reference, manner)
    return bool(wanted) and wanted in normalize(prediction, manner)


def token_f1(prediction: str, reference: str, manner: str = "squad") -> float:
    """F1 of the bags of words; without words on a side, 1 when both have none, else 0."""
    predicted, wanted = normalize(prediction, manner), normalize(reference, manner)
    return overlap_f1(predicted, wanted) if predicted and wanted else float(predicted == wanted)


def overlap_f1(prediction: str, reference: str) -> float:
    """F1 of the bags of words of two texts as they are; 0 without a common word."""
    predicted, wanted = prediction.split(), reference.split()
    common = (Counter(predicted) & Counter(wanted)).total()
    return 2 * common / (len(predicted) + len(wanted)) if common else 0.0
