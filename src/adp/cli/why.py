"""``adp why``: the story of one trajectory."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.text import console, epilog, print_json, say
from adp.curation.why import Story
from adp.curation.why import why as run

EPILOG = epilog("adp why dataset booking-2", 2, 5)

_WORDS = {
    "dropped": "out: a stage dropped it",
    "kept": "in",
    "left_out": "out: no output takes it",
    "waiting": "out: it stayed in reserve",
}


def why(
    path: Annotated[str, typer.Argument(metavar="STORE", help="A curated store, or any store.")],
    name: Annotated[str, typer.Argument(metavar="ID", help="Its id, or a part that is enough.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the story as JSON.")] = False,
) -> None:
    """Say why a trajectory is in a data set, or out, and where it comes from.

    Stage by stage, with what each op noted and measured. Of a store that no recipe made, only
    where the trajectory comes from is known.
    """
    story = run(path, name)
    if as_json:
        print_json(asdict(story))
    else:
        _tell(story)


def _tell(story: Story) -> None:
    say(story.trajectory_id)
    if story.copy_of is not None:
        say(f"a copy of {story.copy_of}")
    if story.verdict is not None:
        say(_WORDS[story.verdict])
    for stage in story.stages:
        notes = stage["notes"]
        if stage["name"] != "output" and not notes:
            ended = any(s["notes"] for s in story.stages[: stage["stage"]] if _ends(s))
            say(f"{stage['stage']}  {stage['name']}: {'not there any more' if ended else 'passed'}")
        for note in notes:
            where = f" step {note['step']}" if note["step"] is not None else ""
            because = f": {note['reason']}" if note["reason"] else ""
            say(f"{stage['stage']}  {stage['name']}: {note['verdict']}{where}{because}")
            if note["evidence"]:
                say(f"     {note['evidence']}")
    if story.columns:
        console().print()
        width = max(map(len, story.columns))
        for key, value in story.columns.items():
            say(f"{key.ljust(width)}  {value}")
    if story.provenance:
        console().print()
        records = ", ".join(map(str, story.provenance.get("source_records") or []))
        place = story.provenance.get("source_file", "no file")
        say(f"from {place}{f'#{records}' if records else ''}")
        if "converter" in story.provenance:
            version = story.provenance.get("converter_version", "")
            say(f"read by {story.provenance['converter']} {version}")
        say(f"made by {', '.join(story.lineage)}")


def _ends(stage: dict[str, object]) -> bool:
    notes = stage["notes"]
    assert isinstance(notes, list)
    return any(note["verdict"] == "dropped" for note in notes)
