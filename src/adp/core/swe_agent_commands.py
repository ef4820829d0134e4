"""Commands of SWE-agent's own editor and search: what texts that call them are read and written by.

Source: the command files of SWE-agent 0.x. ``edit`` stands over several lines, so each side has its
own grammar for it.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "open": (1, ("path", "line_number")),
    "goto": (1, ("line_number",)),
    "scroll_down": (0, ()),
    "scroll_up": (0, ()),
    "create": (1, ("filename",)),
    "search_dir": (1, ("search_term", "dir")),
    "search_file": (1, ("search_term", "file")),
    "find_file": (1, ("file_name", "dir")),
    "submit": (0, ()),
}
"""Command -> how many arguments it needs, and their names in order."""

NUMBERS = ("line_number", "start_line", "end_line")
"""Arguments that are numbers of lines."""
