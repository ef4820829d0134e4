"""Settings of the environment ``sql``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from adp.rollouts.environment import CONTENT, Settings


class SqlSettings(Settings):
    """Settings of the environment ``sql``."""

    tables: Path = Field(json_schema_extra=CONTENT)
    """Folder of tables, or one file: Parquet, CSV, JSON, JSON lines, SQLite."""
    style: Literal["sql", "slot_filling", "selection"] = "sql"
    """Which tools there are."""
    rows: int = Field(default=50, ge=1, le=10_000)
    """Rows that are shown at most."""
    cell: int = Field(default=500, ge=1)
    """Characters of a value that are shown."""
    seconds: float = Field(default=10.0, gt=0)
    """How long a query may take."""
    memory: str = "512MB"
    """Memory that a query may use."""
