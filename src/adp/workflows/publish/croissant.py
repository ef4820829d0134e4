"""Croissant metadata: the published folder for programs that search and load data sets.

Written as the specification of Croissant 1.0 says: files with hashes, a set of files a config and
split, and a set of records a config. `mlcroissant` is a check in the tests and no dependency.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from adp.stores.licenses import license_url
from adp.workflows.publish.card import TAGS, Facts
from adp.workflows.publish.checksums import Sum
from adp.workflows.publish.configs import PublishedConfig
from adp_schema.manifest import write_atomic

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that the specification prints."""

_PARQUET = "application/x-parquet"
_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")
_TYPES = {
    "string": "sc:Text",
    "bool": "sc:Boolean",
    "int32": "sc:Integer",
    "int64": "sc:Integer",
    "double": "sc:Float",
    "binary": "sc:Text",
    "timestamp[us, tz=UTC]": "sc:DateTime",
}
"""Arrow type -> data type. There is none for bytes."""


def write_croissant(path: Path, facts: Facts, files: Sequence[Sum]) -> None:
    """Write the metadata.

    Args:
        path: the file.
        facts: what is known of the folder.
        files: the files of the folder that the metadata may name.
    """
    text = json.dumps(describe(facts, files), indent=2, ensure_ascii=False)
    write_atomic(path, text + "\n")


def describe(facts: Facts, files: Sequence[Sum]) -> dict[str, Any]:
    """The metadata as JSON-LD."""
    numbers = facts.composition
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": facts.repo.name,
        "alternateName": facts.title,
        "description": (
            f"{numbers.trajectories:,} trajectories of agents: {numbers.steps:,} steps and "
            f"{numbers.calls:,} tool calls in {numbers.main_lines:,} main lines."
        ),
        "url": facts.repo.url,
        "license": _licenses(facts),
        "version": _version(facts),
        **({"datePublished": facts.date} if facts.date else {}),
        "creator": {"@type": "Organization", "name": facts.repo.owner},
        "citeAs": f"{facts.repo.owner}: {facts.title}. {facts.repo.url}",
        "keywords": list(TAGS),
        "isLiveDataset": False,
        "distribution": [
            *(_file(file) for file in files if file.path.endswith(".parquet")),
            *(_files(config) for config in facts.configs),
        ],
        "recordSet": [_records(config) for config in facts.configs],
    }


def _licenses(facts: Facts) -> list[str]:
    """Addresses of the licenses; that of the table in the card where one is not known."""
    unknown = f"{facts.repo.url}#licenses"
    return sorted({license_url(id_) or unknown for id_ in facts.assessment.ids()})


def _version(facts: Facts) -> str:
    """The tag as a version, if it is one; else the first."""
    match = _VERSION.fullmatch(facts.tag or "")
    return ".".join(part or "0" for part in match.groups()) if match else "1.0.0"


def _file(value: Sum) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": value.path,
        "name": value.path,
        "contentUrl": value.path,
        "contentSize": f"{value.size} B",
        "encodingFormat": _PARQUET,
        "sha256": value.sha256,
    }


def _set_id(config: PublishedConfig) -> str:
    return f"files-of-{config.name}"


def _files(config: PublishedConfig) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": _set_id(config),
        "name": _set_id(config),
        "description": f"Parquet files of the config {config.name}.",
        "encodingFormat": _PARQUET,
        "includes": [split.pattern for split in config.splits],
    }


def _records(config: PublishedConfig) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": config.name,
        "name": config.name,
        "description": config.what,
        "field": [_field(config, column) for column in config.schema],
    }


def _field(config: PublishedConfig, column: pa.Field) -> dict[str, Any]:
    kind = column.type
    repeated = {"repeated": True} if pa.types.is_list(kind) else {}
    kind = kind.value_type if repeated else kind
    what = (column.metadata or {}).get(b"description", b"").decode("utf-8")
    return {
        "@type": "cr:Field",
        "@id": f"{config.name}/{column.name}",
        "name": column.name,
        "description": what,
        "dataType": _TYPES[str(kind)],
        **repeated,
        "source": {
            "fileSet": {"@id": _set_id(config)},
            "extract": {"column": column.name},
        },
    }
