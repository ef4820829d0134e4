from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from adp.cli.publish import show_licenses
from adp.stores.visible_text import human_size
from adp.workflows.publish import findings
from adp.workflows.publish.findings import StoreFindings
from adp.workflows.publish.options import PublishOptions
from adp_schema.store import Store
from tests.stores.redact import planted
from tests.workflows.publish.published import Words, write_published

HEAD = "data set license counts as rows what to know"


@pytest.fixture(autouse=True)
def _no_findings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(findings, "scan", lambda *_: StoreFindings({}))
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
    assert sorted(file["path"] for file in files) == sorted(
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
    monkeypatch.setattr(findings, "scan", lambda *_: StoreFindings({"token": 1}, ("swe/x $.text",)))
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
    assert not list((tmp_path / "cache").glob("adp/publish/*"))
    assert "in None" not in done.out
    assert str(tmp_path) not in done.out  # the folder is gone
    assert done.out.splitlines()[-1].endswith("runs: 11 files in 1 commit")
    more = (*words, "--tag", "v2", "--traces", "--out", tmp_path / "mine")
    again = run(*more, "--json")
    assert again.code == 0
    assert [item["commits"] for item in json.loads(again.out)["uploaded"]] == [1, 1]
    assert (tmp_path / "mine" / "README.md").exists()
    last = run(*more)
    assert [line.split(": ", 1)[1] for line in last.out.splitlines()[-2:]] == [
        "all of it was there already, no commit"
    ] * 2
    assert "no commit" not in last.err


def test_json_names_no_folder_that_is_gone(run, store: Store, fake_hub):
    done = run("publish", store.root, "me/runs", "--license", "mit", "--traces", "--json")
    made = json.loads(done.out)
    assert made["folder"] is None
    assert made["traces"]["folder"] is None
    assert made["uploaded"][0]["sent"] == len(made["files"])


def test_traces_are_said(run, store: Store, tmp_path):
    out = tmp_path / "folder"
    done = run("publish", store.root, "a/b", "--license", "mit", "--traces", "--dry-run",
               "--out", out)  # fmt: skip
    files = list((tmp_path / "folder-traces").rglob("*.jsonl"))
    size = sum(file.stat().st_size for file in files)
    line = next(line for line in done.out.splitlines() if line.startswith("traces: "))
    assert line == f"traces: {len(files)} sessions, {human_size(size)}, in {out}-traces"
    assert "traces do not hold: " in done.out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["me/runs", "--date", "now"], 2, "no date"),
        (["me/runs", "--dry-run", "--tag", "a b"], 2, "no name of a tag"),
        (["me/runs", "--tag", "a b"], 2, "no name of a tag"),
        (["other/runs"], 9, "your token is that of me"),
        (["team/open", "--private"], 2, "is public already"),
        (["me/" + "x" * 90, "--traces"], 2, "is no name of a repository"),
        (["me/runs", "--license", "my own"], 2, "'my own' is no license that adp knows; write"),
        (["me/runs", "--license", ""], 2, "'' is no license that adp knows; write"),
        (["me/runs", "--about", "none.md"], 3, "cannot read none.md"),
    ],
)
def test_what_needs_no_work_is_refused_first(
    run, store: Store, fake_hub, tmp_path, monkeypatch, words, code, message
):
    fake_hub.repos.push("team/open", {"a.txt": b"a"})
    monkeypatch.setattr(findings, "scan", None)
    done = run("publish", store.root, *words)
    assert (done.code, done.out) == (code, "")  # no table of licenses
    assert message in done.err
    assert not (tmp_path / "cache").exists()


def test_no_token(run, store: Store, fake_hub, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    done = run("publish", store.root, "me/runs", "--license", "mit")
    assert (done.code, done.out) == (9, "")
    assert "hf auth login" in done.err


def test_a_license_that_stands_in_the_way_is_not_advised_again(run, store: Store):
    done = run("publish", store.root, "me/runs", "--dry-run", "--license", "cc-by-nc-4.0")
    assert done.code == 8
    line = done.err.splitlines()[-1]
    assert "cc-by-nc-4.0 forbids commercial use" in line
    assert "--license" not in line.replace("--accept-licenses", "")
    assert line.endswith("or publish all the same with --accept-licenses")


def test_a_text_of_the_publisher(run, store: Store, tmp_path):
    about = tmp_path / "about.md"
    about.write_text("## Mine\n\nA <b>word</b> | of *mine*.\n", encoding="utf-8")
    words = ("publish", store.root, "a/b", "--license", "mit", "--dry-run", "--out",
             tmp_path / "folder", "--about", about)  # fmt: skip
    assert run(*words).code == 0
    readme = tmp_path / "folder" / "README.md"
    assert "\n## Mine\n\nA <b>word</b> | of *mine*.\n\n## Load it\n" in readme.read_text()
    about.write_bytes(b"\xff")
    assert run(*words).code == 3
    _, secret = next(item for item in planted.plain() if item[0] == "github-token")
    about.write_text(f"The key is {secret} here.\n", encoding="utf-8")
    done = run(*words)
    assert done.code == 8
    assert "the text of --about holds what must not be published: 1 github-token" in done.err
    assert secret not in done.err
    assert run(*words, "--redact").code == 0
    assert "The key is [redacted:github-token] here." in readme.read_text()
    assert "| github-token | 1 |" in readme.read_text()
    assert run(*words, "--allow-findings").code == 0
    assert secret in readme.read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
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
def test_wrong_calls(run, store: Store, tmp_path, words, code, message):
    places = {"STORE": store.root, "NONE": str(tmp_path / "none")}
    done = run("publish", *[places.get(word, word) for word in words])
    assert done.code == code
    assert message in done.err.splitlines()[-1]


def test_long_names_stay_whole_in_a_narrow_terminal(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    name = "swe-smith-trajectories-v2"
    made = write_published(tmp_path / "s", Words(dataset=name, split="test"))
    done = run("publish", made.root, "a/b", "--dry-run", "--out", tmp_path / "out")
    assert done.code == 0
    assert done.out.splitlines()[1].startswith(f"{name}  ")
    assert max(len(line) for line in done.out.split("config ")[0].splitlines()) <= 80


def test_a_note_is_coloured_and_not_the_license(tmp_path, monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=100)
    monkeypatch.setattr("adp.cli.publish.console", lambda: screen)
    made = write_published(tmp_path / "s", Words(split="test"))
    show_licenses(made.root, PublishOptions())
    assert "\x1b[33ma split to test models with" in screen.file.getvalue()
    assert "  mit: permissive  " in screen.file.getvalue()
