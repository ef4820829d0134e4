"""Outputs behind URLs that fsspec writes, such as ``-o s3://bucket/store``.

What is made for a URL is made in a folder of this machine first, then its files go up, several at
a time, and the manifests last: who looks there sees either a whole store or none. A run that is
stopped goes on when it is called again, in the making as in the upload. The folder is below the one
that ``ADP_STAGING`` names, else below the cache of the user; on a cluster all nodes have to see it.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from adp.core.progress import Progress, Silent
from adp.stores.staged import RUN_FOLDER, keeping_plans
from adp_schema import location
from adp_schema.errors import OutputExistsError, StoreError, UsageError
from adp_schema.ids import digest
from adp_schema.manifest import MANIFEST, write_atomic

Given = ParamSpec("Given")
Made = TypeVar("Made")

STAGING = "ADP_STAGING"
"""Environment variable: the folder in which outputs for URLs are made."""

_THREADS = 8


def writes_to_urls(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """Let a function that writes the folder ``out`` write it to a URL.

    Args:
        function: the function. Its argument ``progress``, if it has one, is told of the upload.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run(*arguments: Given.args, **options: Given.kwargs) -> Made:
        bound = signature.bind(*arguments, **options)
        out = os.fspath(bound.arguments.get("out") or "")
        if not location.is_url(out):
            return function(*arguments, **options)
        target = _Target(out)
        target.check_free()
        bound.arguments["out"] = type(bound.arguments["out"])(target.folder)
        with keeping_plans():
            made = function(*bound.args, **bound.kwargs)
        target.upload(bound.arguments.get("progress") or Silent())
        return made

    return run


class _Target:
    """A URL that a folder goes to.

    Raises:
        UsageError: it is on the Hugging Face Hub, which has a command of its own.
        StoreError: nothing here writes such an address.
    """

    def __init__(self, url: str) -> None:
        if location.is_hub(url):
            raise UsageError(
                f"-o writes no data set to the Hub; make a store, then: adp publish {url}"
            )
        location.check_readable(url)
        import fsspec

        self.url = url
        self.system, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
        self.path = str(path).rstrip("/")
        base = os.environ.get(STAGING) or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.folder = Path(base) / "adp" / "outputs" / digest(url.encode())
        self._note = self.folder.with_suffix(".json")

    def check_free(self) -> None:
        """Refuse a place that holds something that no stopped run of this machine brought.

        Raises:
            OutputExistsError: it does.
        """
        held = self._call(self._held)
        if f"{self.path}/{MANIFEST}" in held:
            raise OutputExistsError(
                f"{self.url} holds a store already; choose another -o or remove it first"
            )
        if held and not self._note.exists():
            raise OutputExistsError(f"{self.url} is not empty and is no store; choose another -o")

    def upload(self, report: Progress) -> None:
        """Bring the folder to its place, the manifests last, and remove it here."""
        files = {
            path.relative_to(self.folder).as_posix(): path.stat().st_size
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and RUN_FOLDER not in path.relative_to(self.folder).parts
        }
        note = self._note.read_text(encoding="utf-8") if self._note.exists() else "[]"
        there = set(json.loads(note))
        report.note(f"{len(files):,} files, {sum(files.values()):,} bytes, to {self.url}")
        report.total(sum(files.values()))
        last = [name for name in files if name.rpartition("/")[2] == MANIFEST]
        for names in ([name for name in files if name not in last], sorted(last, key=len)[::-1]):
            self._put(names, there, files, report)
        self._call(lambda: self._compare(files))
        shutil.rmtree(self.folder)
        self._note.unlink(missing_ok=True)

    def _put(
        self, names: list[str], there: set[str], files: dict[str, int], report: Progress
    ) -> None:
        def put(name: str) -> str:
            if name not in there:
                address = f"{self.path}/{name}"
                self._call(lambda: self.system.put_file(str(self.folder / name), address))
            return name

        with ThreadPoolExecutor(_THREADS) as threads:
            for name in threads.map(put, names):
                there.add(name)
                write_atomic(self._note, json.dumps(sorted(there)))
                report.advance(files[name])

    def _compare(self, files: dict[str, int]) -> None:
        held = self._held()
        for name, size in files.items():
            if held.get(f"{self.path}/{name}") != size:
                raise OSError(f"{name} did not come through")

    def _held(self) -> dict[str, int]:
        try:
            facts = self.system.find(self.path, detail=True)
        except FileNotFoundError:
            return {}
        return {name: int(fact["size"]) for name, fact in facts.items()}

    def _call(self, call: Callable[[], Any]) -> Any:
        """Ask the file system; its errors become one sentence."""
        try:
            return call()
        except Exception as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise StoreError(
                f"{self.url} cannot be written ({reason}); check the address and your credentials, "
                f"then call the same again: what was made waits in {self.folder}"
            ) from error
