"""How much of everything the loop does. Budgets are steps, never seconds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes of one run.

    Attributes:
        kinds: kinds of questions.
        width: width of the model.
        layers: its layers.
        device: cpu or cuda.
        pool: episodes of the teachers at tasks of their own.
        leaked: tasks of the split test that the teachers are given too, by mistake.
        leaks: episodes at each of these.
        informed: episodes in which the untrained model acts and an expert helps it.
        curated: trajectories that are trained on.
        copy_steps: steps of stage 0, at most.
        lesson_steps: steps of the lessons in the form of a chat, at most.
        sft_steps: steps of supervised training.
        packs: packs of 640 tokens in a step of it.
        held_out: tasks that are measured on, in each set.
        probes: tasks for the pairs.
        early: share of good calls beside which an early answer is noted.
        dpo_steps: steps of DPO.
        more_steps: steps of the control that is trained on the same data for longer.
        samples: episodes from which rejection sampling keeps those that are solved.
        rejection_steps: steps of training on these.
        grpo_steps: steps of GRPO in the environment, of 8 episodes at each of 8 tasks.
    """

    kinds: tuple[str, ...] = ("c1", "c2", "c3", "sum", "cmp")
    width: int = 128
    layers: int = 2
    device: str = "cpu"
    pool: int = 16000
    leaked: int = 300
    leaks: int = 6
    informed: int = 300
    curated: int = 4000
    copy_steps: int = 500
    lesson_steps: int = 400
    sft_steps: int = 1500
    packs: int = 4
    held_out: int = 300
    probes: int = 600
    early: float = 0.2
    dpo_steps: int = 90
    more_steps: int = 260
    samples: int = 2000
    rejection_steps: int = 208
    grpo_steps: int = 46


DEMO = Scale()
QUICK = Scale(
    kinds=("c1",),
    pool=1000,
    leaked=20,
    leaks=2,
    informed=20,
    curated=400,
    sft_steps=220,
    packs=1,
    held_out=60,
    probes=30,
    dpo_steps=4,
    more_steps=4,
    samples=30,
    rejection_steps=4,
    grpo_steps=2,
)
"""For a minute of one core: it learns to look one value up; the rest only shows that it runs."""

WIDE = Scale(width=512, layers=6, device="cuda", sft_steps=600, probes=300)
"""For a GPU: 20 million parameters, and fewer steps. Its rates of learning were not tuned."""

SCALES = {"demo": DEMO, "quick": QUICK, "wide": WIDE}
