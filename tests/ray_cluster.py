"""A Ray cluster of several nodes on this machine, whose workers and nodes are killed by tests."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

OBJECT_BYTES = 100 << 20


class LocalCluster:
    """A head and further nodes; each can do one part at a time.

    Args:
        nodes: how many, with the head.
    """

    def __init__(self, nodes: int) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "object_store_memory": OBJECT_BYTES, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=node)
        self._others = []
        for _ in range(nodes - 1):
            self.add()

    @property
    def address(self) -> str:
        """Where it can be joined."""
        return self._cluster.address

    def add(self) -> None:
        """Begin a further node."""
        node = self._cluster.add_node(num_cpus=1, object_store_memory=OBJECT_BYTES)
        self._others.append(node)

    def kill_node(self) -> None:
        """Kill a node that is not the head, with its workers, all at once."""
        self._cluster.remove_node(self._others.pop(), allow_graceful=False)

    def kill_worker(self, draw: random.Random) -> bool:
        """Kill a process that does a part; whether there was one."""
        at_work = [
            process
            for process in psutil.process_iter(["cmdline"])
            if "ray::do_part" in " ".join(process.info["cmdline"] or ()) and self._has(process)
        ]
        if not at_work:
            return False
        with suppress(psutil.NoSuchProcess):
            draw.choice(at_work).send_signal(signal.SIGKILL)
        return True

    def _has(self, process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return os.getpid() in {parent.pid for parent in process.parents()}
        return False

    def close(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


@contextmanager
def local_cluster(nodes: int) -> Iterator[LocalCluster]:
    """A cluster for a block."""
    cluster = LocalCluster(nodes)
    try:
        yield cluster
    finally:
        cluster.close()
