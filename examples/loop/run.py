"""One run of the loop: collect, curate, train, measure, find faults, mend them, measure again."""

import json

import yaml

from examples.loop import stages
from examples.loop.model import make_base

SEEN = ["rows", "steps of", "training in", "loss", "dropped", "note"]


def run(work, scale, seed):
    """Run all stages that are not done yet.

    Args:
        work: the folder.
        scale: how much of everything.
        seed: of weights, tasks, teachers and training.

    Returns:
        all that was measured.
    """
    work.root.mkdir(parents=True, exist_ok=True)
    once, facts = work.once, {"seed": seed}
    facts["tasks"] = once("tasks", lambda: stages.write_tasks(work, scale, seed))
    facts["base"] = once("base", lambda: base(work, scale, seed))
    facts["before"] = once(
        "eval-base", lambda: stages.evaluate(work, "base", "base", "held_out.jsonl")
    )
    facts["pool"] = once("pool", lambda: stages.collect(work, scale, seed))
    facts["informed"] = once("informed", lambda: stages.collect_informed(work, scale, seed))
    facts["curated"] = once("curated", lambda: curate(work, scale, seed))
    facts["sft"] = once("sft", lambda: train_sft(work, scale, seed, "sft", "curated/data"))
    facts["after_sft"] = measure(work, "sft", "sft/model")
    facts["probes"] = once("probes", lambda: stages.probe(work, scale, seed, "sft/model", "probes"))
    facts["pairs"] = once("pairs", lambda: pairs(work))
    facts["dpo"] = once("dpo", lambda: train_dpo(work, scale, seed, "dpo", "[sigmoid, sft]"))
    facts["after_dpo"] = measure(work, "dpo", "dpo/model")
    facts["control"] = once("control", lambda: train_dpo(work, scale, seed, "control", "[sft]"))
    facts["after_control"] = measure(work, "control", "control/model")
    once("report", lambda: report(work))
    facts["costs"] = dict(work.costs)
    return facts


def base(work, scale, seed):
    """The model after stage 0."""
    return make_base(work.fresh("base"), seed, scale.copy_steps)


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
    kept = report["stages"][-1]
    return {"stages": [[item["name"], item["out"]] for item in report["stages"]] if kept else []}


def train_sft(work, scale, seed, name, store):
    """Train all weights on a store."""
    work.give("train_sft.yaml")
    out = work.fresh(name)
    work.adp(
        *("train", "sft", "--config", "train_sft.yaml", "-o", out.name),
        *("--set", f"data.store={store}", "--set", f"training.max_steps={scale.sft_steps}"),
        *("--set", f"training.seed={seed}"),
        *("--set", f"training.gradient_accumulation_steps={scale.packs}"),
        show=SEEN,
    )
    return losses(work, name)


def train_dpo(work, scale, seed, name, loss):
    """Train on the pairs; with the loss `sft` alone it is the control."""
    work.give("train_dpo.yaml")
    out = work.fresh(name)
    weights = "[" + ", ".join("1.0" for _ in loss.split(",")) + "]"
    work.adp(
        *("train", "dpo", "--config", "train_dpo.yaml", "-o", out.name),
        *("--set", f"training.max_steps={scale.dpo_steps}", "--set", f"training.seed={seed}"),
        *("--set", f"dpo.loss_type={loss}", "--set", f"dpo.loss_weights={weights}"),
        show=SEEN,
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


def measure(work, name, model):
    """Greedy and at temperature 1, on the held-out tasks."""
    return {
        "greedy": work.once(
            f"eval-{name}", lambda: stages.evaluate(work, name, model, "held_out.jsonl")
        ),
        "sampled": work.once(
            f"eval-{name}-sampled",
            lambda: stages.evaluate(work, f"{name}-sampled", model, "held_out.jsonl", 1.0),
        ),
    }


def report(work):
    """Compare the models with `adp report eval`: greedy, and at temperature 1."""
    statement = {}
    for title, names in (
        ("greedy", ("base", "sft", "dpo", "control")),
        ("sampled", ("sft-sampled", "dpo-sampled", "control-sampled")),
    ):
        for ending in ("md", "html"):
            file = work.path(f"report-{title}.{ending}")
            file.unlink(missing_ok=True)
            stores = [f"eval/{name}" for name in names]
            work.adp("report", "eval", *stores, "-o", file.name, "--name", title, show=[])
            statement[file.name] = file.stat().st_size
    return statement
