"""Ray as the engine of stages: the same bytes, whatever dies; a sentence where it cannot work."""

from __future__ import annotations

import json
import os
import pickle
import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("ray")

import adp
from adp.core.progress import Silent
from adp.stores import ray_executor, ray_worker
from adp.stores.ray_executor import RayExecutor
from adp.stores.stage import run_stage, use_executor
from adp_schema.errors import EngineError, UsageError
from tests.kill import hashes, write_chats
from tests.ray_cluster import local_cluster
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(2) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def executor(cluster):
    joined = RayExecutor(cluster.address)
    with joined.kept():  # the workers of all tests, each of which takes seconds to begin
        yield joined
    joined.close()


DRIVER = """
import sys
import adp
from adp.converters import file_pieces
file_pieces.SHARD_BYTES = file_pieces.LEAST_BYTES = 500_000
with adp.use_engine("ray", sys.argv[3]):
    adp.convert(sys.argv[1], sys.argv[2])
"""


@dataclass(frozen=True)
class Part:
    index: int
    size: int = 1
    reads: tuple[str, ...] = ()


class OddError(Exception):
    """Its constructor takes what its text does not show."""

    def __init__(self, number, why):
        super().__init__(number, why)
        self.number = number


def double(part):
    return part.index * 2


def fail_at_five(part):
    if part.index == 5:
        raise OddError(5, "odd")
    return part.index


def work_on(part):
    Path(part.reads[0], f"begun-{part.index}").touch()
    if part.index == 0:
        while not Path(part.reads[0], "begun-1").exists():
            time.sleep(0.01)
        raise KeyError("the first one fails", time.monotonic())
    time.sleep(3600)


def place_of(part):
    return os.getppid()


def test_results_are_in_order_and_every_node_works(executor):
    parts = [Part(index) for index in (4, 2, 9, *range(20, 40))]
    with use_executor(executor):
        made = run_stage(iter(parts), double, None, Silent())
        assert made == [part.index * 2 for part in parts]
        raylets = set(run_stage(iter(parts), place_of, None, Silent()))
    assert len(raylets) == 2


def test_what_the_work_raises_comes_out_as_it_is(executor):
    parts = [Part(index) for index in range(9)]
    with use_executor(executor), pytest.raises(OddError) as caught:
        run_stage(iter(parts), fail_at_five, None, Silent())
    assert type(caught.value) is OddError
    assert caught.value.args == (5, "odd")
    assert caught.value.number == 5
    assert "in fail_at_five" in caught.value.__notes__[0]


def die(part):
    os._exit(9)


def test_a_part_that_always_ends_its_worker_ends_the_stage(executor, monkeypatch):
    monkeypatch.setattr(ray_executor, "TRIES", 1)
    sentence = r"the worker of a part died 2 times \(.*\); it may need more memory"
    with use_executor(executor), pytest.raises(EngineError, match=sentence):
        run_stage(iter([Part(0), Part(1)]), die, None, Silent())


def made_of(chats, folder, executor):
    """All stages over one small input, by one executor; hashes of what they wrote."""
    workers = None if executor else 1
    with use_executor(executor) if executor else nullcontext():
        for name in ("one", "two"):
            adp.convert(chats / name, folder / name, workers=workers)
        adp.merge([folder / "one", folder / "two"], folder / "merged", workers=workers)
        adp.drop(folder / "merged", "seq % 5 = 0", folder / "less", workers=workers)
        recipe = {"recipe": 1, "seed": 3, "inputs": {"runs": str(folder / "merged")}}
        ops = ["measure", {"dedup_near": {"alarm": "warn"}}, {"mask": {"policy": ["history"]}}]
        adp.curate({**recipe, "ops": ops}, folder / "curated", workers=workers)
    made = hashes(folder)
    return {name: text for name, text in made.items() if name.endswith((".parquet", "adp.json"))}


@pytest.fixture
def chats(tmp_path, monkeypatch):
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    monkeypatch.setattr("adp.converters.file_pieces.SHARD_BYTES", 6000)
    monkeypatch.setattr("adp.converters.file_pieces.LEAST_BYTES", 6000)
    monkeypatch.setattr("adp.curation.partitions.PARTITION_BYTES", 9000)
    monkeypatch.setattr("adp.curation.write.SHARD_BYTES", 9000)
    draw = random.Random(0)
    for name in ("one", "two"):
        (tmp_path / "chats" / name).mkdir(parents=True)
        for number in range(6):
            lines = [json.dumps(a_chat(draw, f"{number}-{line}")) for line in range(6)]
            path = tmp_path / "chats" / name / f"{number}.jsonl"
            path.write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "chats"


def a_chat(draw, name):
    words = " ".join(draw.choices(["alpha", "beta", "gamma", "sk-12", "delta"], k=120))
    call = {"name": "f", "arguments": json.dumps({"q": words[:40]})}
    return {
        "id": name,
        "messages": [
            {"role": "user", "content": f"{words} mail me at someone@example.com"},
            {"role": "assistant", "content": words[::-1],
             "tool_calls": [{"id": "c", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": "c", "content": words},
        ],
    }  # fmt: skip


def test_stages_write_the_same_bytes_on_two_nodes_as_in_one_process(chats, tmp_path, executor):
    here = made_of(chats, tmp_path / "here", None)
    there = made_of(chats, tmp_path / "there", executor)
    assert len([name for name in here if "/steps/" in name]) > 12
    assert here == there
    assert not list(tmp_path.rglob(".run"))


@pytest.mark.slow
def test_redacted_and_published_bytes_are_the_same(chats, tmp_path, executor, monkeypatch):
    pytest.importorskip("phonenumbers")
    monkeypatch.setattr("adp.workflows.publish.messages.PART_BYTES", 1)
    adp.convert(chats / "one", tmp_path / "store", workers=1)
    made = []
    for name, engine in (("here", None), ("there", executor)):
        with use_executor(engine) if engine else nullcontext():
            from adp.cli.main import main

            workers = () if engine else ("--workers", "1")
            out = tmp_path / name
            store = str(tmp_path / "store")
            assert main(["redact", store, "-o", str(out / "clean"), *workers]) == 0
            assert (
                main(
                    ["publish", store, "me/runs", "--dry-run", "--accept-licenses",
                     "--allow-findings", "--out", str(out / "published"), *workers]
                )
                == 0
            )  # fmt: skip
        made.append({k: v for k, v in hashes(out).items() if k.endswith(".parquet")})
    assert len([name for name in made[0] if "/messages/" in name]) > 3
    assert made[0] == made[1]


@pytest.mark.slow
@pytest.mark.train
def test_rendered_rows_are_the_same(chats, tmp_path, executor, monkeypatch):
    monkeypatch.setattr("adp.rendering.run.JOB_ROWS", 30)
    adp.convert(chats / "one", tmp_path / "store", workers=1)
    for name, engine in (("here", None), ("there", executor)):
        with use_executor(engine) if engine else nullcontext():
            adp.render(
                tmp_path / "store", "tiny", out=tmp_path / name, workers=None if engine else 1
            )
    here, there = (hashes(tmp_path / name / "rows") for name in ("here", "there"))
    assert len(here) > 2
    assert here == there


# ---- what a worker must have ---------------------------------------------------------------------


def test_a_machine_that_does_not_see_the_output_is_named(executor, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(ray_executor, "PROBE_SECONDS", 0.5)
    monkeypatch.setattr(ray_executor, "_probe", lambda _: nullcontext(str(tmp_path / "out" / "x")))
    parts = iter([Part(0), Part(1)])
    sentence = (
        r"the machine \S+ of the Ray cluster does not see .*out; put the output into a folder"
    )
    with use_executor(executor), pytest.raises(EngineError, match=sentence):
        run_stage(parts, double, None, Silent(), folder=tmp_path / "out")


def test_a_machine_with_another_version_is_named(executor, monkeypatch):
    versions = {**ray_worker.installed(), "pyarrow": "0.1"}
    monkeypatch.setattr(ray_executor, "installed", lambda: versions)
    sentence = r"the machine \S+ of the Ray cluster has pyarrow \S+ and this process has 0\.1; inst"
    with use_executor(executor), pytest.raises(EngineError, match=sentence):
        run_stage(iter([Part(0), Part(1)]), double, None, Silent())


def test_a_machine_that_sees_another_input_is_named(executor, tmp_path, monkeypatch):
    (tmp_path / "input").write_text("here")
    parts = [Part(index, reads=(str(tmp_path / "input"),)) for index in range(2)]
    with use_executor(executor):
        assert run_stage(iter(parts), double, None, Silent()) == [0, 2]
        monkeypatch.setattr(ray_executor, "state", lambda _: (4, 0))
        with pytest.raises(EngineError, match=r"sees another file under \S+input; put inputs into"):
            run_stage(iter(parts), double, None, Silent())


def test_a_file_that_changed_meanwhile_is_left_to_the_work(executor, tmp_path, monkeypatch):
    asked = iter([None, None])
    real = ray_worker.state
    path = str(tmp_path / "input")
    Path(path).write_text("it came late")
    monkeypatch.setattr(ray_executor, "state", lambda name: next(asked, real(name)))
    with use_executor(executor):
        made = run_stage(iter([Part(i, reads=(path,)) for i in range(2)]), double, None, Silent())
    assert made == [0, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"folder": "/nowhere/at/all"}, "does not see the present folder /nowhere/at/all (No such"),
        ({"versions": {"no-such-package": "1"}}, "does not have no-such-package and this process"),
        ({"probe": "/nowhere/probe"}, "does not see /nowhere; put the output into a folder"),
    ],
)
def test_what_a_worker_lacks_is_one_sentence(changes, words):
    needs = {"versions": {}, "folder": str(Path.cwd()), "path": []}
    needs |= {"variables": {}, "probe": "", "seconds": 0.0, **changes}
    kind, sentence = ray_worker.do_part(needs, b"", b"", [])
    assert kind == ray_worker.UNFIT
    assert words in sentence


def test_what_cannot_be_sent_back_is_said_in_words(monkeypatch):
    needs = {"versions": {}, "folder": str(Path.cwd()), "path": []}
    needs |= {"variables": {}, "probe": ""}
    monkeypatch.setattr(ray_worker, "_fit", [])
    kind, reply = ray_worker.do_part(needs, pickle.dumps(raise_a_lock), pickle.dumps(None), [])
    error = pickle.loads(reply)
    assert kind == ray_worker.RAISED
    assert str(error).startswith("ValueError: ")


def raise_a_lock(_):
    raise ValueError(threading.Lock())


# ---- clusters that are not there -----------------------------------------------------------------


def test_a_cluster_that_is_not_there_is_named_at_once():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    engine = RayExecutor(address)
    with pytest.raises(EngineError, match=f"the Ray cluster at {address} cannot be joined"):
        ray_executor._connect(None, engine._address)
    with pytest.raises(EngineError, match="give HOST:PORT of the head"):
        ray_executor._connect(None, "ray://head:10001")


@pytest.mark.parametrize(
    ("name", "address", "words"),
    [
        ("rai", None, "rai"),
        ("processes", "head:6379", "processes have no address"),
    ],
)
def test_engines_that_there_are_not(name, address, words):
    with pytest.raises(UsageError, match=words), adp.use_engine(name, address):
        pass


def test_the_environment_chooses_an_engine(monkeypatch):
    monkeypatch.setenv("ADP_ENGINE", "rai")
    with pytest.raises(UsageError, match="unknown engine 'rai'"):
        run_stage([Part(1)], double, 1, Silent())


def test_an_error_ends_what_is_at_work(executor, cluster, tmp_path):
    parts = [Part(index, reads=(str(tmp_path),)) for index in range(2)]
    with use_executor(executor), pytest.raises(KeyError, match="the first one fails"):
        run_stage(iter(parts), work_on, None, Silent())
    assert not cluster.kill_worker(random.Random(0))  # none is left at work


# ---- what dies -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("what", ["worker", "node"])
def test_what_dies_at_a_random_moment_changes_no_byte(what, seed, executor, cluster, tmp_path):
    draw = random.Random(f"{what}{seed}")
    source = tmp_path / "chats"
    source.mkdir()
    for number in range(24):
        write_chats(source / f"{number}.jsonl", 1, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adp.converters.file_pieces.SHARD_BYTES", 500_000)
        patch.setattr("adp.converters.file_pieces.LEAST_BYTES", 500_000)
        adp.convert(source, tmp_path / "here", workers=1)
        shards = len(list((tmp_path / "here" / "steps").iterdir()))
        assert shards > 20
        share = draw.random() * 0.8
        killed, ended = [], threading.Event()

        def kill():
            out = tmp_path / "there" / ".run"
            while not ended.is_set() and len(list(out.glob("shard-*.json"))) < share * shards:
                time.sleep(0.005)
            time.sleep(draw.random() * 0.2)
            if what == "node":
                cluster.kill_node()
                killed.append(True)
                return
            while not ended.is_set() and not cluster.kill_worker(draw):
                time.sleep(0.02)
            killed.append(not ended.is_set())

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        with use_executor(executor):
            adp.convert(source, tmp_path / "there")
        ended.set()
        killer.join(60)
        if what == "node":
            cluster.add()
    print(f"{what}, seed {seed}: after {share:.0%} of {shards} shards, killed {sum(killed)}")
    assert hashes(tmp_path / "there") == hashes(tmp_path / "here")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_run_whose_driver_is_killed_goes_on(seed, cluster, tmp_path):
    (tmp_path / "chats").mkdir()
    for number in range(40):
        write_chats(tmp_path / "chats" / f"{number}.jsonl", 1, number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adp.converters.file_pieces.SHARD_BYTES", 500_000)
        patch.setattr("adp.converters.file_pieces.LEAST_BYTES", 500_000)
        adp.convert(tmp_path / "chats", tmp_path / "here", workers=1)
    out, notes = tmp_path / "there", []
    words = [sys.executable, "-c", DRIVER, str(tmp_path / "chats"), str(out), cluster.address]
    for wanted in sorted(random.Random(seed).sample(range(1, 36), 3)):
        driver = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)

        def noted(wanted=wanted):
            return len(list(out.glob(".run/shard-*.json"))) >= wanted

        until(noted, driver, pause=0.001)
        driver.kill()
        driver.communicate()
        notes.append(len(list(out.glob(".run/shard-*.json"))))
    subprocess.run(words, check=True, capture_output=True)
    print(f"seed {seed}: the driver was killed when {notes} of 40 shards were noted")
    assert hashes(out) == hashes(tmp_path / "here")
    assert not (out / ".run").exists()
