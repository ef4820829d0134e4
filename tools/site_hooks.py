"""What mkdocs needs to build the pages as they lie in the repository; see ``mkdocs.yml``.

- An entry ``FOLDER/*`` of ``nav`` stands for all pages of that folder.
- A link out of ``docs/`` leads to the repository where ``repo_url`` is set, and is plain text
  else. One to a file that does not exist is a warning, which ``mkdocs build --strict`` fails on.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)[^)\s]*\)")
log = logging.getLogger("mkdocs.hooks")


def on_config(config: Any) -> Any:
    """Put the pages of a folder where ``nav`` names the folder."""
    config.nav = _expanded(config.nav, Path(config.docs_dir))
    return config


def _expanded(entry: Any, docs: Path) -> Any:
    if isinstance(entry, dict):
        return {title: _expanded(below, docs) for title, below in entry.items()}
    if isinstance(entry, list):
        return [_expanded(item, docs) for item in entry]
    if not entry.endswith("/*"):
        return entry
    return sorted(page.relative_to(docs).as_posix() for page in docs.glob(f"{entry}.md"))


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Mend the links that lead out of ``docs/``."""

    def replacement(link: re.Match[str]) -> str:
        text, target = link.groups()
        path = posixpath.normpath(
            posixpath.join("docs", posixpath.dirname(page.file.src_uri), target)
        )
        if path.startswith("docs/"):
            return link[0]
        if not (ROOT / path).exists():
            log.warning("%s: the link to %s leads nowhere", page.file.src_uri, target)
        return f"[{text}]({config.repo_url}/blob/main/{path})" if config.repo_url else text

    return LINK.sub(replacement, markdown)
