"""One run of the loop: collect, curate, train, measure, find faults, mend them, measure again."""

import json

import yaml

from examples.loop import stages
from examples.loop.model import make_base
from examples.loop.names import name_loss

SEEN = ["rows", "steps of", "training in", "loss", "dropped", "note"]


NAME_TASKS = 100
"""Tasks of the split train, in no pool, on whose names the loss is taken."""
RETRIES, RETRY_SEED = 3, 1000
LEARNT = 0.15
"""A training whose loss on the names in the expert's calls is higher at its end did not learn to
copy. It is begun anew from another start, whose seed is higher by 1,000, at most three times. This
was fixed before anything was measured with it, and it is the same for every arm."""


HELD_OUT = ("held_out",)
"""What is measured on after SFT; the study measures on all sets."""


def run(work, scale, seed):
    """Run all stages that are not done yet.

    Args:
        work: the folder.
        scale: how much of everything.
        seed: of weights, tasks, teachers and training.

    Returns:
        all that was measured.
    """
    facts = begun(work, scale, seed) | supervised(work, scale, seed)
    once = work.once
    model = facts["sft"]["model"]
    facts["probes"] = once("probes", lambda: stages.probe(work, scale, seed, model, "probes"))
    facts["pairs"] = once("pairs", lambda: pairs(work))
    facts["dpo"] = once("dpo", lambda: train_dpo(work, scale, seed, "dpo", model))
    facts["after_dpo"] = measure(work, "dpo", "dpo/model", HELD_OUT)
    facts["control"] = once(
        "control", lambda: train_dpo(work, scale, seed, "control", model, "[sft]")
    )
    facts["after_control"] = measure(work, "control", "control/model", HELD_OUT)
    facts["grpo"] = once("grpo", lambda: train_grpo(work, scale, seed, "grpo", model))
    facts["after_grpo"] = measure(work, "grpo", "grpo/model", HELD_OUT)
    once("report", lambda: report(work))
    facts["costs"] = dict(work.costs)
    return facts


def begun(work, scale, seed):
    """Tasks, the untrained model and the pool: what all arms share."""
    work.root.mkdir(parents=True, exist_ok=True)
    once, facts = work.once, {"seed": seed}
    facts["tasks"] = once("tasks", lambda: stages.write_tasks(work, scale, seed))
    facts["base"] = once("base", lambda: base(work, scale, seed))
    facts["before"] = once(
        "eval-base", lambda: stages.evaluate(work, "base", "base", "held_out.jsonl", 1.0)
    )
    facts["pool"] = once("pool", lambda: stages.collect(work, scale, seed))
    facts["leaked"] = once("leaked", lambda: stages.collect_leaked(work, scale, seed))
    facts["informed"] = once("informed", lambda: stages.collect_informed(work, scale, seed))
    return facts


def supervised(work, scale, seed):
    """The recipe, the training on what it chooses, and what that can do."""
    facts = {"curated": work.once("curated", lambda: curate(work, scale, seed))}
    facts["sft"] = learn(work, scale, seed, "sft", "curated/data")
    facts["after_sft"] = measure(work, "sft", facts["sft"]["model"])
    return facts


def base(work, scale, seed, name="base"):
    """The model after stage 0 and the lessons."""
    return make_base(work.fresh(name), seed, scale)


def learn(work, scale, seed, name, store):
    """Train on a store; a training that did not learn to copy is begun anew from another start.

    Returns:
        losses, the folder of the model, and each attempt with its seed and its loss on names.
    """
    attempts, facts = [], {}
    for attempt in range(1 + RETRIES):
        facts = learn_once(work, scale, seed, name, store, attempt)
        attempts.append({"seed": seed + attempt * RETRY_SEED, "name_loss": facts["name_loss"]})
        if facts["name_loss"] <= LEARNT:
            break
    return facts | {"attempts": attempts, "learnt": facts["name_loss"] <= LEARNT}


def learn_once(work, scale, seed, name, store, attempt):
    """One attempt: a start, the training, and its loss on names."""
    start = f"base-{seed + attempt * RETRY_SEED}" if attempt else "base"
    out = f"{name}-{attempt}" if attempt else name
    work.once(start, lambda: base(work, scale, seed + attempt * RETRY_SEED, start))
    facts = work.once(out, lambda: train_sft(work, scale, seed, out, store, start))
    tasks = stages.tasks_of(scale, "train", NAME_TASKS, seed, stages.NAMES)
    loss = work.once(f"{out}-names", lambda: name_loss(work.path(out, "model"), tasks))
    return facts | {"name_loss": loss, "model": f"{out}/model"}


def curate(work, scale, seed, name="curated", change=None):
    """Choose what is trained on, by the recipe `sft.yaml`.

    Args:
        work: the folder.
        scale: how much.
        seed: of the recipe.
        name: folder of the result.
        change: called with the recipe, to change it.
    """
    work.give("sft.yaml")
    recipe = yaml.safe_load(work.path("sft.yaml").read_text())
    recipe["seed"] = seed
    for op in recipe["ops"]:
        if "mix" in op:
            op["mix"]["total"] = scale.curated
    if change is not None:
        change(recipe)
    file = work.path(f"{name}.yaml")
    file.write_text(yaml.safe_dump(recipe, sort_keys=False))
    out = work.fresh(name)
    work.adp("curate", file.name, "-o", out.name, show=["contaminated", "stay", "masked", "mix:"])
    report = json.loads(work.path(name, "curation", "report.json").read_text())
    return {"stages": [[item["name"], item["out"]] for item in report["stages"]]}


def train_sft(work, scale, seed, name, store, start="base", **more):
    """Train all weights on a store.

    Args:
        work: the folder.
        scale: how much.
        seed: of the training.
        name: folder of the result.
        store: what is trained on.
        start: folder of the model that it begins with.
        more: settings of the section `training`.
    """
    work.give("train_sft.yaml")
    out = work.fresh(name)
    more = {"max_steps": scale.sft_steps, "use_cpu": scale.device == "cpu"} | more
    work.adp(
        *("train", "sft", "--config", "train_sft.yaml", "-o", out.name),
        *("--set", f"data.store={store}", "--set", f"model.model_name_or_path={start}"),
        *(word for key, value in more.items() for word in ("--set", f"training.{key}={value}")),
        *("--set", f"training.seed={seed}"),
        *("--set", f"training.gradient_accumulation_steps={scale.packs}"),
        show=SEEN,
    )
    return losses(work, name)


def train_dpo(work, scale, seed, name, start, loss="[sigmoid, sft]"):
    """Train on the pairs; with the loss `sft` alone it is the control."""
    work.give("train_dpo.yaml")
    out = work.fresh(name)
    weights = "[" + ", ".join("1.0" for _ in loss.split(",")) + "]"
    work.adp(
        *("train", "dpo", "--config", "train_dpo.yaml", "-o", out.name),
        *("--set", f"model.model_name_or_path={start}"),
        *("--set", f"training.max_steps={scale.dpo_steps}", "--set", f"training.seed={seed}"),
        *("--set", f"training.use_cpu={scale.device == 'cpu'}"),
        *("--set", f"dpo.loss_type={loss}", "--set", f"dpo.loss_weights={weights}"),
        show=SEEN,
    )
    return losses(work, name)


def train_grpo(work, scale, seed, name, start):
    """Let a model act in the environment, eight times at each task, and train on the rewards."""
    work.give("train_grpo.yaml")
    out = work.fresh(name)
    kinds = ",".join(scale.kinds)
    tasks = 10 * seed + stages.ACTING
    work.adp(
        *("train", "grpo", "--config", "train_grpo.yaml", "-o", out.name),
        *("--set", f"model.model_name_or_path={start}"),
        *("--set", f"grpo.environment.name=toolworld:kinds=[{kinds}]"),
        *("--set", f"grpo.environment.tasks=train:{8 * scale.grpo_steps}:{tasks}"),
        *("--set", f"training.max_steps={scale.grpo_steps}", "--set", f"training.seed={seed}"),
        *("--set", f"training.use_cpu={scale.device == 'cpu'}"),
        show=["rows", "reward", "loss", "note"],
    )
    return losses(work, name)


def losses(work, name):
    """First and last loss of a training."""
    lines = work.path(name, "metrics.jsonl").read_text().splitlines()
    results = [json.loads(line).get("loss") for line in lines]
    results = [loss for loss in results if loss is not None]
    return {
        name: round(results[at], 4)
        for name, at in (("first_loss", 0), ("last_loss", -1))
        if results
    }


def pairs(work):
    """Pairs from the faults that were found, by the recipe `pairs.yaml`."""
    work.give("pairs.yaml")
    work.fresh("pairs")
    work.adp("curate", "pairs.yaml", "-o", "pairs", show=["pairs"])
    return stages.pair_mix(work.path("pairs", "pairs"))


def measure(work, name, model, sets=stages.SETS):
    """At temperature 1 on sets of tasks, and greedy on the held-out ones."""

    def on(title, tasks, temperature):
        return work.once(
            f"eval-{title}",
            lambda: stages.evaluate(work, title, model, f"{tasks}.jsonl", temperature),
        )

    facts = {tasks: on(f"{name}-{tasks}", tasks, 1.0) for tasks in sets}
    return facts | {"greedy": on(f"{name}-greedy", "held_out", 0.0)}


def report(work):
    """Compare the models with `adp report eval`: greedy, and at temperature 1."""
    statement = {}
    for title, names in (
        ("greedy", ("sft-greedy", "dpo-greedy", "control-greedy", "grpo-greedy")),
        ("sampled", ("base", *(f"{name}-held_out" for name in ("sft", "dpo", "control", "grpo")))),
    ):
        for ending in ("md", "html"):
            file = work.path(f"report-{title}.{ending}")
            file.unlink(missing_ok=True)
            stores = [f"eval/{name}" for name in names]
            work.adp("report", "eval", *stores, "-o", file.name, "--name", title, show=[])
            statement[file.name] = file.stat().st_size
    return statement
