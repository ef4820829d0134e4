"""What was found: counts and places, never a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from adp.stores.redact.finder import FoundValue


@dataclass(frozen=True)
class FindingPlace:
    """One place where something was found.

    Attributes:
        kind: what it is.
        trajectory_id: trajectory that it is in, without what had to go; None for something about
            the store.
        path: where it is, such as ``$.steps[3].observations[0].text``.
        preview: its first characters, at most four and at most a quarter of it.
        length: number of its characters.
        count: how often the same was found there.
    """

    kind: str
    trajectory_id: str | None
    path: str
    preview: str
    length: int
    count: int = 1

    def text(self) -> str:
        """In one line: ``github-token  chat/b-1 $.steps[3].text  ghp_... (40 characters)``."""
        where = f"{self.trajectory_id} {self.path}" if self.trajectory_id else self.path
        return f"{self.kind}  {where}  {self.shown()}"

    def shown(self) -> str:
        """What was found: ``ghp_... (40 characters) (8 times)``."""
        often = f" ({self.count:,} times)" if self.count > 1 else ""
        return f"{self.preview}... ({self.length} characters){often}"


@dataclass
class Findings:
    """What a scan found.

    Attributes:
        by_kind: kind -> number of values.
        by_column: ``table.column`` -> number of values.
        trajectories: number of trajectories with one.
        places: the first places of each kind.
        kinds: the kinds that were looked for.
    """

    by_kind: Counter[str] = field(default_factory=Counter)
    by_column: Counter[str] = field(default_factory=Counter)
    trajectories: int = 0
    places: list[FindingPlace] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    _at: dict[FindingPlace, int] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _kept: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._index()

    def _index(self) -> None:
        self._at = {replace(place, count=1): at for at, place in enumerate(self.places)}
        self._kept = Counter(place.kind for place in self.places)

    @property
    def total(self) -> int:
        """Number of values that were found."""
        return self.by_kind.total()

    def add(self, other: Findings, limit: int) -> None:
        """Add what was found in the next part; of the places the first of each kind are kept."""
        self.by_kind.update(other.by_kind)
        self.by_column.update(other.by_column)
        self.trajectories += other.trajectories
        for place in other.places:
            self._keep(place, limit)

    def _keep(self, place: FindingPlace, limit: int) -> None:
        """Count a place that is there already, or add it unless its kind has enough."""
        key = replace(place, count=1)
        if (at := self._at.get(key)) is not None:
            self.places[at] = replace(key, count=self.places[at].count + place.count)
        elif self._kept[place.kind] < limit:
            self._kept[place.kind] += 1
            self._at[key] = len(self.places)
            self.places.append(place)

    def note(
        self, column: str, where: tuple[str | None, str], found_value: FoundValue, limit: int
    ) -> None:
        """Count a value.

        Args:
            column: ``table.column``.
            where: trajectory and path.
            found_value: the value.
            limit: how many places of its kind to keep.
        """
        self.by_kind[found_value.kind] += 1
        self.by_column[column] += 1
        self._keep(
            FindingPlace(found_value.kind, *where, found_value.preview, found_value.length), limit
        )

    def choose(self, limit: int, order: Sequence[str]) -> None:
        """Keep some places: one of each kind, then another one of each, and so on.

        A single key shows beside hundreds of addresses.

        Args:
            limit: how many to keep.
            order: kinds, the most important ones first.
        """
        seen: Counter[str] = Counter()
        ranked = []
        for place in self.places:
            seen[place.kind] += 1
            ranked.append((seen[place.kind], order.index(place.kind), place))
        ranked.sort(key=lambda item: item[:2])
        self.places = [place for *_, place in ranked[:limit]]
        self._index()

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "total": self.total,
            "trajectories": self.trajectories,
            "by_kind": dict(sorted(self.by_kind.items())),
            "by_column": dict(sorted(self.by_column.items())),
            "places": [asdict(place) for place in self.places],
            "kinds": self.kinds,
        }

    @classmethod
    def parse(cls, plain: dict[str, Any]) -> Findings:
        """The inverse of `plain`."""
        return cls(
            Counter(plain["by_kind"]),
            Counter(plain["by_column"]),
            plain["trajectories"],
            [FindingPlace(**place) for place in plain["places"]],
            plain["kinds"],
        )

    def text(self) -> str:
        """In one sentence, with the first place: for an error."""
        if not self.total:
            return "nothing was found"
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.by_kind.most_common(5))
        more = ", ..." if len(self.by_kind) > 5 else ""
        first = f"; the first: {self.places[0].text()}" if self.places else ""
        values = "value" if self.total == 1 else "values"
        return f"{self.total:,} {values} to redact ({kinds}{more}){first}"
