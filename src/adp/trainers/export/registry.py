"""The exporters by name. Built-in ones stand in the table; others come from entry points."""

from __future__ import annotations

from adp.core.registry import Registry
from adp.trainers.export.exporter import Exporter

BUILTIN: dict[str, str] = {}

exporters: Registry[Exporter] = Registry("exporter", "adp.exporters", BUILTIN)
"""All exporters, loaded when they are asked for."""
