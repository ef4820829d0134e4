"""Where coding agents keep their sessions, so that ``claude-code:`` can stand for a folder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from adp.converters.files.walk import is_data, is_pattern, matches, walk
from adp_schema.errors import InputError, UsageError, unknown_name

_NAME = re.compile(r"([a-z][a-z0-9_-]+):")


@dataclass(frozen=True)
class Agent:
    """A coding agent.

    Attributes:
        format: name of the format of its sessions.
        folders: where they are, below the home folder; may be patterns.
        variable: environment variable that names another place.
        inside: the folders inside that place.
    """

    format: str
    folders: tuple[str, ...]
    variable: str = ""
    inside: tuple[str, ...] = ()


AGENTS = {
    "amp": Agent("amp", (".local/share/amp/threads",)),
    "antigravity": Agent(
        "antigravity", (".gemini/antigravity/brain", ".gemini/antigravity-cli/brain")
    ),
    "claude-code": Agent("claude_code", (".claude/projects",), "CLAUDE_CONFIG_DIR", ("projects",)),
    "codex": Agent(
        "codex",
        (".codex/sessions", ".codex/archived_sessions"),
        "CODEX_HOME",
        ("sessions", "archived_sessions"),
    ),
    "copilot-cli": Agent("copilot_cli", (".copilot/session-state",)),
    "droid": Agent("droid", (".factory/sessions",)),
    "gemini-cli": Agent("gemini_cli", (".gemini/tmp/*/chats",)),
    "gptme": Agent("gptme", (".local/share/gptme/logs",)),
    "grok": Agent("grok_cli", (".grok/sessions",)),
    "hermes": Agent("hermes_agent", (".hermes",)),
    "kimi": Agent("kimi_code", (".kimi-code/sessions", ".kimi/sessions")),
    "kiro": Agent(
        "kiro", (".kiro/sessions", ".local/share/kiro-cli", "Library/Application Support/kiro-cli")
    ),
    "mistral-vibe": Agent("mistral_vibe", (".vibe/logs/session",), "VIBE_HOME", ("logs/session",)),
    "openclaw": Agent("pi", (".openclaw/agents/*/sessions", ".openclaw/agents/*/agent")),
    "opencode": Agent("opencode", (".local/share/opencode",)),
    "pi": Agent("pi", (".pi/agent/sessions",)),
    "qwenpaw": Agent("qwenpaw", (".qwenpaw/workspaces/*/sessions", ".copaw/workspaces/*/sessions")),
    "qwen": Agent("qwen_code", (".qwen/tmp/*/chats", ".qwen/projects/*/chats")),
}
"""The agents by name."""


@dataclass(frozen=True)
class Sessions:
    """What is in one folder of an agent: files that may hold sessions, and their size."""

    folder: Path
    files: int
    size: int


def agent_name(source: str) -> str | None:
    """The name in a source such as ``claude-code:``; None when it is a path.

    Raises:
        UsageError: it is written like one, but no agent has that name.
    """
    match = _NAME.fullmatch(source)
    if match is None or Path(source).exists():
        return None
    if match[1] not in AGENTS:
        raise UsageError(unknown_name("agent", match[1], AGENTS))
    return match[1]


def folders_of(name: str) -> list[Path]:
    """The session folders of an agent that are there."""
    agent = AGENTS[name]
    home = os.environ.get(agent.variable, "") if agent.variable else ""
    base, places = (Path(home), agent.inside) if home else (Path.home(), agent.folders)
    paths: list[Path] = []
    for place in places:
        path = base / place
        paths += matches(str(path)) if is_pattern(str(path)) else [path]
    return [path for path in paths if path.is_dir()]


def look(name: str) -> list[Sessions]:
    """Count what the session folders of an agent hold."""
    answer = []
    for folder in folders_of(name):
        files = [file for file in walk(folder).files if is_data(file.name)]
        answer.append(Sessions(folder, len(files), sum(file.stat().st_size for file in files)))
    return answer


def resolve(sources: list[str]) -> list[str]:
    """Put folders in the place of names: those of an agent that hold sessions.

    Raises:
        UsageError: no agent has that name.
        InputError: it has no folder, or all of them are empty.
    """
    out: list[str] = []
    for source in sources:
        name = agent_name(source)
        if name is None:
            out.append(source)
            continue
        folders = folders_of(name)
        filled = [str(folder) for folder in folders if _is_filled(folder)]
        if not filled:
            where = f" in {' or '.join(map(str, folders))}" if folders else ""
            raise InputError(f"no sessions of {name} were found{where}; name their folder instead")
        out += filled
    return out


def _is_filled(folder: Path) -> bool:
    """Whether a folder holds files that may hold sessions, or what cannot be looked at."""
    walked = walk(folder)
    return bool(walked.faults) or any(is_data(file.name) for file in walked.files)
