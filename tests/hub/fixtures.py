"""Letting huggingface_hub, in this process or another one, talk to a local Hub."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from adp_schema import retries
from tests.hub.server import LocalHub

ME, TOKEN = "me", "hf_local_test_token"
ENVIRONMENT = {
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_SHARED_BLOBS": "1",
    "HF_TOKEN": TOKEN,
}


def environment(hub: LocalHub, home: Path) -> dict[str, str]:
    """The environment of a process that is to talk to a local Hub."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return {**kept, **ENVIRONMENT, "HF_ENDPOINT": hub.url, "HF_HOME": str(home)}


def connect(hub: LocalHub, home: Path, patch: pytest.MonkeyPatch) -> None:
    """Point huggingface_hub of this process to a local Hub, without waits between retries.

    It reads the environment when it is imported, which may have happened long ago, so its
    constants are changed too.
    """
    import huggingface_hub.hf_file_system as files
    import huggingface_hub.utils._http as http
    from huggingface_hub import constants

    for name, value in environment(hub, home).items():
        if name.startswith("HF_"):
            patch.setenv(name, value)
    for name, value in {
        "ENDPOINT": hub.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HOME": str(home),
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_STORED_TOKENS_PATH": str(home / "stored_tokens"),
        "HF_HUB_DISABLE_XET": True,
        "HF_HUB_DISABLE_TELEMETRY": True,
        "HF_HUB_OFFLINE": False,
    }.items():
        patch.setattr(constants, name, value)
    waits = SimpleNamespace(sleep=lambda seconds: None, time=__import__("time").time)
    for module in (http, retries):
        patch.setattr(module, "time", waits)
    patch.setattr("huggingface_hub.file_download.time", waits)
    bars = sys.modules["huggingface_hub.utils.tqdm"]  # a class of that name hides the module
    patch.setattr(bars, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    # Its own handler writes to the stderr of the time when it was imported.
    patch.setattr(logging.getLogger("huggingface_hub"), "handlers", [])
    files.HfFileSystem.clear_instance_cache()


def local_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **how: int) -> LocalHub:
    """A local Hub with one user, which this process talks to."""
    hub = LocalHub(**how)
    hub.repos.tokens[TOKEN] = (ME, {"team"})
    connect(hub, tmp_path / "hf_home", monkeypatch)
    return hub
