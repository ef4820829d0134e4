"""What M3 takes from its environment: who serves models, and where files lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OLLAMA = "http://localhost:11434/v1"
"""The OpenAI-compatible endpoint of Ollama."""


@dataclass(frozen=True)
class Provider:
    """What M3 takes from its environment.

    Attributes:
        variables: environment variables.
        hf: content of the file that ``path_to_hf_config`` names.
        policy: whether the call names a policy of its own.
        find: where a file lies that the configuration names.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    hf: Mapping[str, Any] = field(default_factory=dict)
    policy: bool = False
    find: Callable[[str], Path] = Path

    @property
    def kind(self) -> str:
        """Who serves models, as M3 reads it."""
        return self.variables.get("LLM_PROVIDER", "rits").strip().lower() or "rits"

    def server(self) -> dict[str, Any] | None:
        """Settings of the endpoint; None when no address is known."""
        url = self.variables.get("OPENAI_BASE_URL")
        if self.kind == "local":
            return {"base_url": url or OLLAMA}
        if self.kind != "rits" or not url:
            return None
        for name in ("RITS_API_KEY", "OPENAI_API_KEY"):
            if self.variables.get(name):
                headers = {"headers": {name: f"${name}"}} if name == "RITS_API_KEY" else {}
                return {"base_url": url, "api_key_env": name, **headers}
        return {"base_url": url}

    def model(self, name: Any, temperature: Any, tokens: Any) -> dict[str, Any]:
        """Spec of a model that is asked; empty when no server is known for it, or no model named.

        Args:
            name: name of the model.
            temperature: its temperature; None: it is not said.
            tokens: tokens of an answer; None: it is not said.
        """
        server = self.server()
        if server is None or not name:
            return {}
        settings = {"model": name, "temperature": temperature, "max_tokens": tokens}
        known = {key: entry for key, entry in settings.items() if entry is not None}
        return {"name": "openai", **known, **server}
