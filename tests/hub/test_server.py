"""The local Hub, asked by the real client: what it answers, and how it fails."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

BIG = bytes(range(256)) * 3000


def api():
    from huggingface_hub import HfApi

    return HfApi()


def put(hub, files: dict[str, bytes], folder: Path, name: str = "me/set"):
    """Upload files as the client does it by itself."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    api().create_repo(name, repo_type="dataset", exist_ok=True)
    return api().upload_folder(repo_id=name, folder_path=folder, repo_type="dataset")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "folder"
    made.mkdir()
    return made


def test_the_client_uploads_lists_and_downloads(fake_hub, folder, tmp_path):
    files = {"README.md": b"---\nlicense: mit\n---\n# x\n", "a/b.parquet": BIG, "empty.txt": b""}
    put(fake_hub, files, folder)
    assert fake_hub.repos.files("me/set") == files
    listed = {item.path: item for item in api().list_repo_tree("me/set", repo_type="dataset",
                                                               recursive=True)}  # fmt: skip
    assert set(listed) == {*files, "a", ".gitattributes"}
    assert listed["a/b.parquet"].lfs.sha256 == hashlib.sha256(BIG).hexdigest()
    got = api().snapshot_download("me/set", repo_type="dataset", local_dir=tmp_path / "got")
    assert {name: (Path(got) / name).read_bytes() for name in files} == files
    assert not any(call.token for call in fake_hub.calls if call.origin == "cdn")
    assert api().dataset_info("me/set").sha == fake_hub.repos.repos["me/set"].head.oid
    assert api().whoami()["name"] == "me"


def test_large_objects_come_in_parts(fake_hub, folder):
    fake_hub.part = 100_000
    put(fake_hub, {"b.parquet": BIG}, folder)
    assert fake_hub.repos.files("me/set") == {"b.parquet": BIG}
    kinds = fake_hub.kinds()
    assert kinds["CDN PUT /objects/SHA256/PART"] == -(-len(BIG) // 100_000)
    assert list(fake_hub.repos.stored.values()) == [1]


def test_a_tree_comes_in_pages(fake_hub):
    fake_hub.page = 3
    fake_hub.repos.push("me/set", {f"f{number}": b"x" for number in range(10)})
    assert len(api().list_repo_files("me/set", repo_type="dataset")) == 11
    assert len(fake_hub.asked("/tree/")) == 4


def test_what_the_hub_refuses(fake_hub, monkeypatch):
    from huggingface_hub import CommitOperationAdd
    from huggingface_hub.errors import (
        HfHubHTTPError,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    client = api()
    with pytest.raises(RepositoryNotFoundError):
        client.dataset_info("me/none")
    with pytest.raises(HfHubHTTPError, match="rights"):
        client.create_repo("other/set", repo_type="dataset")
    fake_hub.repos.push("me/set", {"a": b"1"})
    with pytest.raises(HfHubHTTPError, match="409"):
        client.create_repo("me/set", repo_type="dataset")
    with pytest.raises(RevisionNotFoundError):
        client.dataset_info("me/set", revision="none")
    with pytest.raises(RemoteEntryNotFoundError):
        client.hf_hub_download("me/set", "none", repo_type="dataset")
    old = fake_hub.repos.repos["me/set"].head.oid
    fake_hub.repos.push("me/set", {"a": b"2"})
    with pytest.raises(HfHubHTTPError, match="412"):
        client.create_commit(
            "me/set", [CommitOperationAdd("b", b"3")], commit_message="x", repo_type="dataset",
            parent_commit=old,
        )  # fmt: skip
    with pytest.raises(ValueError, match="Invalid metadata"):
        client.create_commit(
            "me/set", [CommitOperationAdd("README.md", b"---\n: :\n  a\n---\n")],
            commit_message="x", repo_type="dataset",
        )  # fmt: skip
    fake_hub.repos.repos["me/set"].private = True
    monkeypatch.setenv("HF_TOKEN", "hf_somebody_else")
    fake_hub.repos.tokens["hf_somebody_else"] = ("else", set())
    with pytest.raises(RepositoryNotFoundError, match="404"):
        client.dataset_info("me/set")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(RepositoryNotFoundError, match="401"):
        client.dataset_info("me/set")


def test_tags(fake_hub):
    from huggingface_hub.errors import HfHubHTTPError

    fake_hub.repos.push("me/set", {"a": b"1"})
    api().create_tag("me/set", tag="v1", repo_type="dataset")
    fake_hub.repos.push("me/set", {"a": b"2"})
    with pytest.raises(HfHubHTTPError, match="409"):
        api().create_tag("me/set", tag="v1", repo_type="dataset")
    assert [tag.name for tag in api().list_repo_refs("me/set", repo_type="dataset").tags] == ["v1"]
    read = Path(api().hf_hub_download("me/set", "a", repo_type="dataset", revision="v1"))
    assert read.read_bytes() == b"1"


@pytest.mark.parametrize("kind", ["429", "500", "cut_request", "no_response", "cut_response"])
def test_the_client_meets_each_fault(fake_hub, folder, kind):
    fake_hub.faults.add("PUT /objects", kind)
    put(fake_hub, {"b.parquet": BIG}, folder)
    assert fake_hub.faults.happened == {kind: 1}
    assert fake_hub.repos.files("me/set") == {"b.parquet": BIG}
    assert [call.fault for call in fake_hub.asked("PUT")] == [kind, ""]


def test_a_cut_download_goes_on_where_it_was(fake_hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    fake_hub.repos.push("me/set", {"b.parquet": BIG})
    fake_hub.faults.add("GET /objects", "cut_response")
    path = api().hf_hub_download("me/set", "b.parquet", repo_type="dataset")
    assert Path(path).read_bytes() == BIG
    assert [call.status for call in fake_hub.asked("GET /objects")] == [200, 206]
    assert fake_hub.sent == len(BIG)


def test_random_faults_follow_from_the_seed(fake_hub):
    def drawn():
        fake_hub.faults.at_random(7, 0.5)
        return [
            getattr(fake_hub.faults.next("GET", f"/{number % 3}"), "kind", "")
            for number in range(50)
        ]

    first = drawn()
    assert first == drawn()
    assert len(set(first)) > 4
