"""Settings of the environment ``openapi``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from adp.rollouts.environment import Settings
from adp.rollouts.policies.settings import FREE, free


class OpenApiSettings(Settings):
    """Settings of the environment ``openapi``."""

    file: Path
    """OpenAPI 3.0 or 3.1, or Swagger 2.0; JSON or YAML."""
    server: str | None = None
    """Address that is asked in place of the servers of the file, with the beginning of the path."""
    hosts: tuple[str, ...] = ()
    """Hosts of the file's servers that may be asked; private addresses and networks, too."""
    only: tuple[str, ...] | None = None
    """Names of the tools on offer; without it, all."""
    allow_writes: bool = False
    """Whether operations other than GET are offered."""
    auth_env: dict[str, str | None] = Field(default_factory=dict, json_schema_extra=FREE)
    """Environment variable of each security scheme; null calls without it."""
    record: Path | None = Field(default=None, json_schema_extra=FREE)
    """Folder that answers are recorded in; what is there is told again."""
    replay: Path | None = Field(default=None, json_schema_extra=FREE)
    """Folder of recorded answers, in place of the network."""
    strict: bool = False
    """Whether an operation that is wrong or not supported is an error."""
    timeout: float = Field(default=30.0, gt=0)
    """Seconds that a call may take, with its tries and waits."""
    longest: int = Field(default=100_000, ge=1)
    """Bytes that an answer may have."""
    retries: int = free(2, ge=0)
    """Tries after the first one, when the server answers 429 or 503."""
    longest_wait: float = free(10.0, ge=0)
    """Longest wait for such a try, in seconds, also when the server asks for more."""
    longest_name: int = Field(default=128, ge=16)
    """Characters of the name of a tool; OpenAI takes 64."""

    @model_validator(mode="after")
    def _recorded_or_replayed(self) -> OpenApiSettings:
        if self.record is not None and self.replay is not None:
            raise ValueError("give either record or replay")
        return self
