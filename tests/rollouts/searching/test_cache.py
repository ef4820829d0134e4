"""The cache of searches: shared, safe under kill, and the first value stays."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.searching.cache import TextCache, query_key
from adp_schema.errors import InputError


@given(st.text(), st.text())
def test_case_and_spaces_of_a_query_do_not_count(query, other):
    assert query_key(f"  {query} ", 1) == query_key(query, 1)
    assert query_key(query, 1) != query_key(query, 2)
    same = " ".join(query.casefold().split()) == " ".join(other.casefold().split())
    if query.isascii() and other.isascii():
        assert (query_key(query) == query_key(other)) == same


def test_the_first_value_stays(tmp_path):
    cache = TextCache(tmp_path / "c.db")
    assert cache.get("a") is None
    assert cache.put("a", "1") == "1"
    assert TextCache(tmp_path / "c.db").put("a", "2") == "1"
    assert (cache.get("a"), len(cache)) == ("1", 1)


def test_what_is_no_cache_is_refused(tmp_path):
    (tmp_path / "c.db").write_text("no database, but long enough to be looked at" * 50)
    with pytest.raises(InputError, match="name another file, or delete it"):
        TextCache(tmp_path / "c.db")
    with pytest.raises(InputError, match="cannot be used"):
        TextCache(tmp_path / "none" / "c.db")


def fill(path, number, keys):
    cache = TextCache(path)
    for key in range(keys):
        cache.put(str(key), f"{key} by {number}")


def test_processes_agree_on_every_value(tmp_path):
    path = tmp_path / "c.db"
    workers = [multiprocessing.Process(target=fill, args=(path, n, 40)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    cache = TextCache(path)
    assert len(cache) == 40
    assert all(cache.get(str(key)).startswith(f"{key} by ") for key in range(40))


def test_a_process_that_is_killed_leaves_whole_values(tmp_path):
    for tries in range(3):
        path = tmp_path / f"{tries}.db"
        cache = TextCache(path)
        worker = multiprocessing.Process(target=fill, args=(path, tries, 100_000))
        worker.start()
        deadline = time.monotonic() + 60
        while len(cache) < 5 + tries and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        count = len(cache)
        assert count >= 5
        assert [cache.get(str(key)) for key in range(count)] == [
            f"{key} by {tries}" for key in range(count)
        ]
        assert cache.put("after", "x") == "x"
