"""Writing a file so that it appears only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adp_schema.errors import OutputExistsError


@contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """A path to write a file to, which gets its name when it is whole; else it is removed.

    Args:
        out: the file that is to be.

    Raises:
        OutputExistsError: it cannot be written.
    """
    part = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(out)
    except OSError as error:
        if error.filename != str(part):
            raise
        raise OutputExistsError(f"cannot write {out}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink()
