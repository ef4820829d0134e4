"""``adp pull``: a published store from the Hugging Face Hub."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.convert import summary
from adp.cli.merge import print_sizes
from adp.cli.text import console, epilog, print_json
from adp.core.progress import ConsoleProgress, Silent

EPILOG = epilog("adp pull hf://datasets/OWNER/NAME@v1 -o my_store", 2, 5, 9)


def pull(
    url: Annotated[str, typer.Argument(metavar="URL", help="hf://datasets/OWNER/NAME[@REVISION].")],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="STORE", help="Folder of the store here.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Bring a published store here, hash for hash.

    Only the store is brought, not what was made from it for other programs. Every file is checked
    against the manifest. A stopped run goes on when it is called again. For a data set that adp
    did not publish, use adp convert with the same URL.
    """
    from adp.workflows.pull import pull as run

    if as_json:
        manifest, place = run(url, out, progress=Silent())
        print_json({**summary(manifest, out), "from": place.url()})
        return
    with ConsoleProgress("pulling") as progress:
        manifest, place = run(url, out, progress=progress)
    screen = console()
    screen.print(f"{place.url()} into {out}", soft_wrap=True)
    print_sizes(manifest)
    screen.print(f"every file is as the manifest says; next: adp info {out}", soft_wrap=True)
