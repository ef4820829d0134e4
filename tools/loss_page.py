"""The page of the losses of preference training, from the table in `adp.trainers.losses`."""

from __future__ import annotations

from adp.trainers.losses import M3_LOSSES, M3_SETTINGS, SMOOTHED
from tools.markdown import NOTE, cell

HEAD = """\
# Losses of DPO

`adp train dpo` names losses as TRL does: `dpo.loss_type`, a list, with `dpo.loss_weights`. M3 names
one in its `train_lora.json`; `adp train dpo --config train_lora.json` reads that file as it is.
This page says what stands for each loss of M3, and what differs. Each line is checked by a test:
TRL's own code, on random log-probabilities, against M3's formula.

z = r_c - r_r, where r_c and r_r are the log-probabilities of the chosen and the rejected side under
the policy minus those under the reference; sig is the logistic function, β is `beta` (M3:
`pref_beta`), ε is `label_smoothing` (M3: `dpo_label_smoothing`).
"""


def losses_page() -> str:
    """The page ``docs/dpo-losses.md``."""
    lines = [
        NOTE,
        HEAD,
        "| M3 | what M3 computes | `dpo.loss_type` | difference |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {item.name} | {cell(item.formula)} | {item.loss_type} | {item.difference or 'None.'} |"
        for item in M3_LOSSES
    ]
    lines += ["", "## Other settings", "", "| M3 | here | difference |", "|---|---|---|"]
    lines += [f"| {old} | {new} | {words or 'None.'} |" for old, new, words in M3_SETTINGS]
    smoothed = ", ".join(sorted(SMOOTHED))
    lines += [
        "",
        f"`label_smoothing` has an effect on {smoothed}, and is refused for other losses, which "
        "would ignore it. Sums of losses that hold orpo or simpo may hold sft besides, nothing "
        "else.",
        "",
    ]
    return "\n".join(lines)
