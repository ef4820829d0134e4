"""A policy that answers BFCL's entries: right, nearly right, unreadable, or not at all."""

from __future__ import annotations

import json
import random

from adp.rollouts.policy import Request
from adp.rollouts.turns import Call, Turn
from adp_bfcl.categories import Language, is_relevance, language_of
from adp_bfcl.decoding import Mode
from adp_bfcl.entries import BfclEntry
from adp_bfcl.offers import offered_name
from adp_bfcl.tasks import entry_from
from tests.adp_bfcl.mutate import changed, right
from tests.adp_bfcl.turns import changed_steps, gold_steps

ARGUMENTS = ["{", "", "[1]", "null", '"x"', '{"a": NaN}', '{"a": 1} x', '{"a": "é\\u2028"}']
TEXTS = [
    "",
    " ",
    "No function fits; I cannot help.",
    "[]",
    "[{}]",
    "{}",
    "0",
    "[",
    "[f(",
    "f(x=1",
    "f(a=1), g(b=2)",
    "```\n[f(a=1)]\n```",
    "[f(a=1), 3]",
    "[f(a=b.c, d=[e, 'x'])]",
    "f(1, 'two')",
    "'f(a=1)'",
    "[[f(a=1)]]",
    "[f(a={'b': g(c=1)})]",
    "Ünïcode 你好 [f(é='ü')]",
]


class Answering:
    """The policy; what it does depends on the entry and the seed alone."""

    def __init__(self, mode: Mode, name: str, seed: int = 0) -> None:
        self.name, self._mode, self._seed = name, mode, seed
        self._turns: dict[str, list[Turn]] = {}

    async def act(self, request: Request) -> Turn:
        """The next turn."""
        entry = entry_from(request.task)
        assert entry is not None
        if request.turn == 0:
            rng = random.Random(f"{self._seed}/{entry.entry_id}")
            self._turns[entry.entry_id] = self._script(entry, rng)
        return self._turns[entry.entry_id].pop(0)

    async def close(self) -> None:
        """Nothing to free."""

    def _script(self, entry: BfclEntry, rng: random.Random) -> list[Turn]:
        if entry.multi_turn:
            return self._turns_of(entry, rng)
        kind = rng.random()
        if kind < 0.15:
            return [Turn(text=rng.choice(TEXTS))]
        calls = self._calls(entry, rng, whole=kind < 0.5)
        if kind > 0.9 and self._mode == "fc":
            name = offered_name(next(iter(calls[0]), "f")) if calls else "f"
            return [Turn(text="Wait.", calls=(Call(name, rng.choice(ARGUMENTS)),))]
        return [self._turn(entry, calls)]

    def _calls(self, entry: BfclEntry, rng: random.Random, *, whole: bool) -> list[dict]:
        if is_relevance(entry.category):
            name = entry.functions[0]["name"] if entry.functions else "f"
            return [{name: {"a": rng.choice([1, "x", None, [1], {"b": 2}])}}] * rng.randrange(3)
        gold = right(entry.functions, entry.answers, entry.category, rng)
        source = language_of(entry.category) is not Language.PYTHON
        return gold if whole else changed(gold, rng, source=source)

    def _turn(self, entry: BfclEntry, calls: list[dict]) -> Turn:
        parts = [pair for call in calls for pair in call.items()]
        if self._mode == "fc":
            made = tuple(Call(offered_name(name), json.dumps(given)) for name, given in parts)
            return Turn(text="" if made else "Nothing.", calls=made)
        source = language_of(entry.category) is not Language.PYTHON
        show = str if source else repr
        texts = (
            f"{name}({', '.join(f'{key}={show(value)}' for key, value in given.items())})"
            for name, given in parts
        )
        return Turn(text=f"[{', '.join(texts)}]")

    def _turns_of(self, entry: BfclEntry, rng: random.Random) -> list[Turn]:
        """The expected calls by turn and step, right or changed; the last turns may be lazy."""
        steps = gold_steps(entry.answers, rng)
        if rng.random() < 0.6:
            steps = changed_steps(steps, [], rng, odd=["pwd()", "ls(a=True)", "nothing(a=1)"])
        results = []
        for turn in steps:
            made = [
                self._step(entry, [call for call in step if call], rng) for step in turn if step
            ]
            results += [item for item in made if item is not None]
            results.append(Turn(text=rng.choice(["Done.", "", "It is 3 (three)."])))
        if rng.random() < 0.1:
            results = [
                results[0] if results[0].calls else Turn(text="[pwd()]", calls=(Call("pwd"),))
            ] * 30
        return results + [Turn(text="Done.")] * len(steps)

    def _step(self, entry: BfclEntry, calls: list[str], rng: random.Random) -> Turn | None:
        """Calls given as source, as one turn."""
        from adp_bfcl.python_calls import DecodeError, call_parts

        if self._mode == "prompt":
            return Turn(text=f"[{', '.join(calls)}]") if calls else None
        documents = {str(item["name"]): item for item in entry.functions}
        made = []
        for call in calls:
            try:
                name, values, given = call_parts(call)
            except DecodeError:
                made.append(Call("ls", rng.choice(ARGUMENTS)))
                continue
            known = list((documents.get(name) or {}).get("parameters", {}).get("properties", ()))
            given = dict(zip(known, values, strict=False)) | given
            made.append(Call(name, json.dumps(given, default=str)))
        return Turn(calls=tuple(made)) if made else None
