"""``collect.json`` in a store: what its episodes were made with, so that no others are added.

It holds no absolute path, no user name and no secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel

from adp.rollouts.collecting.setting_differences import check_same
from adp.rollouts.endpoint.secret_names import is_secret
from adp.rollouts.environment import CONTENT, POLICY
from adp.rollouts.policy import POLICIES
from adp.rollouts.spec import load
from adp.version import __version__
from adp_schema.errors import OutputExistsError, StoreError
from adp_schema.ids import digest, digest_file
from adp_schema.journal import locked
from adp_schema.manifest import MANIFEST, write_atomic

RUN_FILE = "collect.json"

_LEFT_OUT = "(left out)"

_FREE = frozenset(
    {
        *("base_url", "api_key_env", "headers", "proxy", "timeout", "retries", "retry_seconds"),
        *("first_wait", "longest_wait", "concurrency", "stream", "device", "batch_size"),
        *("prefix_cache_mb", "wait_ms"),
    }
)
"""Settings that say where a model is reached and how patiently, not what it answers."""


def begun_with(root: Path) -> dict[str, Any] | None:
    """The settings that a store was begun with; None when it has no run file.

    Raises:
        StoreError: the file is damaged.
    """
    content = _content(root)
    return None if content is None else content["settings"]


def most_asked(root: Path) -> int:
    """Attempts at each task that calls for a store asked for, at most; 0 when that is unknown.

    Raises:
        StoreError: the file is damaged.
    """
    number = (_content(root) or {}).get("n")
    return number if isinstance(number, int) else 0


def _content(root: Path) -> dict[str, Any] | None:
    path = root / RUN_FILE
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        settings = value["settings"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged: {error}; restore it from a copy") from error
    if not isinstance(settings, dict):
        raise StoreError(f"{path} is damaged: its settings are no object; restore it from a copy")
    return dict(value)


def settle(
    root: Path,
    settings: Mapping[str, Any],
    n: int,
    *,
    empty: Callable[[], bool],
    alone: Callable[[], bool],
) -> None:
    """Note what a run makes its episodes with; or check that it is what the store was begun with.

    A store without any episode, such as one of a call that failed at once, is taken over.

    Args:
        root: folder of the growing store.
        settings: what must not change; plain JSON.
        n: attempts at each task that this call asks for; the most of all calls are noted.
        empty: whether the store holds nothing yet.
        alone: whether no other process works on it.

    Raises:
        OutputExistsError: the store was begun with other settings, or by something else.
    """
    with locked(root, "collect"):
        before, free = _content(root), alone() and empty()
        if before is not None and not free:
            check_same(root, before["settings"], settings)
            if n > most_asked(root):
                _write(root, {**before, "n": n})
            return
        if before is None and not empty():
            raise OutputExistsError(
                f"{root} holds trajectories that adp collect did not make; choose another -o"
            )
        began = datetime.now(UTC).isoformat(timespec="seconds")
        _write(root, {"adp": __version__, "began": began, "n": n, "settings": settings})


def _write(root: Path, content: Mapping[str, Any]) -> None:
    write_atomic(root / RUN_FILE, json.dumps(content, indent=2, ensure_ascii=True) + "\n")


def kind_facts(name: str, settings: BaseModel) -> dict[str, Any]:
    """A named environment or policy with its settings, without secrets.

    A setting that is a file, and a file with code of the user's, is noted by its name and the hash
    of its bytes; so is a folder whose field has ``json_schema_extra=CONTENT``, such as one of
    documents. The address of a server, and a setting whose field has
    ``json_schema_extra={"resume": "free"}``, are left out: they may differ when a run is gone on
    with. A policy that is named by a setting with ``json_schema_extra=POLICY`` is noted like this.
    """
    values = {}
    for key, field in type(settings).model_fields.items():
        extra = field.json_schema_extra
        if key in _FREE or (isinstance(extra, Mapping) and extra.get("resume") == "free"):
            continue
        value = getattr(settings, key)
        if extra == POLICY and isinstance(value, str):
            policy, chosen = load(POLICIES, value)
            values[key] = kind_facts(policy.name, chosen)
            continue
        if extra == CONTENT and isinstance(value, Path) and value.is_dir():
            values[key] = {"folder": value.resolve().name, "hash": digest_folder(value)}
            continue
        values[key] = bare(value, key)
    file = getattr(settings, "made_in", None)
    return {"name": name, "settings": values, **({"code": _file(file)} if file else {})}


def bare(value: Any, key: str = "") -> Any:
    """A value as JSON, without secrets and absolute paths."""
    if is_secret(key, value):
        return _LEFT_OUT
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(name): bare(result, str(name)) for name, result in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [bare(item, key) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Path):
        return _file(value)
    text = str(value)
    if type(value).__name__.startswith("Secret"):
        return _LEFT_OUT
    return _place(text)


def _file(path: Path) -> Any:
    if path.is_file():
        return {"file": path.name, "hash": digest_file(str(path))}
    return _place(str(path))


def digest_folder(folder: Path) -> str:
    """Hash of the names and bytes of all files of a folder, and of folders in it.

    Hidden files are left out. Of a finished store it is the hash of its manifest, which holds the
    hashes of the other files. A file that cannot be read counts by its name.
    """
    manifest = folder / MANIFEST
    if manifest.is_file():
        return digest_file(str(manifest))
    results = []
    for file in folder.rglob("*"):
        name = file.relative_to(folder)
        if file.is_file() and not any(part.startswith(".") for part in name.parts):
            results.append([name.as_posix(), _readable(file)])
    return digest(json.dumps(sorted(results)).encode())


def _readable(file: Path) -> str:
    try:
        return digest_file(str(file))
    except OSError:
        return ""


def _place(text: str) -> str:
    """A text without a user in an address, and without the folders of a path."""
    if "://" in text and "@" in text:
        parts = urlsplit(text)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    if text.startswith(("/", "~", "..")) or re.match(r"[A-Za-z]:[\\/]", text):
        name = PurePath(text.replace("\\", "/")).name
        return f"{name} ({digest(text.encode('utf-8', 'surrogatepass'))[:8]})"
    return text
