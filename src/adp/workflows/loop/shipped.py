"""The loops that come with this package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from adp.workflows.loop.loop_file import LoopFile, read_loop
from adp_schema.errors import OutputExistsError, UsageError, unknown_name

_FILES = "adp.workflows.loop.files"


def shipped_loops() -> dict[str, Path]:
    """Name -> file of each loop that comes with this package."""
    folder = Path(str(resources.files(_FILES)))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def loop_path(text: str) -> Path:
    """The file of a loop: a path, or the name of a shipped one.

    Raises:
        UsageError: there is none of this name.
    """
    if text.endswith((".yaml", ".yml")) or Path(text).is_file():
        return Path(text)
    loops = shipped_loops()
    if text not in loops:
        raise UsageError(f"{unknown_name('loop', text, loops)}; or name a file that ends in .yaml")
    return loops[text]


def read_shipped(name: str) -> LoopFile:
    """A shipped loop by its name."""
    return read_loop(loop_path(name))


def copy_loop(name: str, out: Path) -> Path:
    """Write a shipped loop to a file, to change it.

    Args:
        name: its name.
        out: the new file.

    Raises:
        UsageError: there is none of this name.
        OutputExistsError: the file is there already, or cannot be written.
    """
    loops = shipped_loops()
    if name not in loops:
        raise UsageError(unknown_name("loop", name, loops))
    if out.exists():
        raise OutputExistsError(f"{out} is there already; choose another -o")
    try:
        out.write_text(loops[name].read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise OutputExistsError(f"cannot write {out}: {error.strerror}") from error
    return out
