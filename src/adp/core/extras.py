"""Optional packages: which part needs which, and one sentence where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from adp_schema.errors import MissingExtraError

EXTRAS: dict[str, tuple[str, ...]] = {
    "ray": ("ray",),
    "redact": ("phonenumbers", "stdnum"),
    "report": ("matplotlib",),
    "train": ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "matplotlib"),
}
"""Extra -> the modules that it brings and that are asked for as a whole."""


def need(extra: str) -> None:
    """Check that the packages of an extra are there, without importing one.

    Args:
        extra: a key of `EXTRAS`.

    Raises:
        MissingExtraError: one is not; the message says what to install.
    """
    for package in EXTRAS[extra]:
        if find_spec(package) is None:
            raise MissingExtraError(package, extra)
