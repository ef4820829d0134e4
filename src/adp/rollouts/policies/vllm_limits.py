"""What vLLM takes: which adapters, and which of its versions the policy knows.

Facts are those of vLLM 0.22: ``vllm/config/lora.py`` and ``vllm/lora/peft_helper.py``.
"""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from adp_schema.errors import MissingExtraError, UsageError

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks that vLLM makes room for."""

FIRST, LAST = (0, 22), (0, 31)
"""Versions with the parts that the policy calls, some of which vLLM does not promise."""


def check_version() -> None:
    """Check that vLLM is there, in a version that the policy knows.

    Raises:
        MissingExtraError: it is not installed.
        UsageError: it is another version.
    """
    try:
        text = version("vllm")
    except PackageNotFoundError as error:
        raise MissingExtraError("vllm", "vllm") from error
    parts = text.split("+")[0].split(".")
    number = tuple(int(part) if part.isdigit() else 0 for part in parts[:2])
    if not FIRST <= number <= LAST:
        known = " to ".join(".".join(map(str, bound)) for bound in (FIRST, LAST))
        raise UsageError(
            f"vLLM {text} is installed, and this policy knows {known}, whose parts it calls; run: "
            "pip install 'adp[vllm]', or serve the model and use the policy openai"
        )


def room_for(adapter: str) -> int | None:
    """The ``max_lora_rank`` that an adapter needs; None for one that is not in a folder.

    Args:
        adapter: folder of the adapter, or its name on the Hub.

    Raises:
        UsageError: vLLM cannot serve such an adapter.
    """
    try:
        text = (Path(adapter) / "adapter_config.json").read_text(encoding="utf-8")
        plain = json.loads(text)
    except (OSError, ValueError):
        return None
    if not isinstance(plain, dict):
        return None
    wrong = _unsupported(plain)
    if wrong is not None:
        raise UsageError(
            f"vLLM serves no adapter {wrong}; merge it (adp merge-adapter {Path(adapter).name} -o "
            "MERGED) and give the model, or use the policy transformers"
        )
    patterns = plain.get("rank_pattern")
    ranks = [plain.get("r"), *(patterns.values() if isinstance(patterns, dict) else ())]
    rank = max((rank for rank in ranks if isinstance(rank, int)), default=0)
    room = next((room for room in RANKS if room >= rank), None)
    if room is None:
        raise UsageError(
            f"the adapter has rank {rank}, and vLLM has room for {RANKS[-1]}; merge it: adp "
            f"merge-adapter {Path(adapter).name} -o MERGED"
        )
    return room


def _unsupported(plain: dict[str, Any]) -> str | None:
    if plain.get("use_dora"):
        return "with DoRA"
    if plain.get("modules_to_save"):
        return "with whole modules (modules_to_save)"
    if plain.get("bias") not in (None, "none"):
        return "with biases"
    return None
