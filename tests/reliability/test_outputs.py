"""Outputs that cannot be written: each command says so in a sentence, and goes on when it can."""

from __future__ import annotations

import resource
import shutil
import subprocess

import pytest

from tests.reliability import jobs

SMALL = 20_000
"""Bytes that a file may have; it stands for a disk that is full."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return jobs.make_inputs(tmp_path_factory.mktemp("inputs"))


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, SMALL))


@pytest.mark.parametrize("name", jobs.names())
def test_a_full_disk_is_a_sentence_and_the_same_call_works_when_there_is_room(
    name, inputs, tmp_path
):
    job, out = jobs.JOBS[name], jobs.output(name, tmp_path)
    sentence = jobs.check_sentence(jobs.call(job.words(inputs, out), code=limit_files), 5)
    assert str(out) in sentence
    assert "File too large" in sentence
    assert not jobs.is_finished(out)
    if not job.resumes and out.exists():
        shutil.rmtree(out)
    assert jobs.call([*job.words(inputs, out), *job.again]).returncode == 0
    whole = jobs.output(name, tmp_path / "whole")
    whole.parent.mkdir()
    assert jobs.call(job.words(inputs, whole)).returncode == 0
    assert jobs.contents(name, out) == jobs.contents(name, whole)


@pytest.mark.parametrize("name", jobs.names())
@pytest.mark.parametrize("place", ["in a file", "in /proc"])
def test_an_output_that_cannot_be_made_is_a_sentence(name, place, inputs, tmp_path):
    (tmp_path / "file").write_text("x")
    folder = tmp_path / "file" if place == "in a file" else tmp_path.__class__("/proc/1")
    out = jobs.output(name, folder)
    ran = jobs.call(jobs.JOBS[name].words(inputs, out))
    # A file asks for its folder to be made first: that is a wrong call.
    jobs.check_sentence(ran, 2 if jobs.JOBS[name].file and ran.returncode == 2 else 5)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own of 40 kB, which can be made larger."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(*options: str) -> bool:
        words = ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(place)]
        return shutil.which("mount") is not None and not subprocess.call(words, stderr=-3)

    if not mount("size=40k"):
        pytest.skip("a file system can be mounted by root alone")
    yield place, mount
    subprocess.check_call(["umount", str(place)])


@pytest.mark.slow
@pytest.mark.parametrize("name", jobs.names())
def test_a_real_disk_that_is_full(name, inputs, tmp_path, small_disk):
    place, mount = small_disk
    job, out = jobs.JOBS[name], jobs.output(name, place)
    jobs.check_sentence(jobs.call(job.words(inputs, out)), 5)
    assert not jobs.is_finished(out)
    assert mount("remount", "size=100m")
    if not job.resumes and out.exists():
        shutil.rmtree(out)
    assert jobs.call([*job.words(inputs, out), *job.again]).returncode == 0
    whole = jobs.output(name, tmp_path)
    assert jobs.call(job.words(inputs, whole)).returncode == 0
    assert jobs.contents(name, out) == jobs.contents(name, whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", jobs.names())
def test_a_file_system_that_is_read_only(name, inputs, small_disk):
    place, mount = small_disk
    assert mount("remount", "ro")
    sentence = jobs.check_sentence(
        jobs.call(jobs.JOBS[name].words(inputs, jobs.output(name, place))), 5
    )
    assert "Read-only file system" in sentence
