"""The page of checks, from the registry."""

from __future__ import annotations

from adp.stores.checks.model import SEVERITIES
from adp.stores.checks.registry import CHECKS, GROUPS
from tools.markdown import NOTE, table

MEANINGS = {
    "error": "it breaks a reader, or makes a trajectory useless",
    "warning": "a model would learn something wrong from it",
    "note": "it is worth knowing; it may be right as it is",
}


def checks_page() -> str:
    """The page."""
    lines = [
        *("# Checks", "", NOTE, ""),
        f"`adp validate STORE|FILE...` runs {len(CHECKS)} checks. Each one counts its findings and",
        "the trajectories that they are in, and shows the first of them with id, path and excerpt.",
        "A finding says what stands there; whether it must be mended is for you to say.",
        "",
        *table(("severity", "meaning"), [(item, MEANINGS[item]) for item in SEVERITIES]),
        "",
        "With `--fail-on error`, the default, findings of that severity end the command with",
        "exit code 8; `--fail-on warning` and `--fail-on never` set another border. Where a check",
        "can be wrong, its text says what looks the same. Steps, calls and observations are",
        "counted as in [schema.md](schema.md): `$.steps[3].calls[0]` is the first call of step 3.",
        "",
    ]
    for title, checks in GROUPS.items():
        rows = [
            (f"`{check.id}`", check.severity, _tags(check.what), _tags(check.remedy))
            for check in checks
        ]
        heads = ("check", "severity", "what it finds", "how to mend it")
        lines += [f"## {title}", "", *table(heads, rows), ""]
    return "\n".join(lines).rstrip() + "\n"


def _tags(text: str) -> str:
    """A text in which a tag is no tag of Markdown."""
    return text.replace("<", "&lt;")
