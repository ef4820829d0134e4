"""A clock that jumps, and files that change while they are read."""

from __future__ import annotations

import pytest

from adp_schema.store import Store
from tests.reliability import jobs

JUMPS = """
import itertools, time
_real, _number = time.time, itertools.count()
# Every third look at the clock is a day early, every fifth a day late.
def _jumping():
    number = next(_number)
    return _real() + 86400 * ((number % 5 == 0) - (number % 3 == 0))
time.time = _jumping
time.time_ns = lambda: int(_jumping() * 1e9)
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return jobs.make_inputs(tmp_path_factory.mktemp("inputs"), 0.1)


@pytest.mark.parametrize("name", jobs.names())
def test_a_clock_that_jumps_changes_nothing(name, inputs, tmp_path):
    job, out = jobs.JOBS[name], jobs.output(name, tmp_path)
    ran = jobs.call(job.words(inputs, out), before=JUMPS)
    assert ran.returncode == 0, ran.stderr[-2000:]
    whole = jobs.output(name, tmp_path / "whole")
    whole.parent.mkdir()
    assert jobs.call(job.words(inputs, whole)).returncode == 0
    assert jobs.contents(name, out) == jobs.contents(name, whole)


MEDDLE = """
import os
from adp.converters import run, shard
_convert_shard = shard.convert_shard
def _meddled(job):
    {}
    return _convert_shard(job)
run.convert_shard = _meddled
"""


@pytest.mark.parametrize(
    "act",
    [
        "os.truncate({name!r}, 1000)",
        "os.rename({name!r}, {name!r} + '.1')",
        "os.rename({name!r}, {name!r} + '.1'); open({name!r}, 'w').write('{{}}\\n')",
        "os.unlink({name!r}); os.mkfifo({name!r})",
        "os.unlink({name!r}); os.symlink('/dev/zero', {name!r})",
    ],
    ids=["shrinks", "is moved", "is rotated", "becomes a pipe", "becomes a device"],
)
def test_a_file_that_changes_while_it_is_read_leaves_no_store(act, inputs, tmp_path):
    name = tmp_path / "chats.jsonl"
    name.write_bytes(inputs.chats.read_bytes())
    before = MEDDLE.format(act.format(name=str(name)))
    ran = jobs.call(["convert", name, "-o", tmp_path / "s", "--workers", "1"], before=before)
    sentence = jobs.check_sentence(ran, 3)
    assert str(name) in sentence
    assert not jobs.is_finished(tmp_path / "s")


def test_of_a_file_that_grows_while_it_is_read_what_was_there_is_read(inputs, tmp_path):
    name = tmp_path / "chats.jsonl"
    name.write_bytes(inputs.chats.read_bytes())
    count = inputs.chats.read_bytes().count(b"\n")
    before = MEDDLE.format(f"open({str(name)!r}, 'a').write('{{\"messages\": []}}\\n')")
    ran = jobs.call(["convert", name, "-o", tmp_path / "s", "--workers", "1"], before=before)
    assert ran.returncode == 0, ran.stderr
    assert Store.open(str(tmp_path / "s")).manifest.counts.records == count
