"""Rows of tokens with a weight for each, for verl: ``data.custom_cls.name=MaskedRows``."""

from typing import Any

import numpy as np
import pyarrow.parquet as pq


class MaskedRows:
    """Reads Parquet files with the columns ``input_ids`` and ``loss_mask``.

    Args:
        parquet_files: a path, or several.
        tokenizer: gives the token to pad with.
        config: ``data`` of the run: pad_mode, max_length, truncation.
        processor: not used.
        max_samples: take the first rows only; -1 takes all.
    """

    def __init__(
        self,
        parquet_files: Any,
        tokenizer: Any,
        config: Any,
        processor: Any = None,
        max_samples: int = -1,
    ) -> None:
        paths = [parquet_files] if isinstance(parquet_files, str) else list(parquet_files)
        columns = ["input_ids", "loss_mask"]
        tables = [pq.read_table(path, columns=columns) for path in paths]
        self.ids = [row for table in tables for row in table["input_ids"]]
        self.masks = [row for table in tables for row in table["loss_mask"]]
        if 0 < max_samples < len(self.ids):
            self.ids, self.masks = self.ids[:max_samples], self.masks[:max_samples]
        self.pad = tokenizer.pad_token_id or 0
        self.mode = config.get("pad_mode", "no_padding")
        self.length = config.get("max_length", 1024)
        self.truncation = config.get("truncation", "error")
        if self.mode not in ("no_padding", "right"):
            raise ValueError(f"pad_mode is {self.mode!r}; MaskedRows knows no_padding and right")
        if self.truncation not in ("error", "left", "right"):
            raise ValueError(f"truncation is {self.truncation!r}; it may be error, left or right")

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Tokens, places and weights of a row.

        Raises:
            ValueError: it is too long, and truncation is error.
        """
        import torch

        ids = torch.from_numpy(np.array(self.ids[index].values, dtype=np.int64))
        mask = torch.from_numpy(np.array(self.masks[index].values, dtype=np.float32))
        over = len(ids) - self.length
        if over > 0:
            if self.truncation == "error":
                raise ValueError(
                    f"row {index} has {len(ids)} tokens, more than data.max_length={self.length}"
                )
            keep = slice(over, None) if self.truncation == "left" else slice(None, -over)
            ids, mask = ids[keep], mask[keep]
        places = torch.arange(len(ids))
        if self.mode == "no_padding":
            return {"input_ids": ids, "position_ids": places, "loss_mask": mask}
        room = (0, max(self.length - len(ids), 0))
        pad = torch.nn.functional.pad
        return {
            "input_ids": pad(ids, room, value=self.pad),
            "attention_mask": pad(torch.ones_like(ids), room),
            "position_ids": pad(places, room),
            "loss_mask": pad(mask, room),
        }
