"""The stages of the loop. Each leaves a store or a model; all numbers come from stores."""

import json
from random import Random

from adp.rollouts.collecting.collect import collect_now
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.environments.toolworld import Toolworld, ToolworldSettings, make_tasks
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.settings import AssistSettings
from adp_schema.store import Store
from examples.loop.teachers import Judged, Teacher

TRAIN, HELD_OUT, FRESH, PROBES, INFORMED = 0, 1, 2, 3, 4
"""Seeds of the tasks are 10 times the seed of the run, and one of these."""

TEACHERS = {"careful": 2, "double_checking": 6, "sloppy": 2, "hasty": 5}
"""Shares of the teachers in the pool."""

MEASURES = ("clean", "redundant", "wrong", "malformed")
SMALL = "max_tokens=48,batch_size=256,token_ids=false"
"""Turns are short; token ids are not needed."""


def tasks_of(scale, split, count, seed, part, **more):
    """Tasks of a part of the run; the kinds take turns."""
    settings = ToolworldSettings(kinds=scale.kinds, **more)
    return make_tasks(settings, split, count, 10 * seed + part)


def write_tasks(work, scale, seed):
    """Write the held-out tasks, and a second set that nobody ever sees, to files."""
    for name, part in (("held_out", HELD_OUT), ("fresh", FRESH)):
        tasks = tasks_of(scale, "test", scale.held_out, seed, part)
        text = "".join(task.model_dump_json(exclude_none=True) + "\n" for task in tasks)
        work.path(f"{name}.jsonl").write_text(text)
    return {"held_out": scale.held_out, "fresh": scale.held_out}


def uneven(scale, seed):
    """Tasks for the teachers: many easy ones, few hard ones, as pools are."""
    weights = [10, 6, 3, 3, 3][: len(scale.kinds)]
    count = scale.pool - scale.leaked
    random = Random(f"pool/{seed}")
    chosen = random.choices(scale.kinds, weights, k=count)
    tasks = []
    for kind in scale.kinds:
        toolworld_settings = ToolworldSettings(kinds=(kind,))
        result = make_tasks(toolworld_settings, "train", chosen.count(kind), 10 * seed + TRAIN)
        # Lists of one kind number their tasks alike.
        tasks += [task.model_copy(update={"task_id": f"{task.task_id}-{kind}"}) for task in result]
    random.shuffle(tasks)
    return tasks


def collect(work, scale, seed):
    """Let teachers of all sorts act; some of them at held-out tasks, by mistake."""
    leaked = tasks_of(scale, "test", scale.leaked, seed, HELD_OUT)
    tasks = [*uneven(scale, seed), *leaked]
    names = Random(f"teachers/{seed}").choices(
        list(TEACHERS), list(TEACHERS.values()), k=len(tasks)
    )
    teacher = {task.task_id: name for task, name in zip(tasks, names, strict=True)}
    settings = CollectSettings(dataset="pool", policy="teachers", seed=seed, timed=False, seal=True)
    report = collect_now(
        work.fresh("pool"),
        Toolworld,
        lambda about: Teacher(teacher[about.task.task_id]),
        tasks,
        settings,
    )
    return {"episodes": report.done_now, "broken": report.failed}


def collect_informed(work, scale, seed):
    """Let the untrained model act, with an informed expert that helps when it is stuck."""
    from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings

    settings = TransformersSettings(
        model=str(work.path("base")), max_tokens=6, batch_size=256, token_ids=False
    )
    policy = TransformersPolicy(settings)
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
    from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings

    settings = TransformersSettings(
        model=str(work.path(model)),
        temperature=1.0,
        max_tokens=48,
        batch_size=256,
        token_ids=False,
    )
    policy = TransformersPolicy(settings)
    tasks = tasks_of(scale, "train", scale.probes, seed, PROBES)
    report = collect_now(
        work.fresh(out),
        Toolworld,
        lambda about: Judged(policy, scale.early),
        tasks,
        CollectSettings(
            dataset="probes", policy=model, seed=seed, timed=False, seal=True, concurrency=256
        ),
        policies=[policy],
    )
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
