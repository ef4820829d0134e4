"""What to look for, and how."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adp.core.extras import need
from adp.stores.redact.context import CONTEXT
from adp.stores.redact.current_user import CurrentUser, own_rules, surroundings
from adp.stores.redact.encoded import encoded_rules, find_encoded
from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.personal import CHECKED, PERSONAL
from adp.stores.redact.platforms import PLATFORMS
from adp.stores.redact.rules import ENCODED_SECRET, SET_VERSION, Rule
from adp.stores.redact.secrets import CLOUDS, CODE_HOSTS, MODELS
from adp.stores.redact.services import ANY, MESSAGES, SHOPS, WATCH, WORK
from adp_schema.errors import UsageError, unknown_name
from adp_schema.ids import digest


def _find_encoded(text: str) -> Iterator[tuple[int, int]]:
    return find_encoded(text, _holds_secret)


def _holds_secret(text: str) -> bool:
    return _secret_finder().text(text) is not None


@functools.cache
def _secret_finder() -> ValueFinder:
    """Finds all secrets but those that are encoded themselves."""
    return ValueFinder([r for r in RULES if r.group == "secrets" and r.kind != ENCODED_SECRET])


RULES: tuple[Rule, ...] = (
    *CLOUDS, *CODE_HOSTS, *MODELS, *MESSAGES, *SHOPS, *WATCH, *WORK, *PLATFORMS, *ANY,
    *encoded_rules(_find_encoded), *CONTEXT, *PERSONAL,
)  # fmt: skip
"""All built-in rules."""

_EVERY_RULE = (*RULES, *own_rules((("/home/me",), ("me",))))
"""The built-in rules, and one of each kind that depends on the user."""

GROUPS = ("secrets", "personal", "own", "given")

DEFAULT_KINDS = ("secrets", "own", "email", "phone", "credit-card", "iban", "us-ssn", "home-folder")
"""Measured on real runs; docs/redaction.md says why `ip-address` is not among them."""

PLACES = 20
"""Places that findings name unless the caller says otherwise."""


@dataclass(frozen=True)
class RedactOptions:
    """What to look for, and how.

    Attributes:
        kinds: kinds and groups to look for; a minus sign before a name leaves it out. Nothing,
            or only names with a minus, begins with `DEFAULT_KINDS`.
        given: rules of the caller; see `adp.stores.redact.custom_rules`.
        user: home folders and user names of the one who publishes; None takes those of this
            process.
        places: how many places the findings name.
        workers: number of processes; None takes one a core. Nothing else depends on it.
    """

    kinds: tuple[str, ...] = ()
    given: tuple[Rule, ...] = ()
    user: CurrentUser | None = None
    places: int = PLACES
    workers: int | None = None

    def rules(self) -> tuple[Rule, ...]:
        """The rules that are looked for.

        Raises:
            UsageError: there is no kind of a name, or nothing is left.
            MissingExtraError: the packages are missing that check personal data.
        """
        user_rules = own_rules(self.user if self.user is not None else surroundings())
        every = (*RULES, *user_rules, *self.given)
        wanted = chosen_kinds(self.kinds, [rule.kind for rule in self.given])
        if wanted & CHECKED:
            need("redact")
        return tuple(rule for rule in every if rule.kind in wanted)

    def kinds_wanted(self) -> list[str]:
        """The kinds that are looked for, sorted."""
        return sorted(chosen_kinds(self.kinds, [rule.kind for rule in self.given]))

    def fingerprint(self) -> str:
        """A hash of the rules, the literals of the own ones included."""
        parts = [[rule.kind, rule.pattern] for rule in self.rules()]
        return digest(json.dumps([SET_VERSION, parts]).encode("utf-8", "surrogatepass"))


def kinds_by_group(given: Sequence[str] = ()) -> dict[str, list[str]]:
    """All kinds: group -> kinds."""
    kinds: dict[str, list[str]] = {group: [] for group in GROUPS}
    for rule in _EVERY_RULE:
        if rule.kind not in kinds[rule.group]:
            kinds[rule.group].append(rule.kind)
    kinds["given"] = list(given)
    return kinds


def chosen_kinds(names: Sequence[str], given: Sequence[str] = ()) -> set[str]:
    """The kinds that some names of kinds and groups choose.

    Args:
        names: kinds and groups; a minus sign leaves one out. Later names count more.
        given: kinds of the caller's own rules; they are always looked for unless left out.

    Raises:
        UsageError: there is no kind of a name, or none is left.
    """
    groups = kinds_by_group(given)
    every = {kind for kinds in groups.values() for kind in kinds}

    def meaning(name: str) -> set[str]:
        if name in ("all", *GROUPS):
            return every if name == "all" else set(groups[name])
        if name not in every:
            raise UsageError(unknown_name("kind", name, [*every, *GROUPS, "all"]))
        return {name}

    begin = () if any(not name.startswith("-") for name in names) else DEFAULT_KINDS
    chosen = set(given)
    for name in (*begin, *names):
        if name.startswith("-"):
            chosen -= meaning(name[1:])
        else:
            chosen |= meaning(name)
    if not chosen:
        raise UsageError("no kind is left to look for; see: adp redact --list")
    return chosen


def all_kinds() -> list[tuple[str, str, str, bool]]:
    """All kinds of the built-in rules: kind, group, what it is, whether it is looked for."""
    wanted = chosen_kinds(())
    words: dict[str, list[str]] = {}
    groups: dict[str, str] = {}
    for rule in _EVERY_RULE:
        words.setdefault(rule.kind, []).append(rule.what)
        groups[rule.kind] = rule.group
    return [
        (kind, groups[kind], "; ".join(dict.fromkeys(word)), kind in wanted)
        for kind, word in words.items()
    ]
