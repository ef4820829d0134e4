"""``adp serve-search``: a search server over documents of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adp.cli.text import counted, epilog, say
from adp.rollouts.environments.search import library
from adp.rollouts.searching.server import SearchServer

EPILOG = epilog("adp serve-search documents/ --port 8080", 2, 3)


def serve_search(
    corpus: Annotated[
        Path, typer.Argument(metavar="CORPUS", help="File or folder of documents, or a store.")
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; 0.0.0.0 is everywhere.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="NUMBER", help="Port; 0 takes a free one.")
    ] = 8080,
    column: Annotated[
        str | None,
        typer.Option(metavar="TABLE.COLUMN", help="When the corpus is a store: its texts."),
    ] = None,
) -> None:
    """Serve a search by BM25 over documents until Ctrl-C, for environments and other programs.

    POST /search takes query and top_n and gives a list of documents with id, title and contents;
    POST /batch_search takes queries. Whoever reaches the address can search; there is no key.
    """
    documents = library(corpus.resolve(), column, 1.2, 0.75)
    with SearchServer(documents, host, port) as server:
        say(f"{counted(len(documents), 'document')} at {server.url}/search; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended")
