"""Losses of preference training: how the losses of M3 are said in TRL's terms.

TRL takes a list of loss types with weights. M3 (``pref_loss`` in its train_lora.json) takes one
name, and has a smoothing and an SFT term of its own. The table here says which of TRL's settings
compute the same, or what differs. In the formulas r_c and r_r are the log-ratios of the chosen and
the rejected side to the reference, z = r_c - r_r, sig the logistic function, β ``beta`` and
ε ``label_smoothing``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adp_schema.errors import UsageError

REFERENCE_FREE = ("orpo", "simpo")
"""Losses that compare with no reference. TRL's DPOTrainer has none of them; ours adds them."""

TRL_LOSSES = (
    "sigmoid",
    "hinge",
    "ipo",
    "exo_pair",
    "nca_pair",
    "robust",
    "bco_pair",
    "sppo_hard",
    "aot",
    "aot_unpaired",
    "apo_zero",
    "apo_down",
    "discopop",
    "sft",
    "sigmoid_norm",
)
"""Loss types of TRL's DPOTrainer."""

SMOOTHED = frozenset({"sigmoid", "robust", "exo_pair", "aot", "aot_unpaired"})
"""Losses in which ``label_smoothing`` means something; TRL ignores it elsewhere without a word."""

EXO_SMOOTHING = 1e-3
"""Smoothing of ``exo_pair`` when none is given, as its paper and M3 have it."""


@dataclass(frozen=True)
class M3Loss:
    """One loss of M3.

    Attributes:
        name: M3's ``pref_loss``.
        formula: what M3 computes for one pair.
        loss_type: the loss type that is set instead.
        difference: what is computed differently; empty when nothing is.
    """

    name: str
    formula: str
    loss_type: str
    difference: str = ""


_SMOOTHED_SIGMOID = (
    "None. TRL's sigmoid has no smoothing; with ε > 0 the same value is the sum "
    "2(1-ε)·sigmoid - (1-2ε)·robust, which is set for you."
)

M3_LOSSES: tuple[M3Loss, ...] = (
    M3Loss("sigmoid", "-(1-ε)·log sig(βz) - ε·log sig(-βz)", "sigmoid", _SMOOTHED_SIGMOID),
    M3Loss("robust", "[-(1-ε)·log sig(βz) + ε·log sig(-βz)] / (1-2ε)", "robust"),
    M3Loss(
        "exo_pair",
        "sig(βz)·(log sig(βz) - log(1-ε)) + sig(-βz)·(log sig(-βz) - log ε)",
        "exo_pair",
        "None. TRL refuses ε = 0; 0.001 is set then, as M3 does.",
    ),
    M3Loss("hinge", "max(0, 1 - βz)", "hinge"),
    M3Loss(
        "ipo",
        "(z - 1/(2β))², log-probabilities averaged over the tokens of a side",
        "ipo",
        "None. TRL averages over the tokens too.",
    ),
    M3Loss(
        "bco_pair",
        "-log sig(βr_c - δ) - log sig(-(βr_r - δ)), δ the running mean of βr_c and βr_r",
        "bco_pair",
        "TRL has no δ: it is 0.",
    ),
    M3Loss("sppo_hard", "(r_c - 0.5/β)² + (r_r + 0.5/β)²", "sppo_hard"),
    M3Loss("nca_pair", "-log sig(βr_c) - 0.5·log sig(-βr_c) - 0.5·log sig(-βr_r)", "nca_pair"),
    M3Loss(
        "aot_pair",
        "smoothed sigmoid of sorted r_c minus sorted r_r, sorted over the batch",
        "aot_unpaired",
        "None but the name.",
    ),
    M3Loss(
        "aot",
        "smoothed sigmoid of the sorted log π(c) - log π(r) minus the sorted ones of the reference",
        "aot",
    ),
    M3Loss("apo_zero", "1 - sig(βr_c) + sig(βr_r)", "apo_zero"),
    M3Loss("apo_down", "sig(βr_c) + 1 - sig(βz)", "apo_down"),
    M3Loss(
        "discopop",
        "-log sig(u)·(1-m) + e^(-u)·m, u = βz, m = sig(u/0.05)",
        "discopop",
        "None. TRL calls the 0.05 discopop_tau.",
    ),
    M3Loss(
        "orpo",
        "-p_c - β·log sig(o), p the average log-probability of a side, o the log of the odds ratio",
        "orpo",
        "None. TRL's own ORPO is experimental and takes the SFT term over the prompt too, so "
        "it is computed here, on TRL's DPOTrainer.",
    ),
    M3Loss(
        "simpo",
        "-log sig(β·(p_c - p_r - gamma/β)), p the average log-probability of a side",
        "simpo",
        "None. TRL has it in the experimental CPOTrainer only, so it is computed here, on TRL's "
        "DPOTrainer.",
    ),
)
"""The losses of M3, and what is set for them."""

M3_SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("pref_beta", "beta", ""),
    (
        "dpo_label_smoothing",
        "label_smoothing",
        "Where the loss has no smoothing, M3 ignores it; in our own configuration it is refused.",
    ),
    (
        "pref_ftx",
        "loss_type: [..., sft], loss_weights: [..., pref_ftx]",
        "M3 averages over the tokens of a side, then over the sides; TRL averages over all "
        "tokens of the batch. The same when all chosen sides of a batch are equally long. With "
        "orpo and simpo it is computed as in M3.",
    ),
    ("simpo_gamma", "simpo_gamma", ""),
    (
        "ld_alpha",
        "ld_alpha",
        "M3 weighs the verbose rest of the policy's log-probability only; TRL also that of the "
        "reference, so that log-ratios begin at 0. M3 finds the rest by position, which counts "
        "tool results; TRL counts trained tokens.",
    ),
    (
        "ref_model, ref_model_adapters",
        "reference",
        "Without them M3 takes the base model, also when the policy began as an adapter. Here "
        "the adapter that the policy began with is the reference; `reference: base` is as in M3.",
    ),
    ("(always reverse KL)", "f_divergence_type", "M3 has no setting for it."),
)
"""Settings of M3 beside the loss: its name, ours, and what differs."""


def from_m3(values: Mapping[str, Any]) -> dict[str, Any]:
    """Say M3's preference settings in our terms.

    Args:
        values: keys of M3's train_lora.json, such as ``pref_loss`` and ``pref_beta``; others are
            ignored.

    Returns:
        Values for the section of the options of DPO.

    Raises:
        UsageError: M3 has no loss of that name.
    """
    by_name = {loss.name: loss for loss in M3_LOSSES}
    name = str(values.get("pref_loss") or "sigmoid")
    if name not in by_name:
        known = ", ".join(by_name)
        raise UsageError(f"pref_loss: M3 has no loss '{name}'; it has {known}")
    results: dict[str, Any] = {"loss_type": [by_name[name].loss_type]}
    weight = float(values.get("pref_ftx") or 0)
    # M3 leaves out what is smaller.
    if weight > 1e-6:
        results["loss_type"].append("sft")
        results["loss_weights"] = [1.0, weight]
    for old, new in (
        ("pref_beta", "beta"),
        ("dpo_label_smoothing", "label_smoothing"),
        ("ld_alpha", "ld_alpha"),
    ):
        if values.get(old) is not None:
            results[new] = values[old]
    if results.get("label_smoothing") and by_name[name].loss_type not in SMOOTHED:
        # M3 ignores it there; TRL does too, but we refuse what has no effect.
        del results["label_smoothing"]
    if name == "simpo" and values.get("simpo_gamma") is not None:
        results["simpo_gamma"] = values["simpo_gamma"]
    return results


@dataclass(frozen=True)
class Terms:
    """What the trainer is given.

    Attributes:
        loss_type: loss types of TRL, or one of `REFERENCE_FREE`, perhaps with ``sft``.
        weights: one for each.
        label_smoothing: for those that have it.
    """

    loss_type: tuple[str, ...]
    weights: tuple[float, ...]
    label_smoothing: float


def terms(
    loss_type: Sequence[str], loss_weights: Sequence[float] | None, label_smoothing: float
) -> Terms:
    """Check the loss settings and turn them into what TRL computes as they say.

    A sigmoid with smoothing becomes a sum of two of TRL's losses: with S = -log sig(βz) and
    R = [(1-ε)S - ε(-log sig(-βz))] / (1-2ε), the smoothed sigmoid is 2(1-ε)S - (1-2ε)R.

    Args:
        loss_type: names, as in TRL; also ``orpo`` and ``simpo``.
        loss_weights: one for each; None for 1 each.
        label_smoothing: ε, from 0 to below 0.5.

    Raises:
        UsageError: a name is unknown, or the settings do not fit together.
    """
    names = tuple(loss_type)
    weights = tuple(float(w) for w in loss_weights) if loss_weights else (1.0,) * len(names)
    _check(names, weights, label_smoothing)
    smoothing = label_smoothing
    if "exo_pair" in names and smoothing == 0:
        smoothing = EXO_SMOOTHING
    if smoothing == 0 or "sigmoid" not in names:
        return Terms(names, weights, smoothing)
    sums: dict[str, float] = {}
    for name, weight in zip(names, weights, strict=True):
        if name == "sigmoid" and label_smoothing > 0:
            parts = {"sigmoid": 2 * (1 - smoothing), "robust": -(1 - 2 * smoothing)}
        else:
            parts = {name: 1.0}
        for part, factor in parts.items():
            sums[part] = sums.get(part, 0.0) + weight * factor
    return Terms(tuple(sums), tuple(sums.values()), smoothing)


def _check(names: tuple[str, ...], weights: tuple[float, ...], smoothing: float) -> None:
    known = (*TRL_LOSSES, *REFERENCE_FREE)
    for name in names:
        if name not in known:
            raise UsageError(f"loss_type: there is no loss '{name}'; there are {', '.join(known)}")
    if not names:
        raise UsageError("loss_type: name at least one loss")
    if len(weights) != len(names):
        raise UsageError(
            f"loss_weights: {len(weights)} weights for {len(names)} losses; give one for each"
        )
    if not 0 <= smoothing < 0.5:
        raise UsageError("label_smoothing: must be 0 or more and below 0.5")
    if smoothing and not SMOOTHED & set(names):
        raise UsageError(
            f"label_smoothing: has no effect on {', '.join(names)}; it is for "
            f"{', '.join(sorted(SMOOTHED))}"
        )
    free = [name for name in names if name in REFERENCE_FREE]
    if free and (len(free) > 1 or set(names) - {free[0], "sft"}):
        raise UsageError(f"loss_type: {free[0]} compares with no reference and goes with sft only")
