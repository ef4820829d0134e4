"""``adp parse``: a new store with the structure that texts hold."""

from __future__ import annotations

from adp.cli.manifest_text import print_sizes, summary
from adp.cli.options import DialectName, JsonCounts, NewStore, StorePath, Workers
from adp.cli.parsed_text import parsed_lines
from adp.cli.text import epilog, print_json, progress_bar, say
from adp.converters.text_calls.store import ParseOptions
from adp.converters.text_calls.store import parse as run
from adp.stores.shards import open_finished

EPILOG = epilog("adp parse my_store -o parsed --dialect react", 2, 4, 5)


def parse(
    path: StorePath,
    out: NewStore,
    dialect: DialectName = None,
    workers: Workers = None,
    as_json: JsonCounts = False,
) -> None:
    """Read calls, reasoning and results out of texts, and write a new store with them.

    Texts stay as they are: calls say by spans where they stand, and the store is written back to
    the format that it came from with the same characters. The dialect of each input file is found
    from its first trajectories, when it is sure; --dialect names one for all. The old store is not
    touched. A stopped run goes on when it is called again.
    """
    store = open_finished(path)
    with progress_bar("parsing", quiet=as_json) as progress:
        options = ParseOptions(dialect=dialect, workers=workers)
        manifest = run(store, out, options=options, progress=progress)
    if as_json:
        print_json(summary(manifest, out))
        return
    for line in parsed_lines(manifest):
        say(line)
    print_sizes(manifest)
    say(f"next: adp info {out}")
