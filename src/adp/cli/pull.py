"""``adp pull``: a published store from the Hugging Face Hub."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.manifest_text import print_sizes, summary
from adp.cli.options import JsonCounts
from adp.cli.text import epilog, print_json, progress_bar, say
from adp.workflows.pull import pull as run

EPILOG = epilog("adp pull hf://datasets/OWNER/NAME@v1 -o my_store", 2, 5, 9)


def pull(
    url: Annotated[str, typer.Argument(metavar="URL", help="hf://datasets/OWNER/NAME[@REVISION].")],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="STORE", help="Folder of the store here.")
    ],
    as_json: JsonCounts = False,
) -> None:
    """Bring a published store here, hash for hash.

    Only the store is brought, not what was made from it for other programs. Every file is checked
    against the manifest. A stopped run goes on when it is called again. For a data set that adp
    did not publish, use adp convert with the same URL.
    """
    with progress_bar("pulling", quiet=as_json) as progress:
        manifest, place = run(url, out, progress=progress)
    if as_json:
        print_json({**summary(manifest, out), "from": place.url()})
        return
    say(f"{place.url()} into {out}")
    print_sizes(manifest)
    say(f"every file is as the manifest says; next: adp info {out}")
