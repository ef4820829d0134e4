"""Where a rollout stops is where training ends a turn, and the token is no part of what is said."""

from __future__ import annotations

import pytest

from adp.eval.policies.prompts import Generated, Prompter
from adp.eval.policies.settings import InProcessSettings
from adp.eval.policy import Request
from tests.core.render.test_endings import IGNORES_THE_PROMPT, OPEN, tokenizer_of

ASKED = [{"role": "user", "content": "Weather?"}]


@pytest.mark.parametrize(
    ("template", "ends"),
    [(OPEN, {"</s>", "<|user|>", "<|tool|>"}), (IGNORES_THE_PROMPT, {"</s>", "<|end_turn|>"})],
)
def test_ends(template: str, ends: set[str]) -> None:
    tokenizer = tokenizer_of(template)
    prompter = Prompter(tokenizer, InProcessSettings(model="tiny", call_form="json"))
    assert {tokenizer.decode([end]) for end in prompter.ends} == ends
    request = Request(ASKED, ())
    for end in sorted(ends):
        ids = tokenizer.encode(f"It rains.{end}", add_special_tokens=False)
        written = Generated(ids, ended=True)
        turn = prompter.turn(request, prompter.prompt(request), written)
        assert turn.text == "It rains."
    more = Prompter(tokenizer, InProcessSettings(model="tiny", call_form="json"), [5])
    assert more.ends == prompter.ends | {5}
