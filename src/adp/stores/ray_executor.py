"""The executor of stages that sends their parts to a Ray cluster.

Parts are tasks. One whose worker or machine dies is done again; what the work itself raises is not
tried again. So a part may be done twice, even twice at once, when a machine that was thought dead
is not: see `adp_schema.writer.placing`.

All machines see the folder of the output, and inputs that are local paths, under the same path.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from adp.core.extras import need
from adp.stores.ray_worker import MISSING, RAISED, UNFIT, do_part, installed, state
from adp.stores.workers import AHEAD, few_at_a_time
from adp_schema.errors import EngineError
from adp_schema.location import is_url

Given = TypeVar("Given")
Made = TypeVar("Made")

TRIES = 50
"""How often a part is done again whose worker or machine died."""

PROBE_SECONDS = 10.0
"""Within this time all machines see a file that was just made in a folder that they share."""

_OBJECT_BYTES = 128 << 20
"""Memory of a cluster of this machine for what is sent; parts and results are small."""

_VARIABLES = ("ADP_", "HF_")
"""Beginnings of the names of environment variables that workers get."""

_CONNECT_SECONDS, _CANCEL_SECONDS = 10, 30


class RayExecutor:
    """Does the parts of stages as tasks of a Ray cluster.

    The cluster is asked for when the first stage is large enough to be shared out.

    Args:
        address: ``HOST:PORT`` of a cluster that runs, one of whose machines this is, or ``auto``;
            None takes ``RAY_ADDRESS``, and without that begins a cluster of this machine alone.

    Raises:
        MissingExtraError: Ray is not installed.
    """

    def __init__(self, address: str | None = None) -> None:
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._is_begun = False
        self._kept: list[str] = []
        need("ray")

    def run(
        self,
        work: Callable[[Given], Made],
        parts: Iterable[Given],
        workers: int | None,
        folder: Path | None = None,
    ) -> Iterator[tuple[Given, Made]]:
        """Do parts as tasks; what is done first comes first.

        Args:
            work: does a part; a function of a module, or anything that can be pickled.
            parts: its arguments; the next ones are asked for when a worker will soon be free.
                Local paths in their ``reads``, if they have it, must be seen by all workers.
            workers: how many tasks at once; None takes one for each CPU of the cluster. With 1,
                or for one part, all is done in this process.
            folder: what the work writes to, which all workers must see.

        Raises:
            EngineError: the cluster cannot be reached, or one of its machines cannot do the work.
        """
        coming = iter(parts)
        first = list(islice(coming, 2))
        if workers == 1 or len(first) < 2:
            yield from ((part, work(part)) for part in chain(first, coming))
            return
        ray = self._begin()
        most = workers or int(ray.cluster_resources().get("CPU", 1)) + AHEAD
        with _probe(folder) as probe:
            token = self._kept[0] if self._kept else secrets.token_hex(8)
            stage = _Stage(ray, work, token, probe)
            try:
                for part, task in few_at_a_time(
                    chain(first, coming), most, stage.begin, stage.ended
                ):
                    yield part, stage.result(part, task)
            except BaseException:
                stage.cancel()
                raise

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the workers of one stage for the next ones, until the block ends."""
        self._kept.append(secrets.token_hex(8))
        try:
            yield
        finally:
            self._kept.pop()

    def close(self) -> None:
        """Leave the cluster, and end one that was begun here."""
        if self._is_begun:
            import ray

            self._is_begun = False
            ray.shutdown()

    def _begin(self) -> Any:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        if not ray.is_initialized():
            # Ray prints on stdout when a machine dies, whatever it is told about logs.
            ray._private.worker.print_to_stdstream = _print_nothing
            with _signals_kept():
                _connect(ray, self._address)
            self._is_begun = True
        return ray


class _Stage:
    """The tasks of one stage.

    Args:
        ray: the package.
        work: does a part.
        token: stages with the same one share their workers; others get fresh ones, as spawned
            processes are, so that nothing is left of another stage.
        probe: a file that workers must see; an empty text when there is none.
    """

    def __init__(self, ray: Any, work: Callable[[Any], Any], token: str, probe: str) -> None:
        self._ray = ray
        self._work = work
        needs = {
            "versions": installed(),
            "folder": str(Path.cwd()),
            "path": [str(Path(place).absolute()) for place in sys.path],
            "variables": {
                name: text for name, text in os.environ.items() if name.startswith(_VARIABLES)
            },
            "probe": probe,
            "seconds": PROBE_SECONDS,
        }
        self._needs = ray.put(needs)
        self._pickled = ray.put(ray.cloudpickle.dumps(work))
        self._task = ray.remote(do_part).options(
            max_retries=TRIES,
            num_cpus=1,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": {"ADP_STAGE_TOKEN": token}},
        )
        self._at_work: set[Any] = set()

    def begin(self, part: Any) -> Any:
        """Send a part."""
        paths = {path for path in getattr(part, "reads", ()) if path and not is_url(path)}
        reads = [(path, state(path)) for path in sorted(paths)]
        pickled = self._ray.cloudpickle.dumps(part)
        task = self._task.remote(self._needs, self._pickled, pickled, reads)
        self._at_work.add(task)
        return task

    def ended(self, tasks: Sequence[Any]) -> Any:
        """Wait for a task that has ended."""
        return self._ray.wait(tasks, num_returns=1)[0][0]

    def result(self, part: Any, task: Any) -> Any:
        """What a task gave.

        Raises:
            EngineError: its worker cannot do the work, or died again and again.
        """
        self._at_work.discard(task)
        try:
            kind, reply = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            raise EngineError(_lost(error)) from error
        if kind == UNFIT:
            raise EngineError(reply)
        if kind == MISSING:
            host, path, seen = reply
            if state(path) != seen:
                what = "does not see" if seen is None else "sees another file under"
                raise EngineError(
                    f"the machine {host} of the Ray cluster {what} {path}; put inputs into a "
                    "folder that all machines see under the same path, or give a URL"
                )
            return self._work(part)  # it changed or is gone here too, which the work says
        made = self._ray.cloudpickle.loads(reply)
        if kind == RAISED:
            raise made
        return made

    def cancel(self) -> None:
        """End the tasks that are at work, and wait until they are gone."""
        left = list(self._at_work)
        with suppress(Exception):  # the cluster may be what is gone
            for task in left:
                self._ray.cancel(task, force=True)
            self._ray.wait(left, num_returns=len(left), timeout=_CANCEL_SECONDS)


def _connect(ray: Any, address: str | None) -> None:
    """Join a cluster, or begin one of this machine.

    Raises:
        EngineError: it cannot be done.
    """
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None or address == "local":
        _begin_here(ray, {**quiet, "include_dashboard": False})
        return
    if address.startswith("ray://"):
        raise EngineError(
            f"{address} is an address of the Ray client; give HOST:PORT of the head (6379 unless "
            "it was changed), from a machine of the cluster"
        )
    try:
        host, _, port = address.rpartition(":")
        if port.isdecimal():  # Ray itself would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        ray.init(address, **quiet)
    except Exception as error:
        raise EngineError(
            f"the Ray cluster at {address} cannot be joined ({_first_line(error)}); begin one "
            "with: ray start --head, and on each other machine: ray start --address HOST:6379"
        ) from error


def _begin_here(ray: Any, settings: dict[str, Any]) -> None:
    """Begin a cluster of this machine; Ray gives up after 30 seconds, which a busy one may need."""
    for tries_left in (2, 1, 0):
        try:
            ray.init("local", object_store_memory=_OBJECT_BYTES, **settings)
            return
        except Exception as error:
            if not tries_left:
                raise EngineError(
                    f"Ray does not begin on this machine ({_first_line(error)}); it may be too "
                    "busy: try again, or name a cluster that runs"
                ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def _print_nothing(*_: Any, **__: Any) -> None:
    """Take what Ray would print."""


def _lost(error: Exception) -> str:
    if isinstance(cause := getattr(error, "cause", None), Exception):
        return (
            f"a worker of the Ray cluster cannot begin ({type(cause).__name__}: {cause}); install "
            "adp[ray] in the same version on all machines"
        )
    return (
        f"the worker of a part died {TRIES + 1} times ({_first_line(error)}); it may "
        "need more memory than a machine of the Ray cluster has"
    )


@contextmanager
def _probe(folder: Path | None) -> Iterator[str]:
    """Put an empty file into a folder while a stage is at work; its path."""
    if folder is None:
        yield ""
        return
    path = folder.absolute() / f"probe-{secrets.token_hex(8)}"
    path.touch()
    try:
        yield str(path)
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep what this process does on SIGTERM, which Ray changes."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
