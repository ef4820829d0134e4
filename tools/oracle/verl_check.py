"""verl's side of the comparison: what it is asked, and what it has to answer."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from adp.core.answers.hendrycks import is_equiv
from adp.rendering.chat import chats_of
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from adp.trainers.export.messages import MessageOptions, plain_message
from adp.trainers.export.run import export_rows
from adp.trainers.rollouts.et_agent import EtAgentReward, EtAgentSettings
from adp.trainers.rollouts.reward import FinishedRollout, RewardStage
from adp_schema.model import Step, Task, Trajectory
from adp_schema.store import Store
from tools.oracle.differences import kind_of

_GOOD = "<think>so</think><answer>It is \\boxed{1/2}.</answer>"
_CALL = "<think>a</think><python>1/2</python><result>0.5</result>"
_TEXTS = (_GOOD, _CALL + _GOOD, 2 * _CALL + _GOOD, _GOOD.replace("1/2", "2"), "no tags", "")
ROLLOUTS = len(_TEXTS)
RESPONSES = [
    {"text": text, "group": source, "source": source, "truth": truth, "step": 49}
    for text in _TEXTS
    for source, truth in (("aime24", "\\frac12"), ("hotpotqa", '["1/2", "a half"]'))
]
PIECES = (
    *("\\frac", "\\dfrac", "tfrac", "\\sqrt", "\\text{ ", "\\left(", "\\right)", "\\%", "\\\\%"),
    *("\\$", "^\\circ", "^{\\circ}", "\\!", "\\\\", "{", "}", "0.5", ".5", "1", "2", "-", "/"),
    *("=", "x", "xy", " ", "\n"),
)
PAIRS = 5_000
STEPS = 100
"""Steps of a training, as the call in the README says."""

FAMILY = ("qwen2.5", "qwen3", "llama3.1")


def prepare(folder: Path, runs: Store, data: Store | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The jobs for verl, and what is wanted of each."""
    jobs: dict[str, Any] = {}
    wanted: dict[str, Any] = {}

    def job(name: str, what: str, family: str, **more: str) -> None:
        work = str(folder / "work" / name)
        jobs[name] = {"what": what, "tokenizer": str(folder / family), "work": work, **more}

    stores = {"": runs, **({"real samples: ": data} if data is not None else {})}
    for prefix, store in stores.items():
        out = folder / "exports" / str(len(jobs))
        if any(run.task is not None for run in store.trajectories()):
            export_rows(store, "verl-rl", str(out))
            job(f"{prefix}rl", "rl", FAMILY[0], folder=str(out))
            wanted[f"{prefix}rl"] = pq.read_table(out / "train.parquet").to_pylist()
        for family in FAMILY:
            name = f"{prefix}sft, {family}"
            out = folder / "exports" / str(len(jobs))
            export_rows(store, "verl-sft", str(out), model=str(folder / family))
            job(name, "sft", family, folder=str(out))
            wanted[name] = pq.read_table(out / "train.parquet").to_pylist()
    for family in FAMILY:
        name = f"verl's own data set, {family}"
        path = folder / f"own {family}.json"
        rows, wanted[name] = verl_rows(runs, folder / family)
        path.write_text(json.dumps(rows), encoding="utf-8")
        job(name, "own", family, messages=str(path))
    out = folder / "exports" / str(len(jobs))
    export_rows(runs, "verl-rl", str(out), {"reward": "et_agent"})
    name = "ET-Agent's reward"
    job(name, "rewards", FAMILY[0], folder=str(out))
    jobs[name] |= {"responses": RESPONSES, "rollouts": ROLLOUTS}
    name = "formulas that are the same"
    job(name, "formulas", FAMILY[0])
    jobs[name]["pairs"] = formula_pairs()
    job("weights that are no whole numbers", "fractions", FAMILY[0])
    return jobs, wanted


def verl_rows(store: Store, model: Path) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """Messages for verl's own data set, and what our renderer trains of them."""
    renderer = Renderer.load(str(model), RenderOptions())
    rows: list[dict[str, Any]] = []
    texts: list[list[str]] = []
    for trajectory in store.trajectories():
        for chat in chats_of(trajectory).chats:
            rendered = renderer.chat(chat)
            if rendered.lost:
                continue
            messages = [plain_message(message, MessageOptions()) for message in chat.messages]
            rows.append(
                {"messages": messages, **({"tools": list(chat.tools)} if chat.tools else {})}
            )
            spans = [(span, row.text) for row in rendered.rows for span in row.spans]
            texts.append([text[first:end] for (_, first, end), text in sorted(spans)])
    return rows, texts


def compare(
    jobs: dict[str, Any], wanted: dict[str, Any], answers: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """What verl answered, and what of it must not be."""
    result: dict[str, Any] = {}
    faults: list[str] = []
    for name, job in jobs.items():
        answer = answers[name]
        if "error" in answer:
            faults.append(f"{name}: {answer['error']}")
            continue
        rows = answer["rows"]
        if job["what"] == "fractions":
            result[name] = rows[0]
            faults += [] if rows[0]["sum"] == 6.0 else [f"{name}: {rows[0]}"]
        elif job["what"] == "rewards":
            result[name], wrong = of_rewards(job["responses"], rows)
            faults += [f"{name}: {wrong} rewards differ"] if wrong else []
        elif job["what"] == "formulas":
            pairs = zip(job["pairs"], rows, strict=True)
            wrong = sum(is_equiv(*pair) != row["same"] for pair, row in pairs)
            same = sum(row["same"] for row in rows)
            result[name] = {"pairs": len(rows), "the same": same}
            faults += [f"{name}: {wrong} pairs differ"] if wrong else []
        elif job["what"] == "own":
            result[name] = of_own(wanted[name], rows)
        else:
            check = of_rl if job["what"] == "rl" else of_sft
            wrong = sum(
                not check(match, row) for match, row in zip(wanted[name], rows, strict=False)
            )
            wrong += abs(len(wanted[name]) - len(rows))
            result[name] = {"rows": len(rows), "differences": {"the same": len(rows) - wrong}}
            faults += [f"{name}: {wrong} rows differ"] if wrong else []
    return result, faults


def of_rl(fields: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether verl has the prompt, the truth and a reward for it."""
    return bool(
        row["prompt"] == fields["prompt"]
        and row["data_source"] == fields["data_source"]
        and row["ground_truth"] == fields["reward_model"]["ground_truth"]
        and row["index"] == fields["extra_info"]["index"]
        and (row["right"], row["wrong"]) == (1.0, 0.0)
    )


def formula_pairs() -> list[tuple[str, str]]:
    """Formulas put together at random of what the clean-up knows, in pairs."""
    draw = random.Random(0)
    texts = ["".join(draw.choices(PIECES, k=draw.randrange(7))) for _ in range(PAIRS)]
    # A formula beside itself with other spaces and signs is often the same.
    others = [text.replace(" ", "").replace("dfrac", "frac") for text in texts]
    return [*zip(texts, others, strict=True), *pairwise(texts)]


def of_rewards(
    responses: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> tuple[dict[str, Any], int]:
    """What our own reward gives for the same responses, and how many of verl's differ."""
    rollouts = []
    for response, row in zip(responses, rows, strict=True):
        truth = response["truth"]
        answers = truth if truth.startswith("[") else json.dumps([truth])
        run = Trajectory(
            task=Task(answers=answers, dataset=response["source"]),
            steps=[Step(source="agent", kind="llm_turn", text=response["text"])],
        )
        rollouts.append(FinishedRollout(response["group"], run, response_tokens=row["tokens"]))
    stage = RewardStage(responses[0]["step"], STEPS)
    wanted = EtAgentReward(EtAgentSettings(form="tags"))(rollouts, stage)
    wrong = sum(
        reward is None or abs(reward - row["reward"]) > 1e-9
        for reward, row in zip(wanted, rows, strict=True)
    )
    return {"rows": len(rows), "rewards": [round(row["reward"], 4) for row in rows]}, wrong


def of_sft(fields: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether verl trains the same tokens with the same weights."""
    return bool(row["ids"] == fields["input_ids"] and row["mask"] == fields["loss_mask"])


def of_own(texts: list[list[str]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What verl's own data set trains of the same chats: why ours lies beside the rows."""
    kinds: Counter[str] = Counter()
    for text, row in zip(texts, rows, strict=True):
        if "error" in row:
            kinds[f"stops: {row['error'].split(':')[0]}"] += 1
        else:
            kinds[kind_of(text, row["trained"])] += 1
    return {"rows": len(rows), "differences": dict(sorted(kinds.items()))}
