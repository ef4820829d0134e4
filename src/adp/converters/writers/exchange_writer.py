"""What stands around a request to a model and its reply, when a trajectory is written as both."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.reading import BRACE
from adp.converters.scalars import is_null
from adp.converters.unwritten_columns import REASON
from adp.converters.writers.api_writer import ApiWriter
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.extra_column import unpack

_WRAPPERS = ("request", "body", "params")
"""Keys of ``extra`` under which readers keep what is left of a request."""


class ExchangeWriter(ApiWriter):
    """Writes a trajectory as a request with its last reply. A format subclasses it."""

    def wrapper(self) -> dict[str, Any]:
        """What stands around a request and its reply: ids and times of the run."""
        self.head("source_id", "session_id", "agent_model", "tools", "started_at", "started_text",
                  "ended_at", "ended_text")  # fmt: skip
        run = self.run
        record = {
            "id": run.source_id,
            "session_id": run.session_id,
            "started_at": self.time(run, "$", "started_at", "started_text"),
            "ended_at": self.time(run, "$", "ended_at", "ended_text"),
        }
        return {key: string(value) for key, value in record.items() if value is not None}

    def parameters(self, names: frozenset[str]) -> dict[str, Raw]:
        """Parameters of the request, if the run was read from one; all else is reported.

        Args:
            names: those that the API has.
        """
        extra = dict(unpack(self.run.extra).fields)
        out: dict[str, Raw] = {}
        for key in _WRAPPERS if self.native else ():
            if jsontext.first_byte(extra.get(key, b"")) != BRACE:
                continue
            for name, value in jsontext.decode_exact(extra.pop(key)).items():
                if name in names and not is_null(value):
                    out[name] = value
                elif name != "model":  # a column has it
                    self.losses.add(f"$.extra.{key}.{name}", REASON)
        return out | self.allowed(extra, "$", *names)
