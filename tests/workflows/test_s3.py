"""From logs on S3 to a data set on S3, over the wire of a local server of its protocol."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.cli.conftest import Run, run
from tests.converters.test_remote_source import chat
from tests.stores.test_remote_output import contents

__all__ = ["run"]

pytest.importorskip("s3fs", reason="s3fs is not installed")
moto_server = pytest.importorskip("moto.server", reason="moto is not installed")

RECIPE = {
    "recipe": 1,
    "inputs": {"runs": "s3://team/store"},
    "ops": [{"dedup_exact": {}}, {"split": {"shares": {"train": 0.8, "test": 0.2}}}],
    "outputs": {"train": {"where": "split = 'train'"}, "test": {"where": "split = 'test'"}},
}


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty bucket ``team``, which the file system of ``s3://`` asks for."""
    import s3fs

    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    # What it holds is that of the process, and stays when a server ends.
    urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "ADP_STAGING": str(tmp_path / "staging"),
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("team")
    yield system
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def test_logs_stores_and_sets_on_s3(bucket: Any, run: Run, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(4):
        lines = [chat(f"{number}-{line}") for line in range(30)] + [chat("twice")]
        (logs / f"{number}.jsonl").write_bytes(b"".join(lines))
        bucket.put_file(str(logs / f"{number}.jsonl"), f"team/logs/{number}.jsonl")
    for source, store in ((str(logs), tmp_path / "store"), ("s3://team/logs", "s3://team/store")):
        assert run("convert", source, "-o", store, "--workers", 2).code == 0
    bucket.get("team/store", str(tmp_path / "copy"), recursive=True)
    afar, here = contents(tmp_path / "copy"), contents(tmp_path / "store")
    assert {name for name in afar if afar[name] != here[name]} == {"adp.json"}  # it names the URL
    asked = run("query", "s3://team/store", "-c", "SELECT count(*) AS n FROM trajectories")
    assert asked.out.split()[:2] == ["n", "124"]
    assert (
        json.loads(run("info", "s3://team/store", "--verify", "--json").out)["counts"]["used"]
        == 124
    )
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(RECIPE))
    shutil.rmtree(tmp_path / "copy")
    for out in (tmp_path / "set", "s3://team/set"):
        assert run("curate", recipe, "-o", out, "--workers", 2).code == 0
    bucket.get("team/set", str(tmp_path / "copy"), recursive=True)
    assert contents(tmp_path / "copy") == contents(tmp_path / "set")
    assert (
        run("merge", "s3://team/set/train", "s3://team/set/test", "-o", "s3://team/all").code == 0
    )
    assert "121" in run("info", "s3://team/all").out


def test_what_s3_refuses_is_one_sentence(bucket: Any, run: Run, tmp_path: Path) -> None:
    bucket.pipe_file("team/logs/a.jsonl", chat("a"))
    missing = run("convert", "s3://nobody/logs", "-o", tmp_path / "store")
    assert missing.code != 0
    assert "there is nothing at s3://nobody/logs" in missing.err
    refused = run("convert", "s3://team/logs", "-o", "s3://nobody/store")
    assert refused.code != 0
    assert "s3://nobody/store cannot be written" in refused.err
