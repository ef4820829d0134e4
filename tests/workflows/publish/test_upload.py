"""Uploading a folder to a local Hub: complete, nothing twice, whatever goes wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from adp.core.progress import Silent
from adp.workflows.publish import upload as module
from adp.workflows.publish.upload import upload
from adp_schema import retries
from adp_schema.errors import HubError, InputError, OutputExistsError, UsageError
from tests.hub import fixtures

REPO = "me/set"
KINDS = ["429", "500", "503", "cut_request", "no_response", "cut_response", "reset"]
CALLS = {
    "repository": "GET /api/datasets/me/set$",
    "create": "POST /api/repos/create",
    "head": "GET /api/datasets/me/set/revision/",
    "tree": "GET .*/tree/",
    "yaml": "POST /api/validate-yaml",
    "preupload": "POST .*/preupload/",
    "batch": "POST .*/objects/batch",
    "put": "PUT /objects",
    "verify": "POST .*/objects/verify",
    "commit": "POST .*/commit/",
    "tag": "POST .*/tag/",
}


def contents(number: int = 1, shards: int = 3) -> dict[str, bytes]:
    """What a published folder holds, in small."""
    tables = ("trajectories", "steps")
    return {
        "README.md": f"---\nlicense: mit\n---\n# number {number}\n".encode(),
        "croissant.json": b'{"n": %d}' % number,
        "store/adp.json": b'{"number": %d}\n' % number,
        **{
            f"store/{table}/part-{index:05d}.parquet": f"{table} {index} {number}".encode() * 50
            for table in tables
            for index in range(shards)
        },
        "messages/part-00000.parquet": b"messages %d" % number,
    }


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "folder", contents())


def nothing_twice(fake_hub, repo_id: str = REPO) -> None:
    """Each object was sent once, and each file was committed once.

    An object whose answer was lost may be sent again: nobody can know whether it came.
    """
    answered = Counter(call.path for call in fake_hub.asked("^PUT") if not call.fault)
    assert set(answered.values()) <= {1}
    changed = Counter(
        path for commit in fake_hub.repos.repos[repo_id].history() for path in commit.changed
    )
    assert set(changed.values()) <= {1}
    assert all(commit.changed for commit in fake_hub.repos.repos[repo_id].history())


def test_a_folder_is_one_commit_and_a_tag(fake_hub, folder):
    done = upload(folder, REPO, tag="v1", message="First")
    repo = fake_hub.repos.repos[REPO]
    assert fake_hub.repos.files(REPO) == contents()
    assert [commit.title for commit in repo.history()] == ["First"]
    assert repo.tags == {"v1": repo.head.oid}
    assert done.commit == repo.head.oid
    assert (done.commits, done.sent, done.files) == (1, len(contents()), len(contents()))
    assert done.bytes == sum(map(len, contents().values()))
    assert done.url == f"{fake_hub.url}/datasets/me/set"
    assert not repo.private
    nothing_twice(fake_hub)


def test_once_more_does_nothing(fake_hub, folder):
    first = upload(folder, REPO, tag="v1")
    fake_hub.forget()
    notes = []

    class Notes(Silent):
        def note(self, message):
            notes.append(message)

    for tag in ("v1", None):
        again = upload(folder, REPO, tag=tag, progress=Notes())
        assert (again.commit, again.commits, again.sent) == (first.commit, 0, 0)
    assert notes == []
    assert not fake_hub.asked("^(PUT|POST)")


def test_a_new_publication_replaces_the_old_one_and_keeps_what_people_added(fake_hub, folder):
    upload(folder, REPO, tag="v1")
    people = {"notes.txt": b"mine", "store/extra/data.csv": b"a", "images/x.png": b"png"}
    fake_hub.repos.push(REPO, people)
    new = {path: data for path, data in contents(2, shards=2).items() if path != "croissant.json"}
    for path in contents():
        (folder / path).unlink()
    write(folder, new)
    done = upload(folder, REPO, tag="v2")
    assert fake_hub.repos.files(REPO) == new | people
    assert fake_hub.repos.files(REPO, "v1") == contents()
    assert (done.commits, done.deleted, done.sent) == (1, 3, len(new))


def test_only_what_differs_is_sent(fake_hub, folder):
    upload(folder, REPO)
    (folder / "store/steps/part-00001.parquet").write_bytes(b"other")
    fake_hub.forget()
    done = upload(folder, REPO)
    assert (done.commits, done.sent) == (1, 1)
    assert len(fake_hub.asked("PUT")) == 1
    assert fake_hub.repos.repos[REPO].head.changed == ["store/steps/part-00001.parquet"]


def test_a_large_folder_takes_several_commits_and_the_manifest_comes_last(
    fake_hub, folder, monkeypatch
):
    monkeypatch.setattr(module, "COMMIT_FILES", 3)
    done = upload(folder, REPO, message="Big")
    repo = fake_hub.repos.repos[REPO]
    history = repo.history()[::-1]
    assert [commit.title for commit in history] == [f"Big (part {n} of 4)" for n in (1, 2, 3, 4)]
    assert sorted(history[-1].changed) == ["README.md", "croissant.json", "store/adp.json"]
    assert done.commits == 4
    nothing_twice(fake_hub)
    assert fake_hub.repos.files(REPO) == contents()
    # An update: the old manifest goes first, so that no state is a mixture.
    write(folder, contents(2))
    upload(folder, REPO)
    update = repo.history()[:4][::-1]
    assert "store/adp.json" in update[0].changed
    assert all("store/adp.json" not in commit.files for commit in update[:3])
    assert fake_hub.repos.files(REPO) == contents(2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_each_call_may_fail_in_each_way(fake_hub, folder, call, kind):
    fake_hub.faults.add(CALLS[call], kind, times=2)
    done = upload(folder, REPO, tag="v1")
    assert fake_hub.faults.happened[kind] >= 1
    assert fake_hub.repos.files(REPO) == contents()
    assert fake_hub.repos.repos[REPO].tags == {"v1": done.commit}
    assert (done.commits, done.sent) == (1, len(contents()))
    assert len(fake_hub.repos.repos[REPO].history()) == 1
    nothing_twice(fake_hub)


@pytest.mark.parametrize("seed", range(12))
def test_faults_at_random(fake_hub, folder, monkeypatch, seed):
    monkeypatch.setattr(module, "COMMIT_FILES", 3)
    monkeypatch.setattr(module, "SEND_FILES", 2)
    fake_hub.part = 200
    fake_hub.faults.at_random(seed, 0.3, most=2)
    done = upload(folder, REPO, tag="v1")
    fake_hub.faults.clear()
    assert fake_hub.faults.happened.total()
    assert fake_hub.repos.files(REPO) == contents()
    history = fake_hub.repos.repos[REPO].history()
    assert len(history) == done.commits in (3, 4)  # what is left at last is one commit
    assert "store/adp.json" in history[0].changed
    nothing_twice(fake_hub)


def test_a_call_that_fails_for_good_is_gone_on_with(fake_hub, folder, monkeypatch):
    monkeypatch.setattr(module, "COMMIT_FILES", 3)
    fault = fake_hub.faults.add("POST .*/commit/", "500", times=10**6, skip=2)
    with pytest.raises(HubError, match=r"the Hub fails \(status 500\); what is done is kept"):
        upload(folder, REPO)
    assert "store/adp.json" not in fake_hub.repos.files(REPO)
    assert "README.md" not in fake_hub.repos.files(REPO)
    fault.times = 0
    done = upload(folder, REPO)
    assert done.commits == 1
    assert fake_hub.repos.files(REPO) == contents()
    nothing_twice(fake_hub)


def test_somebody_else_commits_meanwhile(fake_hub, folder, monkeypatch):
    monkeypatch.setattr(module, "COMMIT_FILES", 3)
    sent = module._Upload._send
    pushed = []

    def send(self, additions):
        sent(self, additions)
        if len(pushed) < 3:
            pushed.append(f"people-{len(pushed)}.txt")
            fake_hub.repos.push(REPO, {pushed[-1]: b"x"})

    monkeypatch.setattr(module._Upload, "_send", send)
    done = upload(folder, REPO)
    assert len([call for call in fake_hub.asked("/commit/") if call.status == 412]) == 3
    assert done.commits == 4
    assert fake_hub.repos.files(REPO) == contents() | dict.fromkeys(pushed, b"x")
    nothing_twice(fake_hub)


def test_a_tag_is_never_moved(fake_hub, folder):
    upload(folder, REPO, tag="v1")
    fake_hub.repos.push(REPO, {"people.txt": b"x"})
    assert upload(folder, REPO, tag="v1").commits == 0
    write(folder, contents(2))
    head = fake_hub.repos.repos[REPO].head.oid
    with pytest.raises(OutputExistsError, match="choose another tag"):
        upload(folder, REPO, tag="v1")
    assert fake_hub.repos.repos[REPO].head.oid == head


def test_private(fake_hub, folder):
    upload(folder, REPO, private=True)
    assert fake_hub.repos.repos[REPO].private
    assert upload(folder, REPO).commits == 0  # it stays private
    assert fake_hub.repos.repos[REPO].private
    upload(folder, "team/set")
    with pytest.raises(UsageError, match="public already"):
        upload(folder, "team/set", private=True)


def test_what_a_user_can_do_wrong(fake_hub, folder, tmp_path, monkeypatch):
    for name in ("set", "me/", "me/a/b", "me/a--b", "me/ä", "me/-a", "me/a.git"):
        with pytest.raises(UsageError, match="OWNER/NAME"):
            upload(folder, name)
    with pytest.raises(UsageError, match="name of a tag"):
        upload(folder, REPO, tag="a b")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no files"):
        upload(tmp_path / "empty", REPO)
    with pytest.raises(HubError, match="may not write to other/set"):
        upload(folder, "other/set")
    fake_hub.repos.push("other/there", {"a": b"1"})
    with pytest.raises(HubError, match="may not write to other/there"):
        upload(folder, "other/there")
    (folder / "README.md").write_text("---\n: :\n  a\n---\n")
    with pytest.raises(HubError, match=r"head of README\.md \(while parsing"):
        upload(folder, REPO)
    monkeypatch.setenv("HF_TOKEN", "hf_secret_wrong_token")
    with pytest.raises(HubError, match="hf auth login") as caught:
        upload(folder, REPO)
    assert "hf_secret" not in str(caught.value)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="not logged in"):
        upload(folder, REPO)
    assert not fake_hub.asked("cdn")


@pytest.mark.parametrize(
    ("status", "message", "output"),
    [
        ("403", "Private repository storage limit reached, upgrade", "no room"),
        ("402", "Payment required", "no room"),
        ("413", "Payload too large", "too large"),
        ("400", "Bad hf_abcdefghijkl thing", r"refuses this .*Bad hf_\.\.\. thing"),
    ],
)
def test_what_the_hub_refuses_is_one_sentence(fake_hub, folder, status, message, output):
    fake_hub.faults.add("POST .*/commit/", status, times=99, message=message)
    with pytest.raises(HubError, match=output) as caught:
        upload(folder, REPO)
    assert "\n" not in str(caught.value)


def test_without_a_connection(fake_hub, folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        HubError, match=r"cannot reach the Hub at http://127\.0\.0\.1:9; .* where it stopped$"
    ):
        upload(folder, REPO)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE is set"):
        upload(folder, REPO)


class Counting(Silent):
    """Adds up what it is told."""

    def __init__(self):
        self.whole = self.done = 0

    def total(self, amount):
        self.whole += amount

    def advance(self, amount):
        self.done += amount


def test_progress_adds_up(fake_hub, folder, monkeypatch):
    monkeypatch.setattr(module, "COMMIT_FILES", 3)
    fake_hub.faults.add("POST .*/commit/", "no_response", times=2)
    size = sum(map(len, contents().values()))
    for _ in range(2):
        report = Counting()
        upload(folder, REPO, progress=report)
        assert (report.whole, report.done) == (size, size)


def test_it_waits_as_long_as_the_hub_asks(fake_hub, folder, monkeypatch):
    waited = []
    monkeypatch.setattr(retries, "time", SimpleNamespace(sleep=waited.append))
    fake_hub.faults.add("POST .*/commit/", "429")
    upload(folder, REPO)
    assert waited == [3.0]


def test_hidden_files_and_times_stay_here(fake_hub, folder):
    write(folder, {"store/run.json": b"{}", ".run/plan.json": b"{}", "store/.x": b"x"})
    upload(folder, REPO)
    assert fake_hub.repos.files(REPO) == contents()


def test_no_token_leaves_by_the_way(fake_hub, folder, capfd):
    upload(folder, REPO, tag="v1")
    assert not any(call.token for call in fake_hub.calls if call.origin == "cdn")
    assert fixtures.TOKEN.encode() not in b"".join(call.body for call in fake_hub.calls)
    readouterr = capfd.readouterr()
    assert readouterr.out == readouterr.err == ""


def test_a_hub_without_xet_is_named(fake_hub, folder, monkeypatch):
    """What huggingface_hub does with hf_xet installed, and no Xet on the other side."""
    pytest.importorskip("hf_xet")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)
    with pytest.raises(HubError, match=r"has no Xet storage.*set HF_HUB_DISABLE_XET=1"):
        upload(folder, REPO)
    assert not fake_hub.asked("/commit/")


def test_what_the_hub_leaves_out_is_named(fake_hub, folder):
    fake_hub.repos.ignored.add("messages/part-00000.parquet")
    with pytest.raises(HubError, match=r"messages/part-00000\.parquet .*\.gitignore in me/set"):
        upload(folder, REPO)
    assert len(fake_hub.asked("/commit/")) == 1
