"""Names of data sets on the Hub."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adp_schema.errors import UsageError

HUB = "https://huggingface.co/datasets"

_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_LONGEST = 96


@dataclass(frozen=True)
class RepoId:
    """The name of a data set on the Hub.

    Attributes:
        owner: a user or an organisation.
        name: the data set.
    """

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def url(self) -> str:
        """Its page on the Hub."""
        return f"{HUB}/{self}"

    @classmethod
    def parse(cls, text: str) -> RepoId:
        """Read OWNER/NAME.

        Raises:
            UsageError: it is no such name, or one that the Hub would refuse.
        """
        owner, slash, name = text.partition("/")
        advice = "write OWNER/NAME, such as alice/agent-runs"
        if not slash or "/" in name:
            raise UsageError(f"'{text}' is no name of a data set; {advice}")
        for part in (owner, name):
            if not _PART.fullmatch(part) or "--" in part or ".." in part:
                raise UsageError(
                    f"'{part}' is no name that the Hub takes: letters, digits and single '-', "
                    f"'_' or '.' between them; {advice}"
                )
        if len(text) > _LONGEST or name.endswith(".git"):
            raise UsageError(
                f"'{name}' is no name that the Hub takes: at most {_LONGEST} characters with the "
                "owner, and not ending in .git"
            )
        return cls(owner, name)
