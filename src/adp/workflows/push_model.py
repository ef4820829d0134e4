"""Bringing what a training made to a model repository on the Hugging Face Hub.

    pushed = push_model("out", "alice/agent-7b")

It goes up with its model card. A repository is private unless the user says otherwise. What is
there already is not sent again, so a call that was stopped goes on when it is made again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any

from adp.core.progress import Progress, Silent
from adp.trainers.base_model import base_model
from adp.workflows.publish.check import check_owner, check_token
from adp_schema import hub
from adp_schema.errors import InputError, UsageError
from adp_schema.hub import HubPath
from adp_schema.retries import retried

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, HfApi

CARD = "README.md"

PARTS = ("adapter", "model")
"""Folders of a run that are pushed: the first that is there."""

_PLACES = ("_name_or_path", "name_or_path", "base_model_name_or_path")
"""Keys of JSON files that may hold a path of this machine."""

_LEFT_OUT = ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth")
"""Pickles of a checkpoint: they run code when they are read."""


@dataclass(frozen=True)
class PushedModel:
    """A model that is on the Hub.

    Attributes:
        repo_id: ``OWNER/NAME``.
        url: its page.
        commit: the commit that holds it.
        private: whether only its owner sees it.
        files: files of the folder.
        bytes: their bytes.
    """

    repo_id: str
    url: str
    commit: str
    private: bool
    files: int
    bytes: int


def check_push(repo_id: str, *, public: bool = False) -> None:
    """Ask the Hub whether a model may be pushed, before hours of training.

    Args:
        repo_id: ``OWNER/NAME``.
        public: whether everybody is to see it.

    Raises:
        UsageError: the name is not valid, or the repository is not as private as is asked for.
        HubError: there is no token, it may not write there, or the Hub cannot be reached.
    """
    place = HubPath(hub.check_repo_id(repo_id))
    check_token()
    with _explained(place):
        api = hub.client()
        check_owner(api, repo_id)
        _there(api, repo_id, public)


def push_model(
    folder: str | Path,
    repo_id: str,
    *,
    public: bool = False,
    message: str | None = None,
    progress: Progress | None = None,
) -> PushedModel:
    """Push a model or an adapter, with its card.

    Args:
        folder: a run of ``adp train``, or the folder of its adapter or model.
        repo_id: ``OWNER/NAME``.
        public: let everybody see it; without it the repository is private.
        message: title of the commit.
        progress: told what is done.

    Raises:
        UsageError: the name is not valid, or a public repository is there and ``public`` was not
            asked.
        InputError: the folder holds no model with a card.
        HubError: the Hub refuses, or cannot be reached.
    """
    place = HubPath(hub.check_repo_id(repo_id))
    root = model_folder(Path(folder))
    report = progress or Silent()
    check_token()
    additions, size = _additions(root)
    report.status(f"sending {len(additions):,} files")
    with hub.quiet(report.note), _explained(place):
        api = hub.client()
        if not _there(api, repo_id, public):
            retried(
                lambda: api.create_repo(
                    repo_id, repo_type="model", private=not public, exist_ok=True
                )
            )
        commit = retried(lambda: _commit(api, root, repo_id, message or "Push with adp"))
    url = f"{api.endpoint}/{repo_id}"
    return PushedModel(repo_id, url, commit, not public, len(additions), size)


def model_folder(folder: Path) -> Path:
    """Where the model or the adapter lies that is to be pushed.

    Raises:
        InputError: there is none, or it has no card.
    """
    place = next((folder / part for part in PARTS if (folder / part).is_dir()), folder)
    weights = any(place.glob("*.safetensors"))
    if not weights:
        raise InputError(
            f"{folder} holds no model: give a finished run of adp train, or its folder"
        )
    if not (place / CARD).is_file():
        raise InputError(f"{place} has no {CARD}; only what says what it was made from is pushed")
    return place


def _commit(api: HfApi, root: Path, repo_id: str, message: str) -> str:
    """Send what the Hub does not have, and commit; return the commit.

    The files are described anew for each try: huggingface_hub notes in them what the Hub has, and a
    commit whose answer was lost would be made twice.
    """
    additions, _ = _additions(root)
    api.preupload_lfs_files(repo_id, additions, repo_type="model", free_memory=False)
    commit = api.create_commit(repo_id, additions, commit_message=message, repo_type="model")
    return str(commit.oid)


def _there(api: HfApi, repo_id: str, public: bool) -> bool:
    """Whether the repository is there, as private as it is to be."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        result = retried(lambda: api.repo_info(repo_id, repo_type="model"))
    except RepositoryNotFoundError:
        return False
    if not result.private and not public:
        raise UsageError(
            f"{repo_id} is public already; push with --public, or make it private in its settings"
        )
    return True


def _explained(place: HubPath) -> Any:
    return hub.explained(place, writing=True)


def _additions(root: Path) -> tuple[list[CommitOperationAdd], int]:
    """The files of a folder, without paths of this machine in them."""
    from huggingface_hub import CommitOperationAdd

    additions, size = [], 0
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        hidden = any(part.startswith(".") for part in name.parts)
        if not path.is_file() or hidden or path.name in _LEFT_OUT:
            continue
        data = _bare_json(path) if path.suffix == ".json" else None
        size += path.stat().st_size if data is None else len(data)
        content = str(path) if data is None else data
        additions.append(CommitOperationAdd(PurePosixPath(name).as_posix(), content))
    return additions, size


def _bare_json(path: Path) -> bytes | None:
    """A file of JSON without paths of this machine; None when it has none."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    if not isinstance(plain, dict):
        return None
    changed = False
    for key in _PLACES:
        value = plain.get(key)
        if isinstance(value, str) and (PurePath(value).is_absolute() or Path(value).exists()):
            plain[key] = base_model(value).name
            changed = True
    return (json.dumps(plain, indent=2, ensure_ascii=False) + "\n").encode() if changed else None
