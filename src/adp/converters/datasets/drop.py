"""Rows that become no run, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.datasets.paths import look, plain, text_at
from adp.converters.datasets.recipe import DropRule
from adp.converters.kit.source_object import SourceObject


def dropped(rules: Sequence[DropRule], source: SourceObject) -> str | None:
    """Why a row is dropped; None when it is not."""
    for rule in rules:
        raw = look(source, rule.path)
        value = plain(raw)
        if rule.missing and value in (None, "", [], {}):
            return rule.reason
        if rule.equals is not None and value == rule.equals:
            return rule.reason
        text = text_at(raw)
        if rule.regex is not None and text is not None and re.search(rule.regex, text):
            return rule.reason
    return None
