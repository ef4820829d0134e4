"""What ``adp train`` says: the plan, what became of another system's settings, and the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adp.cli.text import counted, say
from adp.rendering.spans import MORE_ROWS
from adp.trainers.config import TrainConfig
from adp.trainers.method import TrainingPlan
from adp.trainers.precision import Precision
from adp.trainers.run import Trained


def say_plan(config: TrainConfig, plan: TrainingPlan) -> None:
    """Print what is about to be done."""
    lora = config.lora
    what = "all weights" if lora is None else f"LoRA of rank {lora.r}"
    if config.model.adapter_name_or_path is not None:
        what = "an adapter, further"
    made = " (a toy that is made here; --model names another)" if config.is_tiny else ""
    say(f"model {config.model.model_name_or_path}{made}: {what}")
    if config.method == "grpo" and config.grpo.environment is not None:
        say(
            f"{counted(plan.rows, 'task')} in {config.grpo.environment.name}: "
            f"{config.grpo.num_generations} episodes of each on one world; the first prompt has "
            f"{counted(plan.longest, 'token')}"
        )
    elif config.method == "grpo":
        say(
            f"{counted(plan.rows, 'prompt')}: {plan.tokens:,} tokens; the longest has "
            f"{plan.longest:,}; {config.grpo.num_generations} answers to each"
        )
    elif config.method == "distill" and config.distill.lmbda == 1:
        say(
            f"{counted(plan.rows, 'prompt')}, each before a step of the store: {plan.tokens:,} "
            f"tokens; the model writes {config.distill.max_completion_length:,} at most to each"
        )
    else:
        share = f"{100 * plan.trained / plan.tokens:.1f} %" if plan.tokens else "none"
        joined = config.training.packing and plan.sequences != plan.rows
        joined = joined and config.data.replay is None
        packed = f" in {plan.sequences:,} packs" if joined else ""
        say(
            f"{counted(plan.rows, 'row')}{packed}: {plan.tokens:,} tokens, {plan.trained:,} of "
            f"them trained ({share}); the longest row has {plan.longest:,}"
        )
    _say_rest(config, plan)


def _say_rest(config: TrainConfig, plan: TrainingPlan) -> None:
    if config.method == "distill":
        distill = config.distill
        say(
            f"teacher {distill.teacher_model_name_or_path}: beta {distill.beta:g}, "
            f"{100 * distill.lmbda:g} % of the steps on what the model writes itself"
        )
    if replay := plan.facts.get("replay"):
        kept = f", from a reservoir of {replay['reservoir']:,}" if replay["reservoir"] else ""
        say(
            f"{counted(replay['rows'], 'row')} to replay: {replay['replayed_a_step']:,} beside "
            f"{replay['new_a_step']:,} new ones in each step{kept}"
        )
    if plan.eval_rows:
        say(f"{counted(plan.eval_rows, 'row')} to measure the loss on")
    if config.evaluate is not None:
        section = config.evaluate
        kept = ", and the best model is kept" if section.keep_best else ""
        say(
            f"tried on {section.env} every {counted(section.every_steps, 'step')}: "
            f"{section.metric} is watched{kept}"
        )
    unit = {"sft": " steps", "dpo": " pairs"}.get(config.method, "")
    unit = " tasks" if config.grpo.environment is not None else unit
    for reason, count in sorted(plan.dropped.items()):
        say(f"dropped {count:,}{unit}: {reason}")
    for note, count in sorted(plan.notes.items()):
        hint = "; --set render.history=one_row writes one each" if note == MORE_ROWS else ""
        say(f"note {count:,}: {note}{hint}")
    training, launch = config.training, config.launch
    batch = training.per_device_train_batch_size * training.gradient_accumulation_steps
    many = f" on {launch.processes} processes" if launch.processes > 1 else ""
    zero = f", ZeRO-{launch.zero}" if launch.zero else ""
    zero = ", FSDP2 (not tested on GPUs)" if launch.fsdp else zero
    say(
        f"{counted(plan.steps, 'step')} of {batch * launch.processes} rows{many}{zero}, "
        f"learning rate {config.learning_rate:g}"
    )
    say(Precision.from_plain(plan.precision).sentence())
    for warning in plan.warnings:
        say(f"warning: {warning}")


def say_done(done: Trained, out: str) -> None:
    """Print what came out, and what can be done with it."""
    result = (done.record or {}).get("result", {})
    for what in ("reward", "loss"):  # the loss of GRPO is about 0 all the time
        if f"first_{what}" in result:
            measured = f", eval_loss {result['eval_loss']:.4f}" if "eval_loss" in result else ""
            say(
                f"{what} {result[f'first_{what}']:.4f} -> {result[f'last_{what}']:.4f}"
                f"{measured if what == 'loss' else ''} after {counted(result['steps'], 'step')}"
            )
            break
    best = result.get("best")
    if best:
        kept = f": {out}/{best['folder']}" if "folder" in best else ""
        say(f"best {best['metric']} {best['value']:.4g} at step {best['step']:,}{kept}")
    if "stopped_early" in result:
        say(f"stopped early: {result['stopped_early']}")
    what = "adapter" if (Path(out) / "adapter").exists() else "model"
    say(f"{what}: {out}/{what}; record: {out}/run.json")
    if "episodes" in result:
        _say_episodes(result["episodes"], out)
    if what == "adapter":
        say(f"next: adp merge-adapter {out} -o MERGED")


def _say_episodes(counts: dict[str, Any], out: str) -> None:
    """How many episodes there were, and what kept the others from teaching anything."""
    total, broken, unrewarded = (counts[name] for name in ("episodes", "broken", "without_reward"))
    parts = [counted(total, "episode")]
    if broken:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in counts["errors"].items())
        parts.append(f"{broken:,} broke ({reasons})")
    if unrewarded:
        parts.append(f"{unrewarded:,} without a reward")
    say(f"{', '.join(parts)}: {out}/rollouts; adp stats {out}/rollouts")
    for reason, message in counts["error_messages"].items():
        say(f"  {reason}: {message}")
    if total and broken + unrewarded == total:
        say("warning: no episode had a reward, so the model has learnt nothing from them")
