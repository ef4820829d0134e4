"""Generators of data: 1,000 samples of each, and whether a model learns from them.

    python benchmarks/generators.py                     # all, about ten minutes on two cores
    python benchmarks/generators.py --samples 100 --seeds 0 --steps 20 --tests 8

Of each generator: how many samples are kept, whether each of their calls was carried out with
success, how many of them stand twice, which tools and parameters occur. Then a model of half a
million random weights is trained by `adp.train` on samples of ``synthetic``, and is measured, as
`adp eval` does, on samples that training did not have, before and after.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from adp.eval.evaluate import EvaluateOptions, evaluate  # noqa: E402
from adp.eval.suite import Suite  # noqa: E402
from adp.rollouts.generators.make_options import MakeOptions, prepare_make  # noqa: E402
from adp_schema.store import Store  # noqa: E402

HOME = f"{HERE / 'home_environment.py'}:Home"
SHOP = f"{HERE / 'shop_environment.py'}:Shop"
TEACHER = f"{HERE / 'trial_teacher.py'}:teacher"
FIGURES = ("tool_name_f1", "tool_f1", "argument_accuracy")


def make(out, generator, env, count, seed=0, **more):
    """Make samples; the report."""
    options = MakeOptions(generator=generator, env=env, count=count, seed=seed, **more)
    return prepare_make(options, out).run(out)


def checked(out):
    """Count the calls of a store, those that went wrong, and the samples that stand twice."""
    store = Store.open(str(out))
    calls, wrong = (
        store.query(
            "SELECT count(*), count(*) FILTER (o.is_error IS DISTINCT FROM false) "
            "FROM tool_calls c "
            "JOIN trajectories t USING (seq) LEFT JOIN observations o "
            "ON o.seq = c.seq AND o.step = c.step AND o.call = c.call WHERE t.parent_id IS NULL"
        )
        .to_pylist()[0]
        .values()
    )
    rows = store.query("SELECT instruction, expected_calls FROM tasks").to_pylist()
    keys = {(" ".join(r["instruction"].lower().split()), r["expected_calls"]) for r in rows}
    return {"samples": len(rows), "calls": calls, "calls_that_failed": wrong,
            "duplicates": len(rows) - len(keys)}  # fmt: skip


def measure_generators(work, count):
    """Samples of each generator, counted apart from its own report."""
    runs = {
        "templates": ("templates", HOME, {}),
        "synthetic": ("synthetic", HOME, {}),
        "teacher": ("teacher", "weather", {"policy": TEACHER}),
        "chains": ("chains", SHOP, {"max_length": 4}),
    }
    results = {}
    for name, (generator, env, more) in runs.items():
        began = time.process_time()
        report = make(work / name, generator, env, count, **more)
        results[name] = {
            **checked(work / name),
            "cpu_seconds": round(time.process_time() - began, 1),
            **{key: report.plain()[key] for key in ("tried", "failures", "failed_beside")},
            "coverage": report.plain()["coverage"],
        }
        print(name, json.dumps(results[name]), flush=True)
    return results


def write_base(folder, stores, seed):
    """A model with random weights, and a tokenizer of the words of the samples."""
    from examples.loop.model import build_model
    from examples.loop.tokenizer import build_tokenizer

    texts = []
    for store in stores:
        for row in store.query("SELECT t.instruction, r.tools FROM tasks t "
                               "JOIN trajectories r USING (task_id)").to_pylist():  # fmt: skip
            texts += [row["instruction"], row["tools"]]
    known = sorted({word for text in texts for word in re.findall(r"[A-Za-z]{2,}|\d{2,}", text)})
    tokenizer = build_tokenizer([*known, *(" " + word for word in known)])
    model = build_model(tokenizer, seed)
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def learn(work, seed, samples, steps, tests):
    """Train a model on samples, and measure it before and after on others."""
    import adp

    train, test = work / "train", work / "test"
    make(train, "synthetic", HOME, samples, seed=2 * seed, split="train")
    make(test, "synthetic", HOME, tests, seed=2 * seed + 1, split="test", without=(str(train),))
    write_base(work / "base", [Store.open(str(train))], seed)
    config = {
        "method": "sft",
        "model": {"model_name_or_path": str(work / "base")},
        "data": {"workers": 1},
        "lora": None,
        "render": {"max_length": 512},
        "training": {
            "max_steps": steps, "per_device_train_batch_size": 16, "learning_rate": 3e-3,
            "gradient_accumulation_steps": 1,
            "lr_scheduler_type": "cosine", "warmup_steps": 20, "gradient_checkpointing": False,
            "bf16": False, "use_cpu": True, "save_strategy": "no", "logging_steps": 50,
            "seed": seed,
        },
    }  # fmt: skip
    began = time.process_time()
    adp.train(str(train), str(work / "run"), config=config)
    seconds = round(time.process_time() - began, 1)
    figures = {}
    for name, model in (("untrained", work / "base"), ("trained", work / "run" / "model")):
        figures[name] = measured(work / f"eval_{name}", model, test)
    return {"seed": seed, "train_cpu_seconds": seconds, **figures}


def measured(out, model, test):
    """Figures of a model on test cases, by `adp eval`."""
    suite = Suite(name="made", environment=HOME, tasks=str(test), scorers=("tool_f1",),
                  limits={"max_turns": 2})  # fmt: skip
    policy = {"name": "transformers", "model": str(model), "temperature": 0, "max_tokens": 48}
    result = evaluate(suite, policy, str(out), EvaluateOptions())
    figures = (figure for scorer in result.scores.scorers for figure in scorer.figures)
    return {figure.name: round(figure.value, 4) for figure in figures
            if figure.name in FIGURES and figure.value is not None}  # fmt: skip


def main(arguments=None):
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--tests", type=int, default=40)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "generators.json")
    parser.add_argument("--only-learning", action="store_true")
    given = parser.parse_args(arguments)
    results = {"samples": given.samples, "steps": given.steps, "tests": given.tests}
    with tempfile.TemporaryDirectory() as folder:
        if not given.only_learning:
            results["generators"] = measure_generators(Path(folder), given.samples)
        results["learning"] = []
        for seed in given.seeds:
            work = Path(folder) / f"seed-{seed}"
            work.mkdir()
            results["learning"].append(learn(work, seed, given.samples, given.steps, given.tests))
            print(json.dumps(results["learning"][-1]), flush=True)
    given.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
