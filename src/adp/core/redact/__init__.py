"""Finding and redacting secrets and personal data.

A *rule* says how a kind of secret looks (`adp.core.redact.secrets`, `adp.core.redact.personal`).
`adp.core.redact.run` scans a store, or writes a new one where placeholders such as
``[redacted:github-token]`` stand for what was found. docs/redaction.md lists all kinds.
"""

from __future__ import annotations

from adp.core.redact.findings import Findings, Place
from adp.core.redact.options import RedactOptions
from adp.core.redact.run import redact, scan

__all__ = ["Findings", "Place", "RedactOptions", "redact", "scan"]
