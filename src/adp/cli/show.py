"""``adp show``: one trajectory for reading."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from adp.cli.manifest_text import top
from adp.cli.options import StorePath
from adp.cli.render_options import MaxLength, Settings, Template, Window, render_options
from adp.cli.text import Console as Screen
from adp.cli.text import console, counted, epilog, print_json, print_lines
from adp.stores.transcript import KINDS, TranscriptView, as_json, transcript
from adp_schema.errors import StoreError, UsageError
from adp_schema.model import Trajectory
from adp_schema.store import Store

if TYPE_CHECKING:
    from adp.rendering.render import Renderer

EPILOG = epilog("adp show my_store django-11099 --steps 0:10", 2, 5)


def show(
    path: StorePath,
    trajectory_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the trajectory, or its begin or end.")
    ],
    steps: Annotated[
        str | None, typer.Option(metavar="A:B", help="Steps from A up to, not including, B.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help=f"Show only this, repeatable: {', '.join(KINDS)}.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long texts.")] = False,
    json_wanted: Annotated[
        bool, typer.Option("--json", help="Print the trajectory as JSON, whole.")
    ] = False,
    mask: Annotated[
        bool, typer.Option("--mask", help="Show it as a model reads it, what is trained coloured.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="M", help="With --mask: whose tokens: folder, Hub name, tiny."
        ),
    ] = None,
    max_length: MaxLength = None,
    window: Window = None,
    chat_template: Template = None,
    settings: Settings = None,
) -> None:
    """Show one trajectory for reading: each call stands with its result.

    With --mask and --model: the rows of tokens that training makes of it.
    """
    if mask != (model is not None):
        raise UsageError("--mask and --model belong together: --mask --model tiny")
    if mask and json_wanted:
        raise UsageError("--json prints the trajectory; rows as data: adp tokens STORE -o ROWS")
    rendering = (max_length, window, chat_template, settings)
    if not mask and any(rendering):
        raise UsageError("options of rendering need --mask and --model")
    first, last = parse_steps(steps)
    view = TranscriptView(full=full, first=first, last=last, kinds=kind or ())
    trajectory = _trajectory(Store.open(path), trajectory_id)
    if json_wanted:
        print_json(as_json(trajectory))
        return
    screen = console()
    if model is not None:
        from adp.rendering.render import Renderer

        renderer = Renderer.load(model, render_options(*rendering))
        _show_rows(trajectory, renderer, screen, full=full)
        return
    print_lines(screen, transcript(trajectory, view))


def _trajectory(store: Store, trajectory_id: str) -> Trajectory:
    """A trajectory by its id.

    Raises:
        StoreError: there is none; of the id of a task, it says how to look at that.
    """
    try:
        return store.get(trajectory_id, resolve=True)
    except StoreError as error:
        if trajectory_id not in store.scan("tasks").collect()["task_id"]:
            raise
        quoted = trajectory_id.replace("'", "''")
        query = f"SELECT * FROM tasks WHERE task_id = '{quoted}'"
        raise StoreError(
            f"'{trajectory_id}' is a task, and no run; look at it with: "
            f"adp query {shlex.quote(store.root)} -c {shlex.quote(query)}"
        ) from error


def _show_rows(trajectory: Trajectory, renderer: Renderer, screen: Screen, *, full: bool) -> None:
    from adp.rendering.show import row_lines

    result = renderer.trajectory(trajectory)
    for row in result.rows:
        print_lines(screen, row_lines(row, renderer.encoder, full=full, colour=screen.is_terminal))
        screen.print()
    trained = f"{result.trained:,} of {counted(result.steps, 'step')} trained"
    screen.print(f"{trained} in {counted(len(result.rows), 'row')}")
    top("not trained: why", result.lost)
    top("written differently, or drifting", result.notes)


def parse_steps(text: str | None) -> tuple[int, int | None]:
    """Parse ``A:B``, ``A:``, ``:B`` or ``A``.

    Raises:
        UsageError: it is none of these.
    """
    if text is None:
        return 0, None
    start, colon, end = text.partition(":")
    if not colon and start.isascii() and start.isdigit():
        return int(start), int(start) + 1
    numbers = all(not part or (part.isascii() and part.isdigit()) for part in (start, end))
    if not colon or not numbers:
        raise UsageError(f"--steps takes A:B, such as 0:10 or 5:, not '{text}'")
    first, last = int(start or 0), int(end) if end else None
    if last is not None and last <= first:
        raise UsageError(f"--steps {text} holds no step; the first number is the smaller one")
    return first, last
