"""The model card: ``README.md`` beside what was trained, for people and, in its head, for the Hub.

It says what the model was made from: the base model with its license, the data with their licenses
and what was done to them, settings, figures, versions, and what is not known. All of it stands in
``run.json`` or in the stores; it holds no path of the machine and no name of a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from adp.stores.known_sources import find_source
from adp.stores.licenses import LicenseRow, assess, find_license
from adp.stores.markdown_text import escape
from adp.trainers.base_model import BaseModel, base_model
from adp.trainers.config import TrainConfig
from adp.trainers.evaluation.history import falls
from adp_schema.errors import AdpError
from adp_schema.manifest import write_atomic
from adp_schema.store import Store

CARD = "README.md"

METHODS = {
    "sft": "supervised fine-tuning on the agent's own steps",
    "dpo": "direct preference optimisation on pairs",
    "kto": "KTO on good and bad trajectories",
    "grpo": "GRPO on its own answers, by rewards",
    "reward": "training of a reward model on pairs",
    "distill": "distillation from a teacher",
}
"""Methods in words."""

_HUB = "huggingface.co/datasets/"
_MOST = 40
_SETTINGS = (
    "render.max_length", "render.window", "render.reasoning", "lora.r", "lora.lora_alpha",
    "lora.target_modules", "training.num_train_epochs", "training.max_steps",
    "training.per_device_train_batch_size", "training.gradient_accumulation_steps",
    "training.lr_scheduler_type", "training.warmup_steps", "training.packing",
    "distill.lmbda", "distill.beta", "distill.temperature",
    "model.load_in_4bit", "launch.processes", "launch.zero", "launch.fsdp",
)  # fmt: skip
_KEPT_BEST = "This is the model of step {step:,}, the best by {metric} ({value:.4g})."


@dataclass(frozen=True)
class CardFacts:
    """What a card says.

    Attributes:
        record: the record of the run.
        base: the base model.
        licenses: data sets by license, of the store that was trained on.
        adapter: whether an adapter was trained.
        best: the best evaluation, where this is the card of its model.
        teacher: the teacher of a distillation.
    """

    record: Mapping[str, Any]
    base: BaseModel
    licenses: Sequence[LicenseRow]
    adapter: bool
    best: Mapping[str, Any] | None = None
    teacher: BaseModel | None = None


def write_cards(config: TrainConfig, record: Mapping[str, Any], out: Path) -> None:
    """Write a card beside everything that a run trained.

    Args:
        config: the run.
        record: its record.
        out: its folder.
    """
    base = base_model(config.model.model_name_or_path)
    licenses = _licenses(config)
    named = config.distill.teacher_model_name_or_path if config.method == "distill" else None
    teacher = None if named is None else base_model(named)
    adapter = config.lora is not None or config.model.adapter_name_or_path is not None
    for name in ("adapter", "model", "best"):
        if (out / name).is_dir():
            best = record["result"].get("best") if name == "best" else None
            facts = CardFacts(record, base, licenses, adapter, best, teacher)
            write_atomic(out / name / CARD, card(facts))


def card(facts: CardFacts) -> str:
    """A card as text: the YAML that the Hub reads, and Markdown."""
    head = yaml.safe_dump(metadata(facts), sort_keys=False, allow_unicode=True, width=1000)
    sections = (
        _about(facts), _data(facts), _training(facts), _figures(facts), _use(facts),
        _limits(facts), _versions(facts),
    )  # fmt: skip
    text = "\n\n".join("\n".join(lines) for lines in sections if lines)
    return f"---\n{head}---\n\n{text}\n"


def metadata(facts: CardFacts) -> dict[str, Any]:
    """What the head says: keys that the Hub knows."""
    base, method = facts.base, facts.record["method"]
    head: dict[str, Any] = {}
    if base.repo is not None:
        head["base_model"] = base.repo
        head["base_model_relation"] = "adapter" if facts.adapter else "finetune"
    head["library_name"] = "peft" if facts.adapter else "transformers"
    head["pipeline_tag"] = "text-classification" if method == "reward" else "text-generation"
    if base.license is not None:
        head["license"] = base.license
        for name in ("license_name", "license_link"):
            if getattr(base, name) is not None:
                head[name] = getattr(base, name)
    repos = _repos(facts.licenses)
    if repos:
        head["datasets"] = repos
    head["tags"] = ["adp", "trl", method, *(["lora"] if facts.adapter else []), "agent", "tool-use"]
    return head


def _repos(rows: Iterable[LicenseRow]) -> list[str]:
    """Names on the Hub of the data sets that are known."""
    repos = set()
    for row in rows:
        source, certain = find_source(row.dataset, row.source_url)
        if source is not None and certain and source.url.startswith(_HUB):
            repos.add(source.url.removeprefix(_HUB))
    return sorted(repos)


def _licenses(config: TrainConfig) -> Sequence[LicenseRow]:
    """The data sets and licenses of the store that is trained on; none when it is gone."""
    if config.data.store is None:  # the model acts in an environment
        return ()
    try:
        return assess(Store.open(config.data.store)).rows
    except (AdpError, OSError):
        return ()


def _about(facts: CardFacts) -> list[str]:
    record, base = facts.record, facts.base
    what = "A LoRA adapter for" if facts.adapter else "All weights of"
    lines = [
        f"# {escape(base.name)}, trained by {record['method'].upper()}",
        "",
        f"{what} {escape(base.name)}, by {METHODS.get(record['method'], record['method'])}. "
        "Trained with adp on trajectories of agents, by "
        "[TRL](https://huggingface.co/docs/trl).",
    ]
    if facts.best is not None:
        lines += ["", _KEPT_BEST.format(**{**facts.best, "metric": escape(facts.best["metric"])})]
    if base.name == "tiny":
        lines += ["", "The base is a toy with random weights, made for trials: it knows nothing."]
    license_ = base.license or "not known; look at the page of the base model"
    more = f" ({escape(base.license_name)})" if base.license_name else ""
    lines += ["", f"License of the base model: {escape(license_)}{more}."]
    if facts.teacher is not None:
        lines += ["", _teacher(facts.teacher)]
    return lines


def _teacher(teacher: BaseModel) -> str:
    """Whose probabilities were learnt; its license may say what a model made so is for."""
    license_ = teacher.license or "not known; look at the page of the teacher"
    more = f" ({escape(teacher.license_name)})" if teacher.license_name else ""
    return f"Teacher: {escape(teacher.name)}. License of the teacher: {escape(license_)}{more}."


def _data(facts: CardFacts) -> list[str]:
    lines = ["## Data", "", *_table(("store", "use", "manifest"), _stores(facts))]
    if facts.licenses:
        rows = [
            (row.dataset, f"{row.trajectories:,}", row.id or row.license or "not stated",
             "; ".join(row.reasons) or None)
            for row in facts.licenses[:_MOST]
        ]  # fmt: skip
        lines += ["", *_table(("data set", "trajectories", "license", "to know"), rows)]
        if len(facts.licenses) > _MOST:
            lines += ["", f"{len(facts.licenses) - _MOST:,} more are not shown."]
    acts = [act for store in facts.record["stores"] for act in store["lineage"]]
    if acts:
        lines += ["", "What was done to them before, the first first:", ""]
        lines += [_act(act) for act in acts[:_MOST]]
    return lines


def _stores(facts: CardFacts) -> list[Sequence[str | None]]:
    return [(store["name"], store["use"], store["manifest"]) for store in facts.record["stores"]]


def _act(act: Mapping[str, Any]) -> str:
    options = act.get("options") or {}
    named = [f"{name}={value}" for name, value in sorted(options.items())
             if isinstance(value, str | int | float) and name != "recipe"]  # fmt: skip
    recipe = ", by a recipe" if options.get("recipe") else ""
    more = f" ({escape(', '.join(named), 160)})" if named else ""
    return f"- {escape(str(act.get('act')))}{more}{recipe}"


def _training(facts: CardFacts) -> list[str]:
    plan, record = facts.record["plan"], facts.record
    config = record["config"]
    share = f" ({100 * plan['trained'] / plan['tokens']:.1f} %)" if plan["tokens"] else ""
    lines = [
        "## Training",
        "",
        f"{plan['rows']:,} rows, {plan['tokens']:,} tokens, {plan['trained']:,} of them under the "
        f"loss{share}; the longest row has {plan['longest']:,}. "
        f"{record['result'].get('steps', 0):,} steps, seed {record['seed']}, learning rate "
        f"{record['learning_rate']:g}, computed in {record['precision'].get('compute', '-')}.",
    ]
    for what in ("dropped", "notes"):
        if plan[what]:
            title = "In no row:" if what == "dropped" else "Done differently from the store:"
            lines += ["", title, ""]
            lines += [f"- {escape(reason)}: {count:,}" for reason, count in plan[what].items()]
    rows = [(name, str(value)) for name in _SETTINGS if (value := _at(config, name)) is not None]
    return [*lines, "", *_table(("setting", "value"), rows)]


def _at(config: Mapping[str, Any], path: str) -> Any:
    value: Any = config
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _figures(facts: CardFacts) -> list[str]:
    result = facts.record["result"]
    rows: list[Sequence[str | None]] = []
    for what in ("loss", "reward"):
        if f"first_{what}" in result:
            values = f"{result[f'first_{what}']:.4f}, {result[f'last_{what}']:.4f}"
            rows.append((f"{what}, first and last step", values))
    if "eval_loss" in result:
        rows.append(("loss of held-out rows", f"{result['eval_loss']:.4f}"))
    if "stopped_early" in result:
        rows.append(("stopped early", result["stopped_early"]))
    lines = ["## Figures", "", *_table(("figure", "value"), rows)]
    tried = result.get("evaluations")
    if tried:
        section = facts.record["config"]["evaluate"]
        names = [name for name in ("success", "reward", section["metric"]) if name in tried[-1]]
        names = list(dict.fromkeys([*names, "episodes", "broken"]))
        cells = [[f"{item['step']:,}", *(_number(item.get(name)) for name in names)]
                 for item in tried]  # fmt: skip
        way = "less" if falls(section["metric"]) else "more"
        lines += [
            "",
            f"Tried in {escape(section['env'])} (tasks {escape(section['tasks'] or 'test:100')}), "
            f"{section['n'] or 1} a task; of {escape(section['metric'])} {way} is better:",
            "",
            *_table(("step", *names), cells),
        ]
    return lines


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def _use(facts: CardFacts) -> list[str]:
    if facts.record["method"] == "reward":
        return []
    base = facts.base.repo or "BASE"
    code = [
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        'tokenizer = AutoTokenizer.from_pretrained("THIS")',
    ]
    if facts.adapter:
        code = ["from peft import PeftModel", *code]
        code += [f'model = AutoModelForCausalLM.from_pretrained("{base}")',
                 'model = PeftModel.from_pretrained(model, "THIS")']  # fmt: skip
    else:
        code += ['model = AutoModelForCausalLM.from_pretrained("THIS")']
    return ["## Use", "", "```python", *code, "```"]


def _limits(facts: CardFacts) -> list[str]:
    lines = ["## Limits", ""]
    if not facts.record["result"].get("evaluations"):
        lines.append(
            "- It was not tried on tasks during its training: a loss says little of what it can do."
        )
    else:
        lines.append(
            "- The figures are of tasks by which checkpoints may have been chosen: other tasks are "
            "harder to say anything about."
        )
    if any(row.id is None for row in facts.licenses):
        lines.append("- The license of some of the data is not known.")
    kinds = sorted({kind for row in facts.licenses if (kind := _forbids(row)) is not None})
    lines += [f"- Some of the data are {kind}; see the table." for kind in kinds]
    lines.append("- It calls tools: let it act only where a wrong call does no harm.")
    return lines


def _forbids(row: LicenseRow) -> str | None:
    known = find_license(row.id)
    kinds = {"non-commercial": "not for commercial use", "no-derivatives": "not to be changed"}
    return None if known is None else kinds.get(known.kind)


def _versions(facts: CardFacts) -> list[str]:
    versions = facts.record["versions"]
    words = ", ".join(f"{name} {value}" for name, value in versions.items())
    return [
        "## Versions",
        "",
        f"{escape(words, 600)}. Configuration {facts.record['config_hash']}.",
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str | None]]) -> list[str]:
    """A table of Markdown; what comes from the data is escaped."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        cells = (escape(cell) if cell else "-" for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    return lines
