"""What else may be done with the same compute once the model was trained on the curated runs.

All begin with that model. Compute is counted in passes of tokens through the model: a token that
is read or written is one, a token that is trained is three (forward, and twice as much backward),
and the reference of DPO reads each of its tokens once more. The numbers of steps in `scale.py` give
each method about two million; what it really was is written beside its result.
"""

import json

import yaml

from examples.loop import stages
from examples.loop.run import measure, pairs, train_dpo, train_grpo, train_sft

RATE = 3.0e-4
"""Learning rate of what is trained further on runs."""
REJECTION = {
    "recipe": 1,
    "name": "toolworld-rejection",
    "inputs": {"samples": "samples"},
    "ops": [{"filter": {"preset": "success"}}, {"dedup_exact": {"of": "trajectory"}}],
    "outputs": {"data": {}},
}


def longer(work, scale, seed, start):
    """Supervised training on the same runs goes on: what steps alone bring."""
    training = {"max_steps": scale.more_steps, "learning_rate": RATE}
    train_sft(work, scale, seed, "longer", "curated/data", start, **training)
    return {"passes": 3 * trained_tokens(work, "longer")}


def rejection(work, scale, seed, start):
    """The model acts, its solved episodes are kept, and it is trained on them."""
    report = stages.sample(work, scale, seed, start, "samples")
    work.path("rejection.yaml").write_text(yaml.safe_dump(REJECTION | {"seed": seed}))
    work.fresh("rejected")
    work.adp("curate", "rejection.yaml", "-o", "rejected", show=["stay"])
    training = {"max_steps": scale.rejection_steps, "learning_rate": RATE}
    train_sft(work, scale, seed, "rejection", "rejected/data", start, **training)
    read = tokens_of(work, "samples", start)
    return report | {"passes": read + 3 * trained_tokens(work, "rejection")}


def dpo(work, scale, seed, start):
    """Pairs of the model's faults and what the expert would have done; DPO on them."""
    report = work.once("probes", lambda: stages.probe(work, scale, seed, start, "probes"))
    mix = work.once("pairs", lambda: pairs(work))
    train_dpo(work, scale, seed, "dpo", start)
    passes = tokens_of(work, "probes", start) + 4 * trained_tokens(work, "dpo")
    return report | mix | {"passes": passes}


def chosen(work, scale, seed, start):
    """Supervised training on the better sides of the same pairs, with the trainer of DPO."""
    work.once("probes", lambda: stages.probe(work, scale, seed, start, "probes"))
    work.once("pairs", lambda: pairs(work))
    train_dpo(work, scale, seed, "control", start, "[sft]")
    passes = tokens_of(work, "probes", start) + 4 * trained_tokens(work, "control")
    return {"passes": passes}


def grpo(work, scale, seed, start):
    """The model acts in the environment, eight times at each task, and is trained on rewards."""
    report = train_grpo(work, scale, seed, "grpo", start)
    return report | {"passes": 4 * tokens_of(work, "grpo/rollouts", start)}


METHODS = {
    "GRPO in the environment": ("grpo", grpo),
    "rejection sampling": ("rejection", rejection),
    "DPO": ("dpo", dpo),
    "SFT on the chosen steps": ("control", chosen),
    "longer SFT": ("longer", longer),
}
"""Title -> folder of the model, and what makes it."""


def method(work, scale, seed, title, start):
    """Train by a method, from the model that was trained on the curated runs, and measure.

    Args:
        work: the folder.
        scale: how much.
        seed: of tasks and training.
        title: one of `METHODS`.
        start: folder of the model.
    """
    name, train = METHODS[title]
    facts = {"training": work.once(name, lambda: train(work, scale, seed, start))}
    return facts | measure(work, name, f"{name}/model")


def tokens_of(work, store, model):
    """Tokens of the episodes of a store, as the model reads and writes them.

    A prompt is read once: what an episode has in common with its last turn is kept.
    """
    from adp.rendering.options import RenderOptions
    from adp.rendering.run import render_store
    from adp_schema.store import Store

    opened = Store.open(str(work.path(store)))
    options = RenderOptions(max_length=1024, end_of_turn="allow")
    return render_store(opened, str(work.path(model)), options=options, workers=1).tokens


def trained_tokens(work, name):
    """Tokens that a training went through: of its packs, or of both sides of its pairs."""
    record = json.loads(work.path(name, "run.json").read_text())
    plan, training = record["plan"], record["config"]["training"]
    rows = plan["sequences"] or plan["rows"]
    batch = training["per_device_train_batch_size"] * training["gradient_accumulation_steps"]
    return round(training["max_steps"] * batch * plan["tokens"] / rows)
