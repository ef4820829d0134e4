"""Settings of all tests."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import samples
from tests.effort import RANDOM

if TYPE_CHECKING:
    from tests.hub.server import LocalHub

# Else each process that a test starts compiles all that it imports: ten seconds for a training.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if "PYTEST_XDIST_WORKER" in os.environ:
    # There is a worker a core: threads of one would wait for those of the others, and burn time.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A plain run tries the same examples everywhere, so that a red run can be repeated; with
# ADP_TEST_RANDOM each run tries others, and more of them.
settings.register_profile("plain", derandomize=True, deadline=None, max_examples=15)
settings.register_profile("random", deadline=None)
settings.load_profile("random" if RANDOM else "plain")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: a fifth of the time, tests wait for processes and servers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) + 1


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> None:
    """What is imported is left out of the garbage collections of the tests that follow.

    Else each walks through the million objects of torch and all other packages: 40 % of the time
    of the tests of a loop, which frees memory after each stage.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Packages in C++ look for leaks when Python ends, and take what is frozen for one."""
    gc.unfreeze()


@pytest.fixture
def fake_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """A local Hub with the user ``me``, which huggingface_hub of this process talks to.

    For another process, ``tests.hub.fixtures.environment(fake_hub, folder)`` is the environment.
    """
    from adp.converters.hub_files import DOWNLOAD_THREAD
    from tests.hub.fixtures import local_hub

    with local_hub(tmp_path, monkeypatch) as hub:
        yield hub
        # A download that was left alone would go on against the real Hub, and its failure there
        # closes the connections of the tests that follow.
        for thread in threading.enumerate():
            if thread.name == DOWNLOAD_THREAD:
                thread.join(60)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test of the real samples that fails where some of them are gone."""
    report = yield
    if report.failed and isinstance(item, pytest.Function) and samples.uses_samples(item.module):
        gone = samples.gone()
        if gone is not None:
            path, line, _ = item.location
            report.outcome = "skipped"
            error = call.excinfo.typename if call.excinfo else "it failed"
            why = f"only {gone} ({error})"
            report.longrepr = (path, (line or 0) + 1, f"Skipped: {why}")
    return report
