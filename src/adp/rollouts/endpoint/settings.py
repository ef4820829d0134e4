"""Settings of an endpoint: where it is, and how patient to be with it."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from pydantic import Field

from adp.rollouts.environment import Settings
from adp.rollouts.policies.settings import FREE, free
from adp_schema.errors import UsageError

OPENAI = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"


class EndpointSettings(Settings):
    """Where an endpoint is, and how patient to be with it."""

    base_url: str = free(OPENAI)
    """URL before /chat/completions."""
    api_key_env: str | None = free(_KEY)
    """Environment variable with the key. The default is sent to api.openai.com alone: name it to
    send it elsewhere."""
    headers: dict[str, str] = Field(default_factory=dict, json_schema_extra=FREE)
    """Further headers; a value $NAME is read from the environment."""
    timeout: float = free(600.0, gt=0)
    """Seconds of one try."""
    retries: int = free(5, ge=0)
    """Tries after the first one."""
    retry_seconds: float = free(1800.0, gt=0)
    """Seconds for all tries of a turn and the waits between them."""
    first_wait: float = free(1.0, ge=0)
    """Longest first wait, in seconds; it doubles."""
    longest_wait: float = free(60.0, ge=0)
    """Longest wait, in seconds, also when the server asks for more."""
    concurrency: int = free(64, ge=1)
    """Requests at a time."""

    def sent_headers(self) -> dict[str, str]:
        """The further headers with their values.

        Raises:
            UsageError: the environment does not hold what is named.
        """
        return {name: _header(value) for name, value in self.headers.items()}

    def key(self) -> str | None:
        """The secret key; None sends none.

        Raises:
            UsageError: the environment does not hold what is named.
        """
        named = "api_key_env" in self.model_fields_set
        if self.api_key_env is None:
            return None
        # A key of OpenAI must not reach another server because somebody forgot about it.
        if not named and urlsplit(self.base_url).hostname != urlsplit(OPENAI).hostname:
            return None
        try:
            return key_from(self.api_key_env)
        except UsageError as error:
            if named:
                raise
            local = "for another server than api.openai.com set base_url, as http://HOST:8000/v1"
            raise UsageError(f"{error}; {local}") from None


def _header(value: str) -> str:
    return key_from(value[1:]) if value.startswith("$") else value


def key_from(name: str) -> str:
    """The key in an environment variable.

    Raises:
        UsageError: it is not set.
    """
    key = os.environ.get(name, "").strip()
    if not key:
        raise UsageError(f"the environment variable {name} is not set; put the key into it")
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the environment variable {name} holds no key: it is not plain ASCII")
    return key
