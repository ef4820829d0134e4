"""What the system refuses to write is found in whatever a library makes of it."""

from __future__ import annotations

import errno

import pytest

from adp.cli.write_errors import explain

FULL = "No space left on device"


def nested() -> Exception:
    try:
        try:
            raise OSError(errno.EROFS, "Read-only file system")
        except OSError as first:
            raise RuntimeError("the writer failed") from first
    except RuntimeError as error:
        return error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, FULL), FULL),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "Disk quota exceeded"),
        (
            ValueError("parquet: underlying IO error: File too large (os error 27)"),
            "File too large",
        ),
        (RuntimeError(f"Error writing bytes to file. Detail: [errno 28] {FULL}"), FULL),
        (RuntimeError(f"write failed: {FULL}"), FULL),
        (nested(), "Read-only file system"),
    ],
)
@pytest.mark.parametrize("words", [["merge", "a", "-o", "OUT"], ["merge", "a", "--out=OUT"]])
def test_a_refusal_names_the_output_and_what_to_do(error, message, words):
    sentence = explain(error, words)
    assert sentence is not None
    assert sentence.startswith(f"cannot write to OUT: {message}; ")


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOENT, "No such file"), ValueError("28"), RuntimeError("(os error 2)")],
)
def test_other_errors_are_none(error):
    assert explain(error, ["merge", "-o", "OUT"]) is None


def test_without_an_output_the_file_is_named():
    assert "cannot write to x.html: " in str(explain(OSError(28, FULL, "x.html"), ["report"]))
    assert str(explain(OSError(28, FULL), ["-o"])).startswith("cannot write: ")
