"""The process that queries of an agent run in: ``python -m adp.rollouts.environments.sql_worker``.

An engine does not heed its own limits everywhere: some functions cannot be interrupted, and some
memory is not counted. The kernel's limits hold for all of a process. So the gate is in a process of
its own, which ends when a query does not.

It speaks JSON, a line each way. The first line that it reads is ``{"views": [[name, path], ...],
"memory": "512MB"}``, and it answers ``{"ready": true}`` or ``{"fault": text}``. Then each line is a
`WorkerRequest`, and each answer has ``columns`` and ``rows``, or ``fault`` and ``late``; ``last``
says that the process is no longer fit for use. It ends when its input does.
"""

from __future__ import annotations

import json
import os
import queue
import re
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import IO, Any, TypedDict

from adp_schema.errors import AdpError, QueryError, QueryTimeoutError
from adp_schema.gate import QueryGate
from adp_schema.gate_files import ExtraView

GRACE = 1.0
"""Seconds after which a query is ended that does not heed an interrupt."""

TOO_LARGE = "the query needs more memory than {memory}; select fewer rows or columns"

_OVERHEAD = 256 << 20
"""Bytes of addresses for threads, for answers, and for parts of the engine besides its memory."""


class WorkerRequest(TypedDict):
    """A query, and how much of its answer is wanted.

    Attributes:
        query: the SQL text.
        rows: rows at most.
        cell: characters of a value at most.
        seconds: how long it may take.
    """

    query: str
    rows: int
    cell: int
    seconds: float


def main() -> None:
    """Answer requests until the input ends."""
    with os.fdopen(os.dup(1), "wb") as answers:
        # Nothing but answers may come out, whatever the engine prints.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        given = json.loads(sys.stdin.buffer.readline())
        try:
            views = [ExtraView(name, path) for name, path in given["views"]]
            gate = QueryGate(
                {}, extra=views, memory_limit=given["memory"], threads=1, store_views=False
            )
            most = _limited(gate)
        except AdpError as error:
            _say(answers, {"fault": str(error)})
            return
        _say(answers, {"ready": True})
        requests: queue.SimpleQueue[WorkerRequest] = queue.SimpleQueue()
        threading.Thread(
            target=_serve, args=(gate, given["memory"], most, requests, answers), daemon=True
        ).start()
        for line in sys.stdin.buffer:
            requests.put(json.loads(line))
        # Whoever asked is gone; what still runs is of no use.
        os._exit(0)


def _limited(gate: QueryGate) -> int | None:
    """Limit the addresses of this process.

    Returns:
        How large it may have become after a query and still be used; None: there is no limit.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory, now = gate.memory, _size()
    if memory > 1 << 44 or now == 0:
        return None
    most = now + memory + memory // 2 + _OVERHEAD
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    return now + memory // 2 + _OVERHEAD // 2


def _size() -> int:
    """Bytes of addresses of this process; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _serve(
    gate: QueryGate,
    memory: str,
    most: int | None,
    requests: queue.SimpleQueue[WorkerRequest],
    answers: IO[bytes],
) -> None:
    while True:
        request = requests.get()
        # Without a handler the signal ends the process, whatever the engine is doing.
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + GRACE)
        try:
            answer = answered(gate, request)
        except MemoryError:
            answer = {"fault": TOO_LARGE.format(memory=memory), "late": False, "last": True}
        answer["last"] = answer.get("last", False) or (most is not None and _size() > most)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _say(answers, answer)


def answered(gate: QueryGate, request: WorkerRequest) -> dict[str, Any]:
    """Run a query.

    Raises:
        MemoryError: the process has no more memory.
    """
    rows: list[list[Any]] = []
    try:
        reader = gate.batches(request["query"], seconds=request["seconds"], analyze=False)
        for batch in reader:
            columns = [column.to_pylist() for column in batch.columns]
            for row in zip(*columns, strict=True):
                rows.append([cut(value, request["cell"]) for value in row])
                if len(rows) > request["rows"]:
                    break
            if len(rows) > request["rows"]:
                break
        reader.close()
    except QueryError as error:
        if re.search(r"bad_alloc|[Aa]llocat", str(error)):
            raise MemoryError from None
        return {"fault": str(error), "late": isinstance(error, QueryTimeoutError)}
    except (ArithmeticError, ValueError, TypeError, OSError, NotImplementedError) as error:
        return {"fault": f"the answer cannot be shown: {error}", "late": False}
    return {"columns": reader.schema.names, "rows": rows}


def cut(value: Any, length: int) -> Any:
    """A value as JSON can hold it; text of at most so many characters."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= length else text[:length] + "..."


def _say(answers: IO[bytes], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode("ascii") + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
