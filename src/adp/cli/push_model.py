"""``adp push-model``: what a training made, on the Hugging Face Hub with its model card."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.text import counted, epilog, human_size, print_json, progress_bar, say
from adp.workflows.push_model import check_push
from adp.workflows.push_model import push_model as run

EPILOG = epilog("adp push-model out alice/agent-7b", 2, 3, 9)


def push_model(
    folder: Annotated[
        str, typer.Argument(metavar="RUN", help="A finished run of adp train, or its folder best.")
    ],
    repo: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Name of the model.")],
    public: Annotated[bool, typer.Option("--public", help="Let everybody see it.")] = False,
    message: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the commit says.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
) -> None:
    """Push a model or an adapter to the Hugging Face Hub, with its model card.

    The repository is private unless --public is given. Paths of this machine in its files are
    replaced by names. What is there already is not sent again: a call that was stopped goes on when
    it is made again.
    """
    check_push(repo, public=public)
    push_run(folder, repo, public=public, message=message, as_json=as_json)


def push_run(
    folder: str, repo: str, *, public: bool, message: str | None = None, as_json: bool = False
) -> None:
    """Push, and say what was pushed.

    Args:
        folder: a run, or a folder of it.
        repo: name of the model.
        public: whether everybody sees it.
        message: title of the commit.
        as_json: print JSON.
    """
    with progress_bar("pushing", quiet=as_json) as progress:
        pushed = run(folder, repo, public=public, message=message, progress=progress)
    if as_json:
        print_json(asdict(pushed))
        return
    seen = "private" if pushed.private else "public"
    say(
        f"pushed {counted(pushed.files, 'file')}, {human_size(pushed.bytes)}: {pushed.url} ({seen})"
    )
