"""What rendering needs of a tokenizer, for worker processes: loaded without torch, in a moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adp_schema.manifest import write_atomic


@dataclass(frozen=True)
class LeanTokenizer:
    """The parts of a tokenizer of transformers that rendering reads, under the same names.

    Attributes:
        backend_tokenizer: the tokenizer of the tokenizers library.
        chat_template: its chat template, or several by name.
        special_tokens_map: kind of special token -> its text.
        all_special_tokens: their texts.
        added_tokens_decoder: id -> added token.
        stops: ids of tokens at which generation stops besides the tokenizer's own.
    """

    backend_tokenizer: Any
    chat_template: Any
    special_tokens_map: dict[str, Any]
    all_special_tokens: list[str]
    added_tokens_decoder: dict[int, Any]
    stops: tuple[int, ...] = ()


def save_lean(tokenizer: Any, path: Path, stops: Sequence[int] = ()) -> None:
    """Write those parts to a file.

    Args:
        tokenizer: of transformers.
        path: the file.
        stops: ids of tokens at which generation stops besides the tokenizer's own.
    """
    special = {
        kind: [str(item) for item in value] if isinstance(value, (list, tuple)) else str(value)
        for kind, value in tokenizer.special_tokens_map.items()
    }
    content = {
        "backend": tokenizer.backend_tokenizer.to_str(),
        "chat_template": tokenizer.chat_template,
        "special_tokens_map": special,
        "all_special_tokens": [str(token) for token in tokenizer.all_special_tokens],
        "stops": list(stops),
    }
    write_atomic(path, json.dumps(content))


def load_lean(path: Path) -> LeanTokenizer:
    """Read what `save_lean` wrote."""
    from tokenizers import Tokenizer

    content = json.loads(path.read_text(encoding="utf-8"))
    backend = Tokenizer.from_str(content["backend"])
    return LeanTokenizer(
        backend_tokenizer=backend,
        chat_template=content["chat_template"],
        special_tokens_map=content["special_tokens_map"],
        all_special_tokens=content["all_special_tokens"],
        added_tokens_decoder=backend.get_added_tokens_decoder(),
        stops=tuple(content["stops"]),
    )
