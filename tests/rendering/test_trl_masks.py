"""Our labels are TRL's: both get TRL's own templates that mark what the model generates.

TRL makes its rows with ``apply_chat_template(return_assistant_tokens_mask=True)``. The steps of a
row that is its only one, all trained, must have the same labels as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adp.rendering.chat import Chat
from adp.rendering.render import IGNORED, Renderer
from tests.rendering.families import KINDS, files, renderer, trl_folder
from tests.rendering.oracle import fixed_day, ready
from tests.rendering.talks import TALKS

TRAINING = [name for name in files() if name.endswith("_training")]
OWN_MARKS = ["lfm2_2_5", "lfm2_2_5_v2"]
"""Templates of models that bring their marks with them."""

PICTURES = ("idefics3_training", "llava_next_training", "smolvlm_training")
"""Templates that take lists of parts as the text of a message, and refuse plain text."""

NAMES = [name for name in [*TRAINING, *OWN_MARKS] if name not in PICTURES]
DIFFERENT = {"diffusion_gemma_training": {"tool", "parallel", "masked call", "odd results"}}
"""Where the labels are not those of TRL: its template marks a turn with calls in several parts."""

QUICK = ["qwen3_training", "qwen2_5_training", "gptoss_training", "phi3_training", "lfm2_2_5"]

pytestmark = pytest.mark.skipif(trl_folder() is None, reason="TRL is not installed")


def trl_labels(made: Renderer, talk: Chat) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Ids and labels as TRL makes them with ``assistant_only_loss``."""
    with fixed_day():
        apply_chat_template = made.tokenizer.apply_chat_template(
            made.template.plain(talk),
            tools=list(talk.tools) or None,
            tokenize=True,
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
    ids = np.array(apply_chat_template["input_ids"])
    return ids, np.where(np.array(apply_chat_template["assistant_masks"]) == 1, ids, IGNORED)


def compared(made: Renderer) -> Iterator[tuple[str, bool]]:
    """Title, and whether the labels are equal, of conversations that need one row.

    Of a last character that several tokens make, TRL trains the first token alone; that is no
    difference here.
    """
    for title, talk in TALKS.items():
        messages = [
            replace(message, weight=float(message.role == "assistant")) for message in talk.messages
        ]
        whole = replace(talk, messages=tuple(messages))
        chat = made.chat(whole)
        if chat.rejected is not None or len(chat.rows) != 1:
            continue
        ids, labels = trl_labels(made, ready(made, whole))
        row = chat.rows[0]
        places = made.encoder.encode(row.text)
        same_character = np.append(False, places.starts[1:] == places.starts[:-1])
        labels = np.where(same_character & (row.labels == ids), ids, labels)
        yield title, np.array_equal(row.input_ids, ids) and np.array_equal(row.labels, labels)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in NAMES]
)
def test_labels_are_those_of_trl(name: str) -> None:
    result = dict(compared(renderer(name)))
    assert len(result) >= 6, result
    assert {title for title, same in result.items() if not same} == DIFFERENT.get(name, set())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("name", NAMES)
def test_labels_are_those_of_trl_with_other_tokenizers(name: str, kind: str) -> None:
    result = dict(compared(renderer(name, kind)))
    assert {title for title, same in result.items() if not same} == DIFFERENT.get(name, set())


def test_trl_makes_its_rows_that_way() -> None:
    """What TRL's trainer calls on each example gives the masks that the other test compares."""
    from trl.data_utils import _tokenize

    made = renderer("qwen3_training")
    talk = ready(made, TALKS["tool"])
    tokenize = _tokenize(
        made.tokenizer,
        made.template.plain(talk),
        return_assistant_tokens_mask=True,
        chat_template=made.tokenizer.chat_template,
        tools=list(talk.tools),
    )
    ids, labels = trl_labels(made, talk)
    assert tokenize["input_ids"] == ids.tolist()
    assert (np.array(tokenize["assistant_masks"]) == 1).tolist() == (labels != IGNORED).tolist()
