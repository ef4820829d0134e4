"""Small stores of sums, and models in this process that work them out."""

from __future__ import annotations

import asyncio
from pathlib import Path

from adp.rollouts.collecting.collect import alone, collect_now
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.environments.calculator import KIND, Calculator, CalculatorSettings
from adp.rollouts.evolving.asking import ANALYSER, JUDGE, REFINER
from adp.rollouts.evolving.carry_out import Evolver
from adp.rollouts.evolving.evolve import evolve_now
from adp.rollouts.evolving.settings import EvolveSettings
from adp.rollouts.evolving.sources import read_jobs
from adp.rollouts.turns import Call, Turn
from adp_schema.store import Store
from tests.rollouts.evolving.models import good_answer


class Model:
    """A policy that answers as the endpoint of `tests.rollouts.evolving.models` does.

    Args:
        answer: from a request body to a message.
        pause: seconds of an answer, drawn up to this by its seed.
    """

    name = "model"

    def __init__(self, answer=good_answer, pause=0.0):
        self.answer, self.pause = answer, pause
        self.asked = []

    async def act(self, request):
        self.asked.append(request)
        await asyncio.sleep(self.pause * (request.seed % 7) / 7)
        body = {"messages": [dict(item) for item in request.messages], "seed": request.seed}
        reply = self.answer(body)
        calls = tuple(
            Call(call["function"]["name"], call["function"]["arguments"], call["id"])
            for call in reply.get("tool_calls", ())
        )
        return Turn(reply["content"] or "", calls, reply.get("reasoning_content"))

    async def close(self):
        pass


def rolled_out(folder: Path, count: int = 6, n: int = 1, model: Model | None = None) -> Store:
    """A finished store of sums."""
    tasks = KIND.tasks(CalculatorSettings(), "test", count, 0)
    settings = CollectSettings(environment="calculator", policy="model", n=n, timed=False)
    collect_now(folder, Calculator, alone(model or Model()), tasks, settings)
    return Store.open(str(folder))


def evolver_of(model: Model | None = None, environments=Calculator, **settings) -> Evolver:
    """An evolver whose models are all the same."""
    model = model or Model()
    chosen = {"environment": "calculator", "policy": "model", "timed": False, **settings}
    models = {REFINER: model, ANALYSER: model, JUDGE: model}
    return Evolver(environments, alone(model), models, EvolveSettings(**chosen))


def evolved(out: Path, store: Store, evolver: Evolver | None = None):
    """Run all rounds; return the report."""
    return evolve_now(out, read_jobs(store), evolver or evolver_of())
