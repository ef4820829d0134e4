from __future__ import annotations

import json
from pathlib import Path

import pytest

from adp.workflows.publish import findings
from adp.workflows.publish.findings import Found
from adp_schema.store import Store

HEAD = "data set license counts as rows what to know"


@pytest.fixture(autouse=True)
def _no_findings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(findings, "scan", lambda *_: Found({}))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_dry_run_says_what_would_go_up(run, store: Store, tmp_path):
    out = tmp_path / "folder"
    words = ("alice/runs", "--dry-run", "--out", out, "--license", "mit")
    done = run("publish", store.root, *words)
    assert done.code == 0
    assert " ".join(done.out.splitlines()[0].split()) == HEAD
    assert "train 3, train_branches 1" in done.out
    assert "nothing was uploaded" in done.out
    assert (out / "README.md").exists()
    files = json.loads(run("publish", store.root, *words, "--json").out)["files"]
    assert sorted(one["path"] for one in files) == sorted(
        path.relative_to(out).as_posix()
        for path in out.rglob("*")
        if path.is_file() and ".run" not in path.parts
    )


def test_json(run, store: Store):
    answer = json.loads(
        run("publish", store.root, "alice/runs", "--dry-run", "--json", "--license", "mit").out
    )
    assert answer["repo"] == "alice/runs"
    assert answer["configs"]["messages"]["splits"] == {"train": 3, "train_branches": 1}
    assert [row["verdict"] for row in answer["licenses"]] == ["ok", "ok"]
    assert answer["uploaded"] == []
    assert answer["bytes"] == sum(file["size"] for file in answer["files"])


def test_without_out_the_same_call_finds_its_folder_again(run, store: Store, tmp_path):
    words = ("publish", store.root, "alice/runs", "--dry-run", "--json", "--license", "mit")
    first, second = json.loads(run(*words).out), json.loads(run(*words).out)
    assert first["folder"] == second["folder"]
    assert Path(first["folder"]).is_relative_to(tmp_path / "cache" / "adp" / "publish")
    assert (first["reused"], second["reused"]) == (False, True)
    other = json.loads(run(*words[:2], "alice/more", *words[3:]).out)
    assert other["folder"] != first["folder"]


def test_licenses_are_said_and_stop_it(run, store: Store, tmp_path):
    done = run("publish", store.root, "alice/runs", "--dry-run", "--out", tmp_path / "out")
    assert done.code == 8
    assert "4 trajectories may not be free to publish" in done.out
    line = done.err.splitlines()[-1]
    assert line.startswith("error: licenses stand in the way: chat (no license is stated); swe (no")
    assert "--accept-licenses" in line
    assert not (tmp_path / "out").exists()


def test_findings_stop_it(run, store: Store, monkeypatch):
    monkeypatch.setattr(findings, "scan", lambda *_: Found({"token": 1}, ("swe/x $.text",)))
    done = run("publish", store.root, "alice/runs", "--dry-run", "--accept-licenses")
    assert done.code == 8
    assert "1 token: swe/x $.text; look at each" in done.err
    done = run("publish", store.root, "alice/runs", "--dry-run", "--accept-licenses",
               "--allow-findings")  # fmt: skip
    assert done.code == 0
    assert "findings PUBLISHED AS THEY ARE: 1 token" in done.out


def test_it_goes_up_and_the_cache_is_cleared(run, store: Store, tmp_path, fake_hub):
    words = ("publish", store.root, "me/runs", "--license", "mit", "--private", "--tag", "v1",
             "--message", "first")  # fmt: skip
    done = run(*words)
    assert done.code == 0
    assert f"uploaded to {fake_hub.url}/datasets/me/runs" in done.out
    repo = fake_hub.repos.repos["me/runs"]
    assert repo.private
    assert [commit.title for commit in repo.history()][:1] == ["first"]
    assert "v1" in repo.tags
    assert "SHA256SUMS" in fake_hub.repos.files("me/runs")
    assert list((tmp_path / "cache" / "adp" / "publish").iterdir()) == []
    again = run(*words, "--traces", "--out", tmp_path / "mine", "--json")
    assert again.code == 0
    assert [one["commits"] for one in json.loads(again.out)["uploaded"]] == [0, 1]
    assert (tmp_path / "mine" / "README.md").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["STORE"], 2, "missing argument"),
        (["STORE", "runs"], 2, "write OWNER/NAME"),
        (["STORE", "a/b c"], 2, "is no name of a repository"),
        (["STORE", "a/b", "--redact", "--allow-findings"], 2, "exclude each other"),
        (["STORE", "a/b", "--date", "now"], 2, "no date"),
        (["NONE", "a/b"], 5, "not a store"),
        (["STORE", "a/b", "--dry-run", "--accept-licenses", "--out", "STORE"], 5, "not empty"),
    ],
)
def test_wrong_calls(run, store: Store, tmp_path, words, code, said):
    places = {"STORE": store.root, "NONE": str(tmp_path / "none")}
    done = run("publish", *[places.get(word, word) for word in words])
    assert done.code == code
    assert said in done.err.splitlines()[-1]
