"""How a file is laid out: compressed or not, and how its records follow each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from adp.converters import json_layout
from adp.converters.files import sqlite
from adp.converters.files.json_values import JsonScanner, is_closed
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.otlp_protobuf import delimiter
from adp.converters.files.streams import InputPlace, InputStream
from adp.converters.files.walk import COMPRESSIONS
from adp_schema import jsontext

_HEAD = 1 << 16
_LINES_LOOK = 16 << 20
_WHOLE = 64 << 20
_BOM = b"\xef\xbb\xbf"
_MAGIC = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
_LFS = "it is a Git LFS pointer, not the data; get the data with: git lfs pull"
_UNREAD = {
    sqlite.MAGIC: (
        "an SQLite database in a compressed file or an archive is not read; unpack it first"
    ),
    b"PK\x03\x04": "it is a zip archive inside another file; unpack it first",
    b"BZh": "it is compressed with bzip2, which is not read; decompress it first",
    b"\xfd7zXZ\x00": "it is compressed with xz, which is not read; decompress it first",
    b"7z\xbc\xaf": "it is a 7z archive, which is not read; unpack it first",
    b"version https://git-lfs.github.com/spec/": _LFS,
    b"version https://hawser.github.com/spec/": _LFS,
    b"/annex/objects/": "it is a git-annex pointer, not the data; get the data with: git annex get",
    b"\xff\xfe": "it is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "it is UTF-16 text; save it as UTF-8",
}


def detect(
    place: InputPlace, name: str, limits: ConvertLimits
) -> tuple[InputPlace, str | None, str]:
    """Look at the beginning of a file.

    Args:
        place: where it lies; whether it is compressed is found out here.
        name: its name; only JSON Lines are recognised by it.
        limits: limits of the conversion.

    Returns:
        The place, with the compression; the framing; and why there is none when it is None.

    Raises:
        OSError: the file cannot be read.
    """
    if not place.size:
        return place, None, "the file is empty"  # or one of the kernel, which may have no end
    head, fault = _head(place, limits)
    compression = compression_of_head(head)
    if compression and not fault:
        place = replace(place, compression=compression)
        head, fault = _head(place, limits)
        if compression_of_head(head):
            return place, None, "it is compressed twice; decompress it first"
    if not head.strip():
        return place, None, fault or "the file is empty"
    if head.startswith(b"PAR1"):
        if place.plain:
            return place, "parquet", ""
        return place, None, "Parquet in a compressed file or an archive is not read; unpack it"
    if head.startswith(sqlite.MAGIC) and place.plain:
        return place, "sqlite", ""
    if why := _unread(head):
        return place, None, why
    framing = _framing(place, _is_lines(name), head, limits)
    if framing is None and delimiter(head) is not None:
        framing = "protobuf"
    return place, framing, "" if framing else "it is not JSON, JSON Lines or Parquet"


def _unread(head: bytes) -> str:
    """What a file is that has no records; empty when it may have some."""
    why = next((why for magic, why in _UNREAD.items() if head.startswith(magic)), "")
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return "it is a web page, not the data; download the file itself"
    if head[257:262] == b"ustar":
        return "it is a tar archive inside another file; unpack it first"
    return why


def compression_of_head(head: bytes) -> str:
    """The compression of a file by its first bytes: ``gz``, ``zst`` or nothing."""
    if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:  # a frame that Zstandard skips
        return "zst"
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def _is_lines(name: str) -> bool:
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in (".jsonl", ".ndjson")


def _head(place: InputPlace, limits: ConvertLimits) -> tuple[bytes, str]:
    with InputStream(place, limits) as source:
        head = source.file.read(_HEAD)
        return head, source.fault


def _framing(
    place: InputPlace, named_lines: bool, head: bytes, limits: ConvertLimits
) -> str | None:
    text = head.removeprefix(_BOM).lstrip()
    if text[:1] not in (b"{", b"["):
        result = any(_is_record(line) for line in text.splitlines()[:20])
        return "jsonl" if named_lines or result else None
    first, _, rest = text.partition(b"\n")
    if is_closed(first) and named_lines:
        return "documents" if _several(first) else "jsonl"
    if named_lines:
        return _not_lines(place, limits) or "jsonl"
    if _is_record(rest.partition(b"\n")[0]) and not is_closed(first):
        return "jsonl"  # the first line is damaged, not the first of many that make one value
    return _by_first_value(place, text[:1] == b"[", limits)


def _is_record(line: bytes) -> bool:
    return line.startswith(b"{") and jsontext.is_valid(line)


def _several(line: bytes) -> bool:
    """Whether a line is no JSON value but several."""
    return not jsontext.is_valid(line) and b"}{" in line.replace(b" ", b"")


def _not_lines(place: InputPlace, limits: ConvertLimits) -> str | None:
    """The framing of a file that is called JSON Lines but begins with a value of many lines."""
    with InputStream(place, limits) as source:
        look = min(_LINES_LOOK, limits.record_bytes)
        scanner = JsonScanner(source.file, look)
        array = scanner.next_byte() == b"["
        value = scanner.value(stop=look)
        if not (value.whole and b"\n" in value.data and jsontext.is_valid(value.data)):
            return None
        return "json_array" if array else "json" if scanner.next_byte() is None else "documents"


def _by_first_value(place: InputPlace, array: bool, limits: ConvertLimits) -> str:
    """Decide by what follows the first value, if anything does."""
    if not array and _is_one_value(place, limits):
        return "json"
    with InputStream(place, limits) as source:
        scanner = JsonScanner(source.file, _HEAD)
        scanner.next_byte()
        value = scanner.value(stop=_HEAD if array else limits.record_bytes)
        if not value.whole:
            more = value.size > limits.record_bytes and not array
            return "documents" if more else "json_array" if array else "json"
        if scanner.next_byte() is None:
            return "json_array" if array else "json"
        if not value.multiline and b"\n" in scanner.gap:
            return "jsonl"
        return "json_array" if array else "documents"


def _is_one_value(place: InputPlace, limits: ConvertLimits) -> bool:
    """Whether a file of moderate size is one JSON value; a quicker way to know it than to scan."""
    most = min(_WHOLE, limits.record_bytes)
    with InputStream(place, limits) as source:
        data = source.file.read(most + 1)
        return len(data) <= most and not source.fault and jsontext.is_valid(data.removeprefix(_BOM))


def layout(
    place: InputPlace, kind: str, first: bytes | None, limits: ConvertLimits
) -> dict[str, Any]:
    """The style of a file, from its first record and its ends."""
    if kind == "parquet":
        from adp.converters.parquet_rows import schema_text

        return {"layout": "compact", "schema": schema_text(place.path)}
    results: dict[str, Any] = {"layout": "spaced"}
    if first is not None:
        results = json_layout.detect(first, kind)
    with InputStream(place, limits) as source:
        results["bom"] = source.file.read(3) == _BOM
        if place.plain and place.size:
            source.file.seek(-1, 2)
            results["final_newline"] = source.file.read(1) == b"\n"
    if place.compression:
        results["compression"] = place.compression
    if kind == "documents":
        results["between"] = _between(place, limits)
    return results


def _between(place: InputPlace, limits: ConvertLimits) -> str:
    """What stands between the first two documents."""
    with InputStream(place, limits) as source:
        scanner = JsonScanner(source.file, limits.record_bytes)
        scanner.next_byte()
        scanner.value(stop=limits.record_bytes)
        is_match = scanner.next_byte() is not None
        return scanner.gap.decode("ascii") if is_match else "\n"
