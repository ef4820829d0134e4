"""Names of data sets on the Hub."""

from __future__ import annotations

from dataclasses import dataclass

from adp_schema.hub import check_repo_id

HUB = "https://huggingface.co/datasets"

TRACES = "-traces"
"""What the name of the data set of sessions ends with."""


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
        owner, name = check_repo_id(text).split("/")
        return cls(owner, name)
