"""Trajectories for growing stores, each with its number and a hash of itself in every row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adp_schema.ids import digest, digest_file
from adp_schema.media import media_of_bytes
from adp_schema.model import Observation, Step, Task, ToolCall, Trajectory


def numbered(name: str, *, size: int = 200, blob: int | None = None) -> Trajectory:
    """A trajectory that can be checked from its name alone.

    Args:
        name: its source id; how many steps it has follows from it.
        size: characters of each text.
        blob: number of a picture that it shows.
    """
    seed = digest(name.encode())
    steps = []
    for number in range(2 + int(seed[:2], 16) % 5):
        word = digest(f"{seed}{number}".encode())
        text = (word * (size // 32 + 1))[:size]
        call = ToolCall(
            call_id=f"c{number}", kind="function", name="look", arguments_kind="object",
            arguments=json.dumps({"q": word}),
        )  # fmt: skip
        seen = Observation(source="environment", text=text[::-1], call_step=number, call=0)
        steps.append(
            Step(source="agent", kind="llm_turn", text=text, calls=[call], observations=[seen])
        )
    media = {}
    if blob is not None:
        picture = media_of_bytes(f"picture {blob} ".encode() * 50, "image/png")
        media[picture.media_id or ""] = picture
        part = [{"type": "media", "media_id": picture.media_id, "mime": "image/png"}]
        steps[0].content = json.dumps(part)
    task = Task(task_id=f"t{int(seed[2:4], 16) % 7}", instruction="look around")
    return Trajectory(
        trajectory_id=f"d/{name}", source_id=name, dataset="d", task_id=task.task_id, task=task,
        success=bool(int(seed[4], 16) % 2), steps=steps, media=media, tags=["a", seed],
    )  # fmt: skip


def plain(trajectory: Trajectory) -> dict[str, Any]:
    """All that a trajectory holds, but for seq and for blobs that it does not show."""
    steps = [
        {
            **step.model_dump(exclude_none=True),
            "calls": [call.model_dump(exclude_none=True) for call in step.calls],
            "observations": [
                observation.model_dump(exclude_none=True) for observation in step.observations
            ],
        }
        for step in trajectory.steps
    ]
    for number, step in enumerate(steps):  # what is numbered at the append
        step.setdefault("step", number)
        for name in ("calls", "observations"):
            for index, row in enumerate(step[name]):
                row.setdefault("step", step["step"])
                row.setdefault("call" if name == "calls" else "order", index)
    text = json.dumps(steps, default=str)
    return {
        **trajectory.model_dump(exclude={"seq"}, exclude_none=True),
        "steps": steps,
        "early": [
            early_observation.model_dump(exclude_none=True)
            for early_observation in trajectory.early_observations
        ],
        "links": [link.model_dump(exclude_none=True) for link in trajectory.links],
        "raw": [item.model_dump(exclude_none=True) for item in trajectory.raw],
        "task": trajectory.task and trajectory.task.model_dump(exclude_none=True),
        "media": {
            name: trajectory.media[name].model_dump(exclude_none=True)
            for name in sorted(trajectory.media)
            if name in text
        },
    }


def hashes(store: Path) -> dict[str, str]:
    """Hashes of all files of a store."""
    return {
        str(path.relative_to(store)): digest_file(str(path))
        for path in sorted(store.rglob("*"))
        if path.is_file()
    }
