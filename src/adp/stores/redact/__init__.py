"""Finding and redacting secrets and personal data.

A *rule* says how a kind of secret looks (`adp.stores.redact.secrets`, `...personal`).
`adp.stores.redact.run` scans a store, or writes a new one where placeholders such as
``[redacted:github-token]`` stand for what was found. docs/redaction.md lists all kinds.
"""

from __future__ import annotations

from adp.stores.redact.findings import FindingPlace, Findings
from adp.stores.redact.options import RedactOptions
from adp.stores.redact.run import redact, scan

__all__ = ["FindingPlace", "Findings", "RedactOptions", "redact", "scan"]
