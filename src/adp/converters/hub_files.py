"""Bringing files of the Hugging Face Hub here, and finding a published store there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import monotonic

from adp_schema import hub
from adp_schema.hub import HubFile, HubPath, parse, resolve
from adp_schema.location import is_hub
from adp_schema.retries import retried

__all__ = ["HubFile", "HubPath", "fetch", "fetch_all", "is_hub", "parse", "resolve"]

THREADS = 4
"""Files that are brought here at the same time."""

DOWNLOAD_THREAD = "adp-hub"
"""The name of the threads that bring files."""

PATIENCE = 20.0
"""Seconds to wait for all the others when one of them fails."""


def fetch(place: HubPath, folder: Path | None = None, *, anew: bool = False) -> Path:
    """Bring one file here, and return where it is.

    A connection that breaks is taken up where it was. A file that is here already, as its hash
    tells, is not brought again.

    Args:
        place: the file, at a commit.
        folder: where it goes, under its path; None takes the cache of huggingface_hub.
        anew: bring it even if it is here.

    Raises:
        HubError: it is missing, may not be read, or the Hub cannot be reached.
    """
    from huggingface_hub import hf_hub_download

    with hub.explained(place):
        return Path(
            retried(
                lambda: hf_hub_download(
                    place.repo_id,
                    place.path,
                    repo_type="dataset",
                    revision=place.revision,
                    local_dir=folder,
                    force_download=anew,
                    library_name="adp",
                )
            )
        )


def fetch_all(
    root: HubPath, paths: Sequence[str], done: Callable[[str, Path], None], folder: Path | None
) -> None:
    """Bring several files here, some at the same time.

    Args:
        root: the repository, at a commit.
        paths: their paths in it.
        done: called with the path of each file and where it is, in the order in which they come.
        folder: where they go; None takes the cache of huggingface_hub.

    Raises:
        HubError: one of them cannot be brought. Those that came before stay.
    """
    waiting = deque(paths)
    came: SimpleQueue[tuple[str, Path | BaseException]] = SimpleQueue()

    def work() -> None:
        while True:
            try:
                path = waiting.popleft()
            except IndexError:
                return
            try:
                came.put((path, fetch(root.at(path), folder)))
            except BaseException as error:
                came.put((path, error))

    # A pool would be waited for at the end of the process, and Ctrl-C would take minutes.
    threads = [
        Thread(target=work, name=DOWNLOAD_THREAD, daemon=True)
        for _ in range(min(THREADS, len(paths)))
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in paths:
            path, result = came.get()
            if isinstance(result, BaseException):
                raise result
            done(path, result)
    except Exception:
        waiting.clear()
        until = monotonic() + PATIENCE
        for thread in threads:
            # Files that are on their way are kept for the next call.
            thread.join(max(0.0, until - monotonic()))
        raise
    finally:
        waiting.clear()
