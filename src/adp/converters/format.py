"""What a format need not say."""

from __future__ import annotations

from adp.converters.files.sqlite import SqliteShape
from adp_schema.model import Trajectory


class Format:
    """Defaults of `adp_schema.protocols.Converter`: one file a record, of one way to write."""

    version = "1"
    container = "jsonl"
    recognised = ""
    versions = ""
    flavours: tuple[str, ...] = ()
    gathers_rows = False
    """Whether rows of Parquet, or documents that follow each other, are a session together."""
    stored_as = ""
    """``source_format`` of its trajectories, where it is not its name."""
    gives_way = False
    """Whether it leaves a file to another format that recognises it as surely."""
    written_anew = False
    """Whether files of the format itself get its usual layout when they are written again."""
    file_a_trajectory = False
    """Whether each trajectory is written to a file of its own, whatever file it was read from."""
    holds_text_actions = False
    """Whether models' texts in it may hold actions that it does not read; see `text_calls`."""
    database: SqliteShape | tuple[SqliteShape, ...] | None = None
    """Where the sessions lie in an SQLite database, if the format keeps them in one."""

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """None: a file stands alone."""
        return ()

    def embeds(self, branch: Trajectory) -> bool:
        """No: a branch is a record of its own."""
        return False

    def joins(self, run: Trajectory, other: Trajectory) -> bool:
        """Whether a run is written in the record of the run before it: as another attempt.

        `write` then gets it among the branches of that run.
        """
        return False
