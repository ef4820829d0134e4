"""Copy the marks of the dialects into `adp.converters.text_calls.marks`.

python tools/dialect_marks.py
"""

from __future__ import annotations

import re
from pathlib import Path

from adp.converters.text_calls.registry import dialects

PAGE = Path(__file__).parents[1] / "src" / "adp" / "converters" / "text_calls" / "marks.py"


def main() -> None:
    """Write the table anew."""
    rows = [f"    {it.name!r}: {it.marks if it.automatic else ()!a},\n" for it in dialects()]
    table = "_MARKS: dict[str, tuple[str, ...]] = {\n" + "".join(rows) + "}\n"
    text = PAGE.read_text(encoding="utf-8")
    start, end = re.search(r"^_MARKS: .*?^}\n", text, re.DOTALL | re.MULTILINE).span()  # type: ignore[union-attr]
    PAGE.write_text(text[:start] + table + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
