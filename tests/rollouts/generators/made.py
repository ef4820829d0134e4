"""What the tests of generators share: small runs, and a count that knows nothing of the code."""

import json

from adp.rollouts.environments.calculator import Calculator
from adp.rollouts.environments.weather import Weather
from adp.rollouts.generators.make_options import MakeOptions, prepare_make
from adp.rollouts.turns import Call, Turn
from adp_schema.model import Task
from adp_schema.store import Store

SHOP = "benchmarks/shop_environment.py:Shop"
TEACHER = "benchmarks/trial_teacher.py:teacher"


def make(out, generator, env, **options):
    """Run a generator; its report."""
    given = MakeOptions(generator=generator, env=env, **options)
    return prepare_make(given, out).run(out)


def main_lines(out):
    """The samples of a store, without branches."""
    store = Store.open(str(out))
    ids = store.query("SELECT trajectory_id FROM trajectories WHERE parent_id IS NULL ORDER BY seq")
    return [store.get(name, exact=True) for name in ids.column(0).to_pylist()]


def calls_of(run):
    """(name, arguments, result) of each call of a sample."""
    return [
        (call.name, json.loads(call.arguments), seen)
        for step in run.steps
        for call, seen in zip(step.calls, step.observations, strict=True)
    ]


def again(name, arguments):
    """What a call brings in an environment of its own."""
    environment = {"calculator": Calculator, "weather": Weather}[name]()
    environment.reset(Task(task_id="t", instruction="?"), seed=0)
    return environment.step(Turn(calls=(Call(name, json.dumps(arguments)),))).results[0]
