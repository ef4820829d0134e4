"""Licenses: what they allow, and what is mixed in a store.

Whoever publishes a store publishes other people's data. This page says which licenses stand in
the way, as far as a table can; it is no legal advice. What a trajectory states itself wins over
what is known of its data set. What nobody states is unknown, and unknown is no permission.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from adp.stores.known_sources import DataSource, find_source, is_test, plain
from adp_schema.store import Store

PERMISSIVE, SHARE_ALIKE = "permissive", "share-alike"
NON_COMMERCIAL, NO_DERIVATIVES = "non-commercial", "no-derivatives"
CUSTOM, UNKNOWN = "custom terms", "unknown"

KINDS = (PERMISSIVE, SHARE_ALIKE, CUSTOM, NO_DERIVATIVES, NON_COMMERCIAL, UNKNOWN)
"""Kinds of licenses, from the one that asks for least to the one that allows nothing."""

OK, NOTE, REFUSE = "ok", "note", "refuse"
"""Verdicts: publish; publish, and say something; do not publish unless the user insists."""


@dataclass(frozen=True)
class License:
    """A license.

    Attributes:
        id: its id on the Hub, where that has one; else ours.
        kind: one of `KINDS`.
        on_hub: whether a data card may name it.
    """

    id: str
    kind: str
    on_hub: bool = True


_HUB_IDS: dict[str, str] = {
    PERMISSIVE: (
        "apache-2.0 mit afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause "
        "bsd-3-clause-clear cc0-1.0 cdla-permissive-1.0 cdla-permissive-2.0 c-uda ecl-2.0 isc "
        "ms-pl ncsa odc-by openmdw-1.0 pddl postgresql unlicense wtfpl zlib"
    ),
    SHARE_ALIKE: (
        "agpl-3.0 cdla-sharing-1.0 epl-1.0 epl-2.0 eupl-1.1 eupl-1.2 gfdl gpl gpl-2.0 gpl-3.0 "
        "lgpl lgpl-2.1 lgpl-3.0 lppl-1.3c mpl-2.0 odbl ofl-1.1 osl-3.0"
    ),
    CUSTOM: (
        "openrail openrail++ bigscience-openrail-m creativeml-openrail-m bigcode-openrail-m "
        "bigscience-bloom-rail-1.0 deepfloyd-if-license gemma llama2 llama3 llama3.1 llama3.2 "
        "llama3.3 llama4 grok2-community lgpl-lr apple-ascl"
    ),
    NON_COMMERCIAL: (
        "apple-amlr fair-noncommercial-research-license h-research intel-research"
    ),
}  # fmt: skip

_CREATIVE_IDS = (
    "cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 "
    "cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 "
    "cc-by-nc-sa-4.0"
)
_CREATIVE = frozenset(_CREATIVE_IDS.split())

LICENSES: dict[str, License] = {
    **{id_: License(id_, kind) for kind, ids in _HUB_IDS.items() for id_ in ids.split()},
    "academic": License("academic", NON_COMMERCIAL, on_hub=False),
}
"""Licenses by id; those of Creative Commons are read from their name (`find_license`)."""

_SPDX = {
    "apache-2.0": "Apache-2.0",
    "mit": "MIT",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "bsl-1.0": "BSL-1.0",
    "isc": "ISC",
    "cc0-1.0": "CC0-1.0",
    "cdla-permissive-1.0": "CDLA-Permissive-1.0",
    "cdla-permissive-2.0": "CDLA-Permissive-2.0",
    "cdla-sharing-1.0": "CDLA-Sharing-1.0",
    "odc-by": "ODC-By-1.0",
    "odbl": "ODbL-1.0",
    "pddl": "PDDL-1.0",
    "unlicense": "Unlicense",
    "mpl-2.0": "MPL-2.0",
    "gpl-2.0": "GPL-2.0-only",
    "gpl-3.0": "GPL-3.0-only",
    "lgpl-3.0": "LGPL-3.0-only",
    "agpl-3.0": "AGPL-3.0-only",
}
"""Ids -> how SPDX spells them."""

_SPELLINGS = {
    "apache": "apache-2.0",
    "apache-2": "apache-2.0",
    "apache2": "apache-2.0",
    "apache2.0": "apache-2.0",
    "apache-version-2.0": "apache-2.0",
    "asl-2.0": "apache-2.0",
    "expat": "mit",
    "mit-0": "mit",
    "bsd-3": "bsd-3-clause",
    "bsd-2": "bsd-2-clause",
    "cc0": "cc0-1.0",
    "public-domain": "cc0-1.0",
    "odc-by-1.0": "odc-by",
    "odbl-1.0": "odbl",
    "the-unlicense": "unlicense",
    "gplv3": "gpl-3.0",
    "gplv2": "gpl-2.0",
    "academic-only": "academic",
    "research-only": "academic",
    "academic-use-only": "academic",
    "non-commercial": "academic",
}
_NOTHING = frozenset({"", "unknown", "none", "n/a", "na", "null", "not-specified", "unspecified"})
_CC = re.compile(r"(?:cc|creative-?commons)-?((?:by|nc|nd|sa|-)+)(?:-?v?([0-9.]+))?((?:-\w+)*)")
_CC_PHRASES = (
    ("attribution", "by"), ("no-derivatives", "nd"), ("noderivatives", "nd"), ("no-derivs", "nd"),
    ("non-commercial", "nc"), ("noncommercial", "nc"), ("share-alike", "sa"), ("sharealike", "sa"),
)  # fmt: skip
_CC_ENDS = frozenset({"deed", "generic", "intl", "legalcode", "unported"})
"""Words after the version that say nothing about what is allowed."""
_CC_URL = re.compile(
    r"(?:https?://)?(?:www\.)?creativecommons\.org/(?:licenses|publicdomain)/([a-z-]+)/([0-9.]+)"
    r"(?:/(?:deed|legalcode)?(?:\.\w+)?)?"
)
_LONGEST = 200
_MOST_OPEN = License("gpl", SHARE_ALIKE)


def find_license(text: str | None) -> License | None:
    """The license that a text names, in one of its usual spellings. None when it is unknown.

    Of several (``MIT AND CC-BY-NC-4.0``, or a list) it is the one that asks for most; of
    alternatives (``MIT OR GPL-3.0``) the one that asks for least. A text with a part that is not
    understood names none: what it adds may forbid something.
    """
    if text is None or len(text) > _LONGEST:
        return None
    text = re.sub(r"(?i)[\s-]or[\s-]later\b", "", text)
    if " or " in text.lower() and " and " not in text.lower():
        choices = [find_license(part) for part in re.split(r"(?i) or ", text)]
        known = [choice for choice in choices if choice is not None]
        return min(known, key=_asks) if len(known) == len(choices) else None
    if (single := _find(text)) is not None:
        return single
    parts = [_find(part) for part in re.split(r"(?i)\s+and\s+|\s*[,;&+]\s+", text.strip())]
    known = [part for part in parts if part is not None]
    return max(known, key=_asks) if len(known) == len(parts) else None


def _asks(license_: License) -> int:
    return KINDS.index(license_.kind)


def _find(text: str) -> License | None:
    name = text.strip().lower()
    if (address := _CC_URL.fullmatch(name)) is not None:
        name = f"cc-{address[1]}-{address[2]}"
    name = re.sub(r"[\s_(),]+", "-", name).strip("-.")
    if name in LICENSES:
        return LICENSES[name]
    name = re.sub(r"-(only|or-later|license|licence|international|public)(?=-|$)", "", name)
    name = name.removeprefix("the-")
    if name in _NOTHING:
        return None
    name = _SPELLINGS.get(name, name)
    if name in LICENSES:
        return LICENSES[name]
    return _creative(name)


def _creative(name: str) -> License | None:
    """A license of Creative Commons from its name."""
    for phrase, word in _CC_PHRASES:
        name = name.replace(phrase, word)
    name = name.replace("no-by", "by")
    if name in ("cc-zero-1.0", "cc-publicdomain-1.0", "cc-mark-1.0"):
        return LICENSES["cc0-1.0"]
    match = _CC.fullmatch(name)
    if match is None:
        return None
    # What stands after the version may forbid too: CC-BY-4.0-NC.
    after = [word for word in match[3].split("-") if word and word not in _CC_ENDS]
    words = [*filter(None, match[1].split("-")), *after]
    if not words or set(words) - {"by", "nc", "nd", "sa"}:
        return None
    kind = PERMISSIVE
    for word, asks in (("sa", SHARE_ALIKE), ("nd", NO_DERIVATIVES), ("nc", NON_COMMERCIAL)):
        kind = asks if word in words else kind
    # An old text may say "CC BY-NC" alone: its kind is certain, its version is not.
    id_ = "-".join(["cc", *words, *([match[2]] if match[2] else [])])
    return License(id_, kind, on_hub=id_ in _CREATIVE)


@dataclass(frozen=True)
class LicenseRow:
    """Trajectories of one data set under one license.

    Attributes:
        dataset: name of the data set.
        license: the license as the trajectories state it; None when they state none.
        id: the license that counts, as an id; None when it is unknown.
        kind: one of `KINDS`.
        may_publish: what the trajectories say about that.
        source_url: where they come from, as they state it.
        trajectories: how many there are.
        verdict: `OK`, `NOTE` or `REFUSE`.
        reasons: what is to be said about it, in short sentences.
    """

    dataset: str | None
    license: str | None
    id: str | None
    kind: str
    may_publish: bool | None
    source_url: str | None
    trajectories: int
    verdict: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Assessment:
    """What may be said about publishing a store.

    Attributes:
        rows: one a data set and license, in the order of their names.
    """

    rows: tuple[LicenseRow, ...]

    def refused(self) -> list[LicenseRow]:
        """What stands in the way."""
        return [row for row in self.rows if row.verdict == REFUSE]

    def ids(self) -> list[str | None]:
        """The licenses that count, each once; None for what is unknown."""
        return sorted({row.id for row in self.rows}, key=lambda id_: (id_ is None, id_ or ""))

    def hub_license(self) -> str:
        """The license for the head of a data card: ``other`` unless all have the same one."""
        ids = self.ids()
        known = find_license(ids[0]) if len(ids) == 1 else None
        return known.id if known is not None and known.on_hub else "other"


_SQL = """
SELECT dataset, license, may_publish, source_url, split, count(*) AS trajectories
FROM all_trajectories GROUP BY ALL ORDER BY ALL
"""

Key = tuple[str | None, str | None, bool | None, str | None]


def assess(store: Store, default: str | None = None) -> Assessment:
    """Say what is mixed in a store, and what stands in the way of publishing it.

    Args:
        store: the store.
        default: license of the trajectories that state none and whose data set is not known.
    """
    judged: dict[Key, LicenseRow] = {}
    for batch in store.gate().batches(_SQL):
        for row in batch.to_pylist():
            result = judge(default=default, **row)
            key = (row["dataset"], row["license"], row["may_publish"], "; ".join(result.reasons))
            if (known := judged.get(key)) is not None:
                total = known.trajectories + result.trajectories
                result = replace(known, trajectories=total)
            judged[key] = result
    return Assessment(tuple(sorted(judged.values(), key=_order)))


def _order(row: LicenseRow) -> tuple[str, ...]:
    return (row.dataset or "", row.license or "", str(row.may_publish), *row.reasons)


def judge(
    *,
    dataset: str | None,
    license: str | None,  # noqa: A002 - the name of the column
    may_publish: bool | None = None,
    source_url: str | None = None,
    split: str | None = None,
    trajectories: int = 1,
    default: str | None = None,
) -> LicenseRow:
    """Judge trajectories that agree in these columns.

    Args:
        dataset: name of their data set.
        license: their license, as they state it.
        may_publish: what they say about publishing.
        source_url: where they come from.
        split: their split.
        trajectories: how many there are.
        default: license of those that state none and whose data set is not known.
    """
    source, certain = find_source(dataset, source_url)
    stated = find_license(license)
    table = find_license(source.license) if source is not None else None
    silent = license is None or plain(license) in _NOTHING
    # A name that is only alike may forbid, but not allow.
    taken = silent and table is not None and (certain or _asks(table) > _asks(_MOST_OPEN))
    result, given_license = (
        (table, source.license if source else None) if taken else (stated, license)
    )
    if silent and not taken and (source is None or not certain):
        result, given_license = find_license(default), default
    reasons = [*_about_license(result, given_license, source if taken else None)]
    refused = result is None or result.kind not in (PERMISSIVE, SHARE_ALIKE)
    if may_publish is False:
        reasons.append("marked as not to be published")
    more = list(_about_source(source, split))
    noted = bool(reasons) or is_test(split)
    if stated and table and source and certain and stated.id != table.id:
        reasons.append(f"{source.name} is known to be under {table.id}; {license} is stated")
        noted = True
    if is_test(split) and not more:
        reasons.append("a split to test models with")
    if source is not None and source.note and (certain or more):
        reasons.append(source.note)
        noted = True
    verdict = REFUSE if refused or more or may_publish is False else NOTE if noted else OK
    return LicenseRow(
        dataset, license, result.id if result else None, result.kind if result else UNKNOWN,
        may_publish, source_url, trajectories, verdict, (*more, *reasons),
    )  # fmt: skip


def _about_license(
    value: License | None, text: str | None, source: DataSource | None
) -> Iterable[str]:
    """What is to be said about a license."""
    where = f" (as {source.name} is known to be)" if source is not None else ""
    if value is None:
        yield "no license is stated" if text is None else "the license is not known"
    elif value.kind == NON_COMMERCIAL:
        yield f"{value.id} forbids commercial use{where}"
    elif value.kind == NO_DERIVATIVES:
        yield f"{value.id} forbids changed copies{where}"
    elif value.kind == CUSTOM:
        yield f"{value.id} has terms of its own{where}"
    elif value.kind == SHARE_ALIKE:
        yield f"{value.id} asks for the same license on what is made from it{where}"
    elif source is not None:
        yield f"{value.id}{where}"


def _about_source(source: DataSource | None, split: str | None) -> Iterable[str]:
    """Why a known data set is not to be uploaded again."""
    if source is None:
        return
    if source.gated:
        yield f"{source.name} is given out only to those who accept its terms"
    if source.evaluation or (source.test_split and is_test(split)):
        yield f"{source.name} tests models; it must not get into training data"


def license_url(id_: str | None) -> str | None:
    """The address of the text of a license; None when it is not known.

    Args:
        id_: an id of `License`.
    """
    if id_ is None:
        return None
    if id_ in _SPDX:
        return f"https://spdx.org/licenses/{_SPDX[id_]}.html"
    words, _, version = id_.removeprefix("cc-").rpartition("-")
    if id_.startswith("cc-") and words and version[:1].isdigit():
        return f"https://creativecommons.org/licenses/{words}/{version}/"
    return None
