"""The stages of the loop. Each leaves a store or a model; all numbers come from stores."""

import json
from random import Random

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.collect import collect_now
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.environments.toolworld import Toolworld, ToolworldSettings, make_tasks
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.settings import AssistSettings
from adp_schema.store import Store
from examples.loop.teachers import Judged, Teacher

TRAIN, LEAKED, HELD_OUT, PROBES, INFORMED, NAMES, SAMPLES, ACTING = range(8)
"""Seeds of the tasks are 10 times the seed of the run, and one of these."""

TEACHERS = {
    "careful": 2,
    "double_checking": 4,
    "sloppy": 2,
    "hasty": 3,
    "circling": 2,
    "misreading": 2,
}
"""Shares of the teachers in the pool."""

SETS = ("held_out", "leaked", "unseen_tools", "longer_paths")
"""Sets of tasks that are measured on; all but ``leaked`` are in no pool."""

MEASURES = ("clean", "redundant", "wrong", "malformed")
SMALL = "max_tokens=48,batch_size=256,token_ids=false"
"""Turns are short; token ids are not needed."""


def tasks_of(scale, split, count, seed, part, **more):
    """Tasks of a part of the run; the kinds take turns."""
    settings = ToolworldSettings(kinds=scale.kinds, **more)
    return make_tasks(settings, split, count, 10 * seed + part)


def write_tasks(work, scale, seed):
    """Write the sets that are measured on, one of which leaks into the pool, to files."""
    for name in SETS:
        split, part = ("test", LEAKED) if name == "leaked" else (name, HELD_OUT)
        split = "test" if name == "held_out" else split
        count = scale.leaked if name == "leaked" else scale.held_out
        tasks = tasks_of(scale, split, count, seed, part)
        text = "".join(task.model_dump_json(exclude_none=True) + "\n" for task in tasks)
        work.path(f"{name}.jsonl").write_text(text)
    return {"held_out": scale.held_out, "leaked": scale.leaked}


def uneven(scale, seed):
    """Tasks for the teachers: many easy ones, few hard ones, as pools are."""
    weights = [10, 6, 3, 3, 3][: len(scale.kinds)]
    random = Random(f"pool/{seed}")
    chosen = random.choices(scale.kinds, weights, k=scale.pool)
    tasks = []
    for kind in scale.kinds:
        toolworld_settings = ToolworldSettings(kinds=(kind,))
        result = make_tasks(toolworld_settings, "train", chosen.count(kind), 10 * seed + TRAIN)
        # Lists of one kind number their tasks alike.
        tasks += [task.model_copy(update={"task_id": f"{task.task_id}-{kind}"}) for task in result]
    random.shuffle(tasks)
    return tasks


def collect(work, scale, seed):
    """Let teachers of all sorts act at tasks of the split train, once each."""
    return taught(work, "pool", uneven(scale, seed), seed, 1)


def collect_leaked(work, scale, seed):
    """Let them act at tasks of the split test as well, by mistake, and again and again."""
    tasks = tasks_of(scale, "test", scale.leaked, seed, LEAKED)
    return taught(work, "leaked", tasks, seed, scale.leaks)


def taught(work, name, tasks, seed, attempts):
    """Episodes of the teachers; which one acts follows from the task, the attempt and the seed."""

    def teacher(about):
        random = Random(f"teachers/{seed}/{about.task.task_id}/{about.attempt}")
        return Teacher(random.choices(list(TEACHERS), list(TEACHERS.values()))[0])

    settings = CollectSettings(
        dataset=name, policy="teachers", seed=seed, n=attempts, timed=False, seal=True
    )
    report = collect_now(work.fresh(name), Toolworld, teacher, tasks, settings)
    return {"episodes": report.done_now, "broken": report.failed}


def policy_of(work, model, **more):
    """A model of the run, in this process."""
    from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings

    settings = {"max_tokens": 48, "batch_size": 256, "token_ids": False} | more
    return TransformersPolicy(TransformersSettings(model=str(work.path(model)), **settings))


def collect_informed(work, scale, seed):
    """Let the untrained model act, with an informed expert that helps when it is stuck."""
    policy = policy_of(work, "base", max_tokens=6)
    tasks = tasks_of(scale, "train", scale.informed, seed, INFORMED, budget=20)
    assistance = Assistance(AssistSettings(mode="informed", save_alternates=False), policy)
    report = collect_now(
        work.fresh("informed"),
        Toolworld,
        assistance,
        tasks,
        CollectSettings(
            dataset="informed", policy="base", seed=seed, timed=False, seal=True, concurrency=256
        ),
        policies=[policy],
    )
    return {"episodes": report.done_now, "broken": report.failed}


def evaluate(work, name, model, tasks, temperature=0.0):
    """Measure a model on tasks, with `adp eval`."""
    out = work.fresh("eval", name)
    text = f"transformers:model={model},temperature={temperature},{SMALL}"
    work.adp(
        *("eval", "--suite", "toolworld", "--policy", text, "--tasks", tasks),
        *("-o", out.relative_to(work.root), "--concurrency", 256, "--no-times", "--dataset", name),
        show=["episodes ="],
    )
    return figures(out)


def figures(store):
    """Means over the episodes of a store."""
    rows = Store.open(str(store)).query(
        "SELECT task_id, success, rewards, extra FROM trajectories ORDER BY task_id"
    )
    rows = rows.to_pylist()
    rewards = [json.loads(row["rewards"]) if row["rewards"] else {} for row in rows]
    results = {"tasks": len(rows), "success": _mean(bool(row["success"]) for row in rows)}
    for name in MEASURES:
        results[name] = _mean(reward.get(name, 0.0) for reward in rewards)
    kinds = {}
    for row in rows:
        kinds.setdefault(json.loads(row["extra"])["kind"], []).append(bool(row["success"]))
    results["by_kind"] = {kind: _mean(values) for kind, values in sorted(kinds.items())}
    return results


def _mean(values):
    values = [float(value) for value in values]
    return round(sum(values) / len(values), 4)


def probe(work, scale, seed, model, out):
    """Let the trained model act at temperature 1, and note what it should have done."""
    policy = policy_of(work, model, temperature=1.0)

    def actor(about):
        return Judged(policy, scale.early)

    tasks = tasks_of(scale, "train", scale.probes, seed, PROBES)
    return acted(work, out, tasks, seed, policy, actor)


def sample(work, scale, seed, model, out):
    """Let the trained model act at temperature 1, for rejection sampling."""
    policy = policy_of(work, model, temperature=1.0)
    tasks = tasks_of(scale, "train", scale.samples, seed, SAMPLES)
    return acted(work, out, tasks, seed, policy, lambda about: Alone(policy))


def acted(work, out, tasks, seed, policy, actor):
    """Episodes of a model, alone or beside a judge."""
    settings = CollectSettings(
        dataset=out, policy=policy.name, seed=seed, timed=False, seal=True, concurrency=256
    )
    report = collect_now(work.fresh(out), Toolworld, actor, tasks, settings, policies=[policy])
    return {"episodes": report.done_now, "broken": report.failed}


def pair_mix(store):
    """How many pairs have which actions as chosen and rejected: call, answer or broken."""
    opened = Store.open(str(store))
    pairs = opened.query("SELECT * FROM pairs").to_pylist()
    steps = {}
    for run in opened.trajectories(resolve=False):
        for step in run.steps:
            kind = "call" if step.calls else "answer"
            if step.labels == ["malformed"]:
                kind = "malformed"
            steps[run.trajectory_id, step.step] = kind
    mix = {}
    for pair in pairs:
        sides = [steps[pair[f"{side}_id"], pair[f"{side}_from"]] for side in ("chosen", "rejected")]
        name = f"{sides[0]} over {sides[1]}"
        mix[name] = mix.get(name, 0) + 1
    return {"pairs": len(pairs), "mix": dict(sorted(mix.items()))}
