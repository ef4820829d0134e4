"""What a local Hub answers to each kind of call."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import yaml

from tests.hub.repos import (
    Commit,
    Entry,
    HubRefusal,
    Repo,
    git_entry,
    is_large,
    lfs_entry,
    repo_key,
)

if TYPE_CHECKING:
    from tests.hub.server import LocalHub


@dataclass
class Request:
    """A call: who asks what."""

    hub: LocalHub
    token: str | None
    body: bytes
    query: dict[str, str]
    headers: Mapping[str, str]
    parts: dict[str, str]

    def repo(self, *, write: bool = False) -> Repo:
        """The repository that the path names."""
        key = repo_key(self.parts["repo"], self.parts.get("kind"))
        return self.hub.repos.find(key, self.token, write=write)

    @property
    def place(self) -> str:
        """What stands before the name in the address of a repository of this kind."""
        return "datasets/" if self.parts.get("kind") == "datasets" else ""

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class Answer:
    """Status, body and headers."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def as_json(value: object, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON."""
    return Answer(
        status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers}
    )


def refused(error: HubRefusal) -> Answer:
    """An answer other than 2xx."""
    headers = {"X-Error-Message": str(error)}
    if error.code:
        headers["X-Error-Code"] = error.code
    return as_json({"error": str(error)}, error.status, **headers)


def whoami(request: Request) -> Answer:
    """Who a token belongs to."""
    user = request.hub.repos.user(request.token)
    others = [{"name": name} for name in sorted(request.hub.repos.tokens[request.token or ""][1])]
    return as_json({"type": "user", "name": user, "orgs": others})


def create(request: Request) -> Answer:
    """Make a repository."""
    asked = request.json()
    private = asked.get("private") or asked.get("visibility") == "private"
    kind = {"dataset": "datasets", "model": "models", None: "models"}.get(asked.get("type"))
    if kind is None:
        raise HubRefusal(400, "only data sets and models are kept here")
    owner = asked.get("organization") or request.hub.repos.user(request.token)
    place = "datasets/" if kind == "datasets" else ""
    url = f"{request.hub.url}/{place}{owner}/{asked['name']}"
    try:
        request.hub.repos.create(request.token, owner, asked["name"], bool(private), kind)
    except HubRefusal as error:
        if error.status != 409:
            raise
        return as_json({"error": str(error), "url": url}, 409)
    return as_json({"url": url, "name": f"{owner}/{asked['name']}"})


def validate_yaml(request: Request) -> Answer:
    """Check the head of a README."""
    result = re.match(r"---\n(.*?\n)---\n", request.json()["content"], re.DOTALL)
    if result is None:
        warning = {"message": "empty or missing yaml metadata in repo card"}
        return as_json({"errors": [], "warnings": [warning]})
    try:
        head = yaml.safe_load(result[1])
    except yaml.YAMLError as error:
        return as_json({"errors": [{"message": str(error)}], "warnings": []}, 400)
    if not isinstance(head, dict):
        return as_json({"errors": [{"message": "the head is no mapping"}], "warnings": []}, 400)
    return as_json({"errors": [], "warnings": []})


def info(request: Request) -> Answer:
    """What is known about a repository at a revision."""
    repo = request.repo()
    commit = repo.at(request.parts.get("rev", "main"))
    return as_json(
        {
            "_id": "0", "id": repo.id, "author": repo.id.split("/")[0], "sha": commit.oid,
            "private": repo.private, "gated": False, "disabled": False, "downloads": 0,
            "likes": 0, "tags": [], "lastModified": "2026-01-01T00:00:00.000Z",
            "createdAt": "2026-01-01T00:00:00.000Z",
            "siblings": [{"rfilename": path} for path in sorted(commit.files)],
        }
    )  # fmt: skip


def _shown(path: str, entry: Entry) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": "file", "path": path, "oid": entry.oid, "size": entry.size,
    }  # fmt: skip
    if entry.lfs:
        shown["lfs"] = {"oid": entry.lfs, "size": entry.size, "pointerSize": 134}
    return shown


def _folder(path: str) -> dict[str, Any]:
    return {
        "type": "directory",
        "path": path,
        "oid": hashlib.sha1(path.encode()).hexdigest(),
        "size": 0,
    }


def _listing(commit: Commit, below: str, *, recursive: bool) -> list[dict[str, Any]]:
    prefix = f"{below}/" if below else ""
    results: dict[str, dict[str, Any]] = {}
    for path, entry in commit.files.items():
        if not path.startswith(prefix):
            continue
        inner = path.removeprefix(prefix).split("/")
        for depth in range(1, len(inner)):
            folder = prefix + "/".join(inner[:depth])
            if recursive or depth == 1:
                results[folder] = _folder(folder)
        if recursive or len(inner) == 1:
            results[path] = _shown(path, entry)
    if prefix and not results:
        raise HubRefusal(404, f"{below} does not exist on the revision", "EntryNotFound")
    return [results[path] for path in sorted(results)]


def tree(request: Request) -> Answer:
    """The files of a revision, in pages."""
    commit = request.repo().at(request.parts["rev"])
    below = request.parts.get("path", "")
    recursive = request.query.get("recursive", "").lower() in ("true", "1")
    listing = _listing(commit, below, recursive=recursive)
    start = int(request.query.get("cursor", "0"))
    end = start + request.hub.page
    headers = {"X-Repo-Commit": commit.oid}
    if end < len(listing):
        kind = request.parts["kind"]
        path = f"/api/{kind}/{request.parts['repo']}/tree/{request.parts['rev']}"
        path += f"/{below}" if below else ""
        query = f"recursive={recursive}&cursor={end}"
        headers["Link"] = f'<{request.hub.url}{path}?{query}>; rel="next"'
    return as_json(listing[start:end], **headers)


def paths_info(request: Request) -> Answer:
    """What is known about some paths; those that are missing are left out."""
    commit = request.repo().at(request.parts["rev"])
    if request.headers.get("content-type", "").startswith("application/json"):
        paths = request.json()["paths"]
    else:
        paths = parse_qs(request.body.decode())["paths"]
    results = []
    for path in paths:
        if path in commit.files:
            results.append(_shown(path, commit.files[path]))
        elif any(name.startswith(f"{path}/") for name in commit.files):
            results.append(_folder(path))
    return as_json(results)


def refs(request: Request) -> Answer:
    """Branches and tags."""
    repo = request.repo()
    kinds = (("branches", "heads", repo.branches), ("tags", "tags", repo.tags))
    results: dict[str, list[dict[str, str]]] = {"converts": []}
    for kind, folder, named in kinds:
        results[kind] = [
            {"name": name, "ref": f"refs/{folder}/{name}", "targetCommit": oid}
            for name, oid in sorted(named.items())
        ]
    return as_json(results)


def tag(request: Request) -> Answer:
    """Name a commit."""
    repo = request.repo(write=True)
    name, commit = request.json()["tag"], repo.at(request.parts["rev"])
    if name in repo.tags:
        raise HubRefusal(409, "Tag reference exists already.")
    repo.tags[name] = commit.oid
    return as_json({})


def preupload(request: Request) -> Answer:
    """How each file is to be uploaded, and what the revision holds at its place."""
    commit = request.repo(write=True).at(request.parts["rev"])
    files = []
    for asked in request.json()["files"]:
        there = commit.files.get(asked["path"])
        files.append(
            {
                "path": asked["path"],
                "uploadMode": "lfs" if is_large(asked["path"], asked["size"]) else "regular",
                "shouldIgnore": asked["path"] in request.hub.repos.ignored,
                **({"oid": there.etag} if there else {}),
            }
        )
    return as_json({"files": files, "commitOid": commit.oid})


def lfs_batch(request: Request) -> Answer:
    """Where each object is to be put; nothing is said of those that are there."""
    repo = request.repo(write=True)
    asked = request.json()
    large = any(item["size"] > request.hub.part for item in asked["objects"])
    objects = [_upload_actions(request, repo, item) for item in asked["objects"]]
    return as_json({"transfer": "multipart" if large else "basic", "objects": objects})


def _upload_actions(request: Request, repo: Repo, asked: dict[str, Any]) -> dict[str, Any]:
    sha, size, part = asked["oid"], asked["size"], request.hub.part
    upload_actions: dict[str, Any] = {"oid": sha, "size": size}
    if sha in request.hub.repos.objects:
        return upload_actions
    api = f"{request.hub.url}/{request.place}{repo.id}.git/info/lfs/objects"
    upload: dict[str, Any] = {"href": f"{request.hub.cdn}/objects/{sha}"}
    if size > part:
        numbers = range(1, (size + part - 1) // part + 1)
        upload = {
            "href": f"{api}/complete",
            "header": {
                "chunk_size": str(part),
                **{f"{n:05d}": f"{request.hub.cdn}/objects/{sha}/{n}" for n in numbers},
            },
        }
    return {**upload_actions, "actions": {"upload": upload, "verify": {"href": f"{api}/verify"}}}


def _store(request: Request, sha: str, data: bytes) -> None:
    if hashlib.sha256(data).hexdigest() != sha:
        raise HubRefusal(400, "the bytes are not those of the object")
    request.hub.repos.objects[sha] = data
    request.hub.repos.stored[sha] += 1


def put_object(request: Request) -> Answer:
    """Take an object."""
    _store(request, request.parts["sha"], request.body)
    return Answer(headers={"ETag": f'"{request.parts["sha"]}"'})


def put_part(request: Request) -> Answer:
    """Take a part of an object."""
    parts = request.hub.repos.parts.setdefault(request.parts["sha"], {})
    parts[int(request.parts["part"])] = request.body
    return Answer(headers={"ETag": f'"{hashlib.md5(request.body).hexdigest()}"'})


def lfs_complete(request: Request) -> Answer:
    """Put the parts of an object together."""
    asked = request.json()
    parts = request.hub.repos.parts.get(asked["oid"], {})
    numbers = [part["partNumber"] for part in asked["parts"]]
    if asked["oid"] not in request.hub.repos.objects:
        _store(request, asked["oid"], b"".join(parts[number] for number in numbers))
    return as_json({"success": True})


def lfs_verify(request: Request) -> Answer:
    """Say whether an object is there."""
    asked = request.json()
    data = request.hub.repos.objects.get(asked["oid"])
    if data is None or len(data) != asked["size"]:
        raise HubRefusal(404, "Object does not exist")
    return as_json({})


def commit(request: Request) -> Answer:
    """Change files, all or none."""
    repo = request.repo(write=True)
    if request.parts["rev"] != "main":
        raise HubRefusal(404, "Invalid rev id", "RevisionNotFound")
    lines = [json.loads(line) for line in request.body.splitlines() if line]
    header = lines[0]["value"]
    parent = header.get("parentCommit")
    if parent is not None and parent != repo.head.oid:
        raise HubRefusal(412, "A commit has happened since. Please refresh and try again.")
    files, changed = dict(repo.head.files), []
    for line in lines[1:]:
        changed += _change(request, files, line["key"], line["value"])
    made = repo.add(header["summary"], files, changed)
    url = f"{request.hub.url}/{request.place}{repo.id}/commit/{made.oid}"
    return as_json({"success": True, "commitOid": made.oid, "commitUrl": url, "hookOutput": ""})


def _change(
    request: Request, files: dict[str, Entry], key: str, value: dict[str, Any]
) -> list[str]:
    path = value["path"]
    if key == "file":
        data = base64.b64decode(value["content"])
        if is_large(path, len(data)):
            raise HubRefusal(400, f"{path} must be an LFS file")
        files[path] = git_entry(data)
    elif key == "lfsFile":
        if value["oid"] not in request.hub.repos.objects:
            raise HubRefusal(400, f"LFS pointer pointed to a file that does not exist: {path}")
        files[path] = lfs_entry(value["oid"], len(request.hub.repos.objects[value["oid"]]))
    elif key == "deletedFile":
        if path not in files:
            raise HubRefusal(404, "A file with this name doesn't exist", "EntryNotFound")
        del files[path]
    elif key == "deletedFolder":
        gone = [name for name in files if name.startswith(path.rstrip("/") + "/")]
        for name in gone:
            del files[name]
        return gone
    return [path]


def resolve(request: Request) -> Answer:
    """A file of a revision; of a large one, where it lies."""
    at = request.repo().at(request.parts["rev"])
    entry = at.files.get(request.parts["path"])
    if entry is None:
        answer = refused(HubRefusal(404, "Entry not found", "EntryNotFound"))
        answer.headers["X-Repo-Commit"] = at.oid
        return answer
    headers = {"X-Repo-Commit": at.oid, "Accept-Ranges": "bytes"}
    if entry.lfs:
        headers |= {
            "X-Linked-Size": str(entry.size),
            "X-Linked-ETag": f'"{entry.lfs}"',
            "Location": f"{request.hub.cdn}/objects/{entry.lfs}",
        }
        return Answer(302, b"", headers)
    assert entry.data is not None
    return _ranged(entry.data, request, {**headers, "ETag": f'"{entry.oid}"'})


def get_object(request: Request) -> Answer:
    """The bytes of an object."""
    sha = request.parts["sha"]
    data = request.hub.repos.objects.get(sha)
    if data is None:
        raise HubRefusal(404, "no such object")
    return _ranged(data, request, {"ETag": f'"{sha}"', "Accept-Ranges": "bytes"})


def _ranged(data: bytes, request: Request, headers: dict[str, str]) -> Answer:
    wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range") or "")
    if wanted is None:
        return Answer(200, data, headers)
    first, last = wanted.groups()
    start = int(first) if first else max(len(data) - int(last), 0)
    end = min(int(last) + 1 if first and last else len(data), len(data))
    if start >= len(data):
        return Answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
    headers = {**headers, "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
    return Answer(206, data[start:end], headers)
