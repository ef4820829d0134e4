"""Keeping the libraries' own bars and remarks off the screen."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """What transformers, TRL and PEFT tell each other is not the user's concern."""
    import torch

    if not torch.cuda.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            # Names that are going to change.
            warnings.filterwarnings(
                "ignore", category=FutureWarning, module=r"(transformers|trl|peft)"
            )
            # PEFT looks on the Hub for the base of an adapter, to see whether its words changed.
            warnings.filterwarnings("ignore", "Unable to fetch remote file", UserWarning)
            warnings.filterwarnings("ignore", "Could not find a config file", UserWarning)
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            with warnings.catch_warnings():
                # Of the Hub's own bars, where the user's environment switches them off.
                warnings.filterwarnings("ignore", "Cannot enable progress bars", UserWarning)
                logging.enable_progress_bar()
