"""Uploading and pulling in processes that are killed: what is left leads to the same end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from adp.converters.run import convert
from adp_schema.manifest import MANIFEST
from adp_schema.store import Store
from tests import kill
from tests.hub import fixtures
from tests.hub.server import LocalHub

REPO, URL = "me/set", "hf://datasets/me/set"
UPLOAD = """
import sys
from adp.workflows.publish import upload as module
module.COMMIT_FILES, module.SEND_FILES = 6, 2
print(module.upload(sys.argv[1], sys.argv[2], tag="v1").commits)
"""
PULL = "import sys; from adp.workflows.pull import pull; pull(sys.argv[1], sys.argv[2])"
SLOW = 0.05
"""Seconds that the Hub takes for each answer, so that there are moments to be killed in."""


@pytest.fixture
def slow_hub():
    """A Hub that other processes talk to."""
    with LocalHub() as hub:
        hub.repos.tokens[fixtures.TOKEN] = (fixtures.ME, set())
        hub.faults.add(".", "slow", times=10**9, seconds=SLOW)
        yield hub


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """A store of several files a table."""
    root = tmp_path_factory.mktemp("store")
    for number in range(3):
        kill.write_chats(root / f"{number}.jsonl", 0.05, number)
    convert([str(root / "0.jsonl")], str(root / "store"))
    return root / "store"


@pytest.fixture
def folder(store, tmp_path) -> Path:
    """What is published: the store, and more files than go into one commit."""
    made = tmp_path / "folder"
    for file in store.rglob("*"):
        if file.is_file():
            target = made / "store" / file.relative_to(store)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    (made / "messages").mkdir()
    for number in range(16):
        (made / f"messages/part-{number:05d}.parquet").write_bytes(b"%d" % number * 1000)
    (made / "README.md").write_text("# A set\n")
    return made


def start(hub, tmp_path, program, *words, after: int | None = None) -> int:
    """Run a program; kill it when the Hub was asked so many times.

    Returns:
        Its exit code.
    """
    environment = fixtures.environment(hub, tmp_path / "hf_home")
    environment["PYTHONPATH"] = str(kill.ROOT / "src")
    before = len(hub.calls)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + kill.LONGEST
    while process.poll() is None:
        if after is not None and len(hub.calls) - before >= after:
            os.killpg(process.pid, signal.SIGKILL)
            break
        assert time.monotonic() < deadline
        time.sleep(0.005)
    _, output = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), output.decode()
    return process.returncode


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_an_upload_that_is_killed_again_and_again(slow_hub, folder, tmp_path, kills):
    """Killed a little later in each run, so that each kind of call is under way once."""
    draw = random.Random(4)
    killed = 0
    for _ in range(kills):
        after = draw.randrange(1, 14)
        killed += start(slow_hub, tmp_path, UPLOAD, folder, REPO, after=after) != 0
        if REPO in slow_hub.repos.repos:
            files = slow_hub.repos.files(REPO)
            wanted = len([path for path in folder.rglob("*") if path.is_file()])
            assert ("store/adp.json" in files) <= (len(files) == wanted - 1)
    assert killed > kills / 2
    assert start(slow_hub, tmp_path, UPLOAD, folder, REPO) == 0
    published = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "run.json"
    }
    assert slow_hub.repos.files(REPO) == published
    repo = slow_hub.repos.repos[REPO]
    assert repo.tags == {"v1": repo.head.oid}
    changed = Counter(path for commit in repo.history() for path in commit.changed)
    assert changed == dict.fromkeys(published, 1)
    # An object that was on its way when the process was killed may be there or not: the Hub
    # knows, and is asked. So each one was kept once.
    assert set(slow_hub.repos.stored.values()) == {1}


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_pull_that_is_killed_again_and_again(slow_hub, folder, store, tmp_path, kills):
    assert start(slow_hub, tmp_path, UPLOAD, folder, REPO) == 0
    slow_hub.forget()
    out = tmp_path / "out"
    draw = random.Random(5)
    killed = 0
    for _ in range(kills):
        killed += start(slow_hub, tmp_path, PULL, URL, out, after=draw.randrange(4, 16)) != 0
        if (out / MANIFEST).exists():
            break
    assert killed
    if not (out / MANIFEST).exists():
        assert start(slow_hub, tmp_path, PULL, URL, out) == 0
    assert kill.hashes(out) == kill.hashes(store)
    assert Store.open(str(out)).manifest == Store.open(str(store)).manifest
    # What was on its way when the process was killed comes again, and nothing else.
    came = Counter(call.path for call in slow_hub.asked("GET /objects"))
    assert max(came.values()) <= killed + 1
    assert sum(came.values()) <= len(came) + 4 * killed
