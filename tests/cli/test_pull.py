from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import adp
from adp.workflows.publish.upload import upload
from tests import kill

EXAMPLES = Path(__file__).parents[2] / "examples"
URL = "hf://datasets/me/travel"


@pytest.fixture
def published(fake_hub, tmp_path):
    adp.convert(EXAMPLES, tmp_path / "folder/store")
    upload(tmp_path / "folder", "me/travel", tag="v1")
    return fake_hub


def test_pull_says_where_from_and_what(run, published, tmp_path):
    done = run("pull", f"{URL}@v1", "-o", tmp_path / "out")
    assert done.code == 0
    commit = published.repos.repos["me/travel"].head.oid
    assert f"{URL}@{commit}/store into {tmp_path / 'out'}" in done.out
    assert "records 14 = used 10 + skipped 0 + rejected 4" in done.out
    assert kill.hashes(tmp_path / "out") == kill.hashes(tmp_path / "folder/store")
    again = run("pull", URL, "-o", tmp_path / "json", "--json")
    messages = json.loads(again.out)
    assert messages["from"] == f"{URL}@{commit}/store"
    assert messages["counts"]["used"] == 10
    assert again.err == ""


def test_pull_ends_in_one_sentence_and_a_code(run, published, tmp_path):
    out = tmp_path / "out"
    cases = {
        ("hf://datasets/me/none", out): (9, "there is no data set me/none on the Hub"),
        (f"{URL}@v2", out): (9, "me/travel has no revision 'v2'"),
        ("hf://me/travel", out): (2, "write hf://datasets/OWNER/NAME"),
        (URL, tmp_path / "folder/store"): (5, "holds a store already"),
    }
    for (url, folder), (code, output) in cases.items():
        done = run("pull", url, "-o", folder)
        assert (done.code, done.out) == (code, "")
        assert output in done.err
        assert done.err.count("\n") == 1
    steps = "store/steps/part-00000.parquet"
    whole = published.repos.files("me/travel")[steps]
    published.repos.push("me/travel", {steps: bytes(len(whole))})
    done = run("pull", URL, "-o", out)
    assert done.code == 5
    assert f"{steps} is damaged" in done.err
    shutil.rmtree(out)
    published.faults.add(".", "503", times=10**6)
    done = run("pull", URL, "-o", out)
    assert done.code == 9
    assert "the Hub fails (status 503); what is done is kept: call again later" in done.err
