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
        held_out: tasks that are measured on.
        before: of these, tasks that the untrained model is tried on.
        probes: tasks for the pairs.
        early: share of good calls beside which an early answer is noted.
        dpo_steps: steps of DPO.
    """

    kinds: tuple[str, ...] = ("c1", "c2", "c3", "sum", "cmp")
    pool: int = 9000
    leaked: int = 300
    informed: int = 300
    curated: int = 4000
    copy_steps: int = 500
    sft_steps: int = 1300
    held_out: int = 300
    before: int = 100
    probes: int = 600
    early: float = 0.35
    dpo_steps: int = 90


DEMO = Scale()
ARM = Scale(sft_steps=800)
QUICK = Scale(
    kinds=("c1", "c2"),
    pool=1200,
    leaked=40,
    informed=40,
    curated=700,
    sft_steps=200,
    held_out=100,
    before=30,
    probes=100,
    dpo_steps=10,
)
SCALES = {"demo": DEMO, "arm": ARM, "quick": QUICK}
