"""Which scorers run: names with settings, as people write them, and as a score table keeps them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adp.core.code_files import data_names_no_code
from adp.eval.scorer import SCORERS, Scorer
from adp.rollouts.spec import load
from adp_schema.errors import AdpError, UsageError
from adp_schema.ids import digest

_SETTING = re.compile(r"\s*[A-Za-z_]\w*\s*=")
_SECRET = re.compile(r"(?:^|_)(?:key|secret|password|token)$", re.IGNORECASE)
REFERENCE = "$reference"
"""Key, among the settings of a row, of what the trajectories were compared with."""


@dataclass(frozen=True)
class ChosenScorer:
    """A scorer with its settings.

    Attributes:
        scorer: the scorer.
        settings: its settings as JSON text, every one of them, without secrets.
    """

    scorer: Scorer
    settings: str

    @property
    def settings_hash(self) -> str:
        """Hash of the settings: scores of different settings stand side by side."""
        return digest(self.settings.encode())

    @property
    def key(self) -> tuple[str, str]:
        """What tells it apart in a score table: its name and the hash of its settings."""
        return self.scorer.name, self.settings_hash

    def against(self, reference: str | None) -> ChosenScorer:
        """The same scorer when it compares with a reference of its own."""
        if reference is None:
            return self
        return replace(self, settings=as_text(json.loads(self.settings) | {REFERENCE: reference}))


def choose(texts: Iterable[str]) -> list[ChosenScorer]:
    """Make scorers of what people write: ``tool_f1``, ``answer:manner=squad``, a file.

    Args:
        texts: one or several scorers each, with commas between them. What looks like
            ``key=value`` belongs to the scorer before it.

    Raises:
        UsageError: a name or a setting is unknown, nothing is named, or one is named twice.
        InputError: a file cannot be read.
    """
    return choose_named([], texts)


def choose_named(
    named: Sequence[tuple[str, Mapping[str, Any]]], texts: Iterable[str] = ()
) -> list[ChosenScorer]:
    """Make scorers of names with settings, and of what people write besides; see `choose`.

    Args:
        named: a spec and further settings each.
        texts: what people write. One that is named already is not named twice.

    Raises:
        UsageError: as for `choose`.
        InputError: as for `choose`.
    """
    chosen: dict[tuple[str, str], ChosenScorer] = {}
    for spec, more in named:
        _add(chosen, spec, more)
    first = set(chosen)
    for spec in specs(",".join(texts)):
        _add(chosen, spec, {}, but=first)
    if not chosen:
        raise UsageError(f"name a scorer; known: {', '.join(SCORERS)}")
    return list(chosen.values())


def _add(
    chosen: dict[tuple[str, str], ChosenScorer],
    spec: str,
    more: Mapping[str, Any],
    but: Collection[tuple[str, str]] = (),
) -> None:
    kind, settings = load(SCORERS, spec, **more)
    try:
        scorer = kind.make(settings)
    except AdpError:
        raise
    except Exception as error:  # it may be code of the user's own
        name = type(error).__name__
        raise UsageError(f"the scorer {spec} cannot be made: {name}: {error}") from error
    chosen_scorer = ChosenScorer(scorer, as_text(settings.model_dump(mode="json")))
    if chosen_scorer.key in chosen and chosen_scorer.key not in but:
        raise UsageError(f"the scorer {spec} is named twice with the same settings")
    chosen[chosen_scorer.key] = chosen_scorer


def rebuild(name: str, settings: str) -> Scorer | None:
    """Make the scorer of a row of a score table again; None when it is not there any more."""
    try:
        given = {key: value for key, value in json.loads(settings).items() if key != REFERENCE}
        with data_names_no_code():  # the table may be anybody's
            kind, made = load(SCORERS, name, **given)
            return kind.make(made)
    except Exception:  # another version of it, or a package that is gone
        return None


def label(name: str, settings: str) -> str:
    """A scorer with those of its settings that are not the default ones, for people."""
    try:
        given = json.loads(settings)
        with data_names_no_code():
            kind = SCORERS.get(name)
        usual = json.loads(as_text(kind.settings().model_dump(mode="json")))
        more = {key: value for key, value in given.items() if usual.get(key, _NONE) != value}
    except Exception:  # it is not there any more, or has settings without a default
        return f"{name} {settings}" if settings != "{}" else name
    text = ", ".join(
        f"{key.removeprefix('$')}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in more.items()
    )
    return f"{name}: {text}" if text else name


_NONE = object()


def specs(text: str) -> list[str]:
    """Split a list of scorers: at each comma that no setting follows."""
    parts: list[str] = []
    for part in _pieces(text):
        if parts and _SETTING.match(part):
            parts[-1] += f",{part}"
        elif part.strip():
            parts.append(part.strip())
    return parts


def _pieces(text: str) -> list[str]:
    """Cut at the commas outside brackets and quotes."""
    pieces, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0 and not quote:
            pieces.append("")
        else:
            pieces[-1] += letter
    return pieces


def as_text(settings: dict[str, Any]) -> str:
    """Settings as JSON text: sorted, and without secrets."""
    shown = {
        key: "***" if isinstance(value, str) and _SECRET.search(key) else value
        for key, value in settings.items()
    }
    return json.dumps(shown, sort_keys=True, ensure_ascii=True)
