"""How much of everything the loop does. Budgets are steps, never seconds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes of one run.

    Attributes:
        kinds: kinds of questions.
        pool: episodes of the teachers.
        leaked: of these, episodes at held-out tasks, which must not be trained on.
        informed: episodes in which the untrained model acts and an expert helps it.
        curated: trajectories that are trained on.
        copy_steps: steps of stage 0, at most.
        sft_steps: steps of supervised training.
        packs: packs of 640 tokens in a step of it.
        held_out: tasks that are measured on.
        probes: tasks for the pairs.
        early: share of good calls beside which an early answer is noted.
        dpo_steps: steps of DPO.
    """

    kinds: tuple[str, ...] = ("c1", "c2", "c3", "sum", "cmp")
    pool: int = 12000
    leaked: int = 300
    informed: int = 300
    curated: int = 4000
    copy_steps: int = 500
    sft_steps: int = 1500
    packs: int = 2
    held_out: int = 300
    probes: int = 600
    early: float = 0.2
    dpo_steps: int = 90


DEMO = Scale()
QUICK = Scale(
    kinds=("c1",),
    pool=1000,
    leaked=40,
    informed=20,
    curated=600,
    sft_steps=220,
    packs=1,
    held_out=60,
    probes=30,
    dpo_steps=4,
)
"""For a minute of one core: it learns to look one value up, and DPO only shows that it runs."""

SCALES = {"demo": DEMO, "quick": QUICK}
