"""``adp merge-adapter``: an adapter and its base model become one model."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.text import epilog, print_json, say
from adp.trainers.merge import merge

EPILOG = epilog("adp merge-adapter run -o merged", 2, 3, 5)


def merge_adapter(
    adapter: Annotated[
        str, typer.Argument(metavar="ADAPTER", help="Folder of an adapter, or of a run.")
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="OUT", help="Folder for the whole model.")
    ],
    base: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Base model; the one that the adapter names."),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Type of the weights; that of the base by default."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Put an adapter into its base model and save the whole, with the tokenizer.

    What comes out needs no PEFT: vLLM, transformers and llama.cpp load it as any model.
    """
    facts = merge(adapter, out, base=base, dtype=dtype)
    if as_json:
        print_json(facts)
    else:
        say(f"{facts['parameters']:,} weights in {out}, {facts['dtype']}")
