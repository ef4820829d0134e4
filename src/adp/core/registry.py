"""Named things that are loaded when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from adp.core.code_files import attribute_of, load_code, unknown_item
from adp_schema.errors import AdpError, UsageError

Item = TypeVar("Item")


class Registry(Generic[Item]):
    """A literal table ``name -> "module:ATTRIBUTE"`` plus one entry-point group.

    Args:
        kind: what the names name, for messages.
        group: entry-point group for packages that add to it.
        builtin: the table.
        has: attributes that every such thing has, so that other objects are refused.
        made_by: ``module:function`` of what makes such a thing of an object of the user's:
            ``function(value, name, file)``.

    ``FILE.py:NAME`` and ``package.module:NAME`` are names, too. A name that is read in data must be
    looked up inside `adp.core.code_files.data_names_no_code`.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        builtin: Mapping[str, str],
        *,
        has: Sequence[str] = (),
        made_by: str | None = None,
    ) -> None:
        self.kind = kind
        self.group = group
        self._builtin = builtin
        self._has = tuple(has)
        self._made_by = made_by
        self._targets: dict[str, str] | None = None

    @property
    def builtin(self) -> frozenset[str]:
        """Names of those that come with this package."""
        return frozenset(self._builtin)

    def _table(self) -> dict[str, str]:
        if self._targets is None:
            targets = dict(self._builtin)
            for entry in entry_points(group=self.group):
                if targets.get(entry.name, entry.value) != entry.value:
                    raise UsageError(
                        f"two packages define the {self.kind} '{entry.name}' "
                        f"({targets[entry.name]} and {entry.value}); uninstall one of them"
                    )
                targets[entry.name] = entry.value
            self._targets = targets
        return self._targets

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._table()))

    def __contains__(self, name: object) -> bool:
        return name in self._table()

    def get(self, name: str) -> Item:
        """Load one by name.

        Raises:
            UsageError: the name is unknown, two packages define it, or it cannot be loaded.
            InputError: the file that it names is not there.
        """
        if ":" in name:
            result, file = load_code(name)
            return self._made(result, name.rpartition(":")[2], file)
        target = self.target(name)
        if name in self._builtin:
            module, _, attribute = target.partition(":")
            item: Item = getattr(importlib.import_module(module), attribute)
            return item
        try:
            return self._made(attribute_of(target), name)
        except AdpError as error:
            raise UsageError(
                f"the {self.kind} '{name}' of an installed package cannot be used: {error}; mend "
                f"its entry point in the group {self.group}, or uninstall it"
            ) from error

    def _made(self, value: Any, name: str, file: Any = None) -> Item:
        if self._made_by is not None:
            value = attribute_of(self._made_by)(value, name, file)
        if lacking := [part for part in self._has if not hasattr(value, part)]:
            raise UsageError(
                f"'{name}' ({type(value).__name__}) is no {self.kind}: it has no "
                f"{' and no '.join(lacking)}; docs/plugins.md says what one is"
            )
        item: Item = value
        return item

    def target(self, name: str) -> str:
        """Where one is: ``module:ATTRIBUTE``.

        Raises:
            UsageError: the name is unknown, or two packages define it.
        """
        targets = self._table()
        if name not in targets:
            raise UsageError(unknown_item(self.kind, name, targets))
        return targets[name]

    def all(self) -> list[Item]:
        """Load all, sorted by name."""
        return [self.get(name) for name in self]
