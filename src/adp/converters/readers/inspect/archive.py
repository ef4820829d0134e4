"""Members of an ``.eval`` archive of Inspect AI: what they say beside the samples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from adp.converters.json_objects import array_items
from adp.converters.kit.session import inner
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.losses import Losses

MEMBERS = ("header.json", "_journal/start.json", "reductions.json", "summaries.json",
           "_journal/summaries/*.json")  # fmt: skip
"""Members beside the samples, below the root of the archive."""
_SUMMARIES = re.compile(r"/(?:_journal/summaries/[^/]+|summaries)\.json$")


def header_of(files: Mapping[str, bytes], losses: Losses) -> SourceObject:
    """The header of a log; of a run that has not ended what its journal begins with.

    Args:
        files: members by their paths.
        losses: takes keys that occur twice.
    """
    for name in ("header.json", "start.json"):
        for path, data in files.items():
            if path.endswith(name):
                return embedded(data.decode("utf-8", "replace"), path, losses)
    return SourceObject(None, "$", losses)


def rest_of(files: Mapping[str, bytes], header: SourceObject, losses: Losses) -> dict[str, Any]:
    """What the members say about all samples.

    Args:
        files: members by their paths.
        header: see `header_of`.
        losses: takes the summaries, which say a part of each sample a second time.
    """
    rest = header.rest()
    for path, data in files.items():
        if path.endswith("/reductions.json"):
            rest["reductions"] = jsontext.raw(_json_list(data))
        elif _SUMMARIES.search(path):
            losses.add("$.summaries", "summaries repeat the samples; they are not kept")
    return rest


def is_first(sample: SourceObject, files: Mapping[str, bytes], header: SourceObject) -> bool:
    """Whether a sample is the one that the header stands with.

    Of a run that was stopped some samples are missing; the summaries say which are there.

    Args:
        sample: the sample.
        files: members by their paths.
        header: see `header_of`.
    """
    for path, data in sorted(files.items()):
        items = array_items(jsontext.raw(_json_list(data))) if _SUMMARIES.search(path) else []
        if items and jsontext.first_byte(items[0]) == BRACE:
            first = jsontext.decode_object(items[0])
            return all(_same(first, sample.values, key) for key in ("id", "epoch"))
    raw = inner(inner(header.values, "eval"), "dataset").get("sample_ids")
    ids = jsontext.decode_array(raw) if raw and raw != Raw(b"null") else []
    is_match = not ids or ids[0] == sample.values.get("id")
    return is_match and sample.integer_at("epoch") in (None, 1)


def _same(first: Mapping[str, Raw], second: Mapping[str, Raw], key: str) -> bool:
    return bytes(first.get(key, b"")) == bytes(second.get(key, b""))


def _json_list(data: bytes) -> str:
    """The list of a member; a list of its text when it is none that can be kept as it is."""
    text = data.decode("utf-8", "replace").strip()
    usable = jsontext.is_valid(text.encode("utf-8")) and not jsontext.has_mark(text)
    if text.startswith("[") and usable:
        return jsontext.one_line(text.encode("utf-8"))
    return jsontext.text_of([jsontext.mend_text(text)[0]])
