"""Licenses and what they allow."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.stores.known_sources import SOURCES, find_source
from adp.stores.licenses import (
    CUSTOM,
    KINDS,
    LICENSES,
    NO_DERIVATIVES,
    NON_COMMERCIAL,
    NOTE,
    OK,
    PERMISSIVE,
    REFUSE,
    SHARE_ALIKE,
    assess,
    find_license,
    judge,
    license_url,
)
from adp_schema.builder import Origin, RowBuilder
from tests.store_builders import write_store


@pytest.mark.parametrize(
    ("text", "id_", "kind"),
    [
        ("Apache License 2.0", "apache-2.0", PERMISSIVE),
        ("Apache-2.0", "apache-2.0", PERMISSIVE),
        ("The MIT License", "mit", PERMISSIVE),
        ("MIT", "mit", PERMISSIVE),
        ("GPL-3.0-or-later", "gpl-3.0", SHARE_ALIKE),
        ("CC BY 4.0", "cc-by-4.0", PERMISSIVE),
        ("CC0", "cc0-1.0", PERMISSIVE),
        ("Creative Commons Attribution 4.0 International", "cc-by-4.0", PERMISSIVE),
        ("Creative Commons Attribution-NonCommercial 4.0", "cc-by-nc-4.0", NON_COMMERCIAL),
        ("https://creativecommons.org/licenses/by-sa/4.0/", "cc-by-sa-4.0", SHARE_ALIKE),
        ("CC-BY-NC-ND-4.0", "cc-by-nc-nd-4.0", NON_COMMERCIAL),
        ("cc-by-nd-4.0", "cc-by-nd-4.0", NO_DERIVATIVES),
        ("llama3.1", "llama3.1", CUSTOM),
        ("academic only", "academic", NON_COMMERCIAL),
        ("MIT AND CC-BY-NC-4.0", "cc-by-nc-4.0", NON_COMMERCIAL),
        ("MIT OR GPL-3.0-only", "mit", PERMISSIVE),
        ("apache-2.0, cc-by-4.0, cc-by-nc-sa-4.0", "cc-by-nc-sa-4.0", NON_COMMERCIAL),
        ("Apache License, Version 2.0", "apache-2.0", PERMISSIVE),
        ("GPL-3.0 or later", "gpl-3.0", SHARE_ALIKE),
        # What stands behind the version counts too.
        ("CC BY 4.0 (non-commercial)", "cc-by-nc-4.0", NON_COMMERCIAL),
        ("CC-BY-4.0-NC", "cc-by-nc-4.0", NON_COMMERCIAL),
        ("cc-by-4.0-nc-sa", "cc-by-nc-sa-4.0", NON_COMMERCIAL),
        ("CC BY 4.0 no derivatives", "cc-by-nd-4.0", NO_DERIVATIVES),
        (
            "Creative Commons Attribution 4.0 International Non-Commercial",
            "cc-by-nc-4.0",
            NON_COMMERCIAL,
        ),
    ],
)
def test_spellings(text, id_, kind):
    result = find_license(text)
    assert result is not None
    assert (result.id, result.kind) == (id_, kind)


@pytest.mark.parametrize("text", [None, "", "unknown", "None", "see README", "cc", "x" * 10_000,
                                  "mit, and my own", "other", "CC BY 4.0 (research only)",
                                  "CC BY 4.0 - all rights reserved", "not MIT or Apache-2.0",
                                  "CC-BY-4.0 for code CC-BY-NC-4.0 for data",
                                  "no redistribution, or MIT",
                                  "https://creativecommons.org/licenses/by/4.0 not for sale",
                                  ])  # fmt: skip
def test_what_is_no_license(text):
    assert find_license(text) is None


@given(st.text(max_size=60))
def test_any_text_is_a_license_or_not(text):
    result = find_license(text)
    assert result is None or result.kind in KINDS
    assert judge(dataset=text, license=text, source_url=text).verdict in (OK, NOTE, REFUSE)


@given(st.sampled_from(sorted(LICENSES)))
def test_ids_are_found_in_any_case(id_):
    assert find_license(id_) == find_license(id_.upper()) == LICENSES[id_]


def test_the_table_of_sources_is_consistent():
    for source in SOURCES:
        assert source.license is None or find_license(source.license) is not None, source.name
        assert source.url == "" or find_source(None, f"https://{source.url}")[0] == source


@pytest.mark.parametrize(
    ("message", "verdict", "why"),
    [
        ({"dataset": "mine", "license": "mit"}, OK, ""),
        ({"dataset": "mine", "license": None}, REFUSE, "no license is stated"),
        ({"dataset": "mine", "license": "my own"}, REFUSE, "the license is not known"),
        ({"dataset": "mine", "license": None, "default": "cc-by-4.0"}, OK, ""),
        ({"dataset": "mine", "license": "cc-by-nc-4.0", "default": "mit"}, REFUSE, "commercial"),
        ({"dataset": "mine", "license": "cc-by-nd-4.0"}, REFUSE, "changed copies"),
        ({"dataset": "mine", "license": "llama3"}, REFUSE, "terms of its own"),
        ({"dataset": "mine", "license": "gpl-3.0"}, NOTE, "same license"),
        (
            {"dataset": "mine", "license": "mit", "may_publish": False},
            REFUSE,
            "not to be published",
        ),
        ({"dataset": "mine", "license": "mit", "split": "test"}, NOTE, "test models"),
        ({"dataset": "toolace", "license": None}, NOTE, "as ToolACE is known to be"),
        ({"dataset": "toolace", "license": "cc-by-nc-4.0"}, REFUSE, "known to be under apache-2.0"),
        ({"dataset": "toolace", "license": "mit"}, NOTE, "known to be under apache-2.0"),
        ({"dataset": "Salesforce/APIGen-MT-5k", "license": None}, REFUSE, "accept its terms"),
        ({"dataset": "crmarena", "license": None, "default": "mit"}, REFUSE, "commercial"),
        ({"dataset": "mind2web", "license": None, "split": "test_task"}, REFUSE, "tests models"),
        ({"dataset": "mind2web", "license": None, "split": "train"}, NOTE, "upload the test data"),
        ({"dataset": "webarena_successful", "license": "mit"}, REFUSE, "tests models"),
        ({"dataset": "agenttraj-l", "license": None}, REFUSE, "no license"),
        # A name that is only alike may forbid, but not allow.
        ({"dataset": "my-webshop-runs", "license": None}, REFUSE, "no license"),
        ({"dataset": "my-crmarena-runs", "license": None}, REFUSE, "commercial"),
        ({"dataset": "my-mind2web-runs", "license": "mit", "split": "train"}, OK, ""),
    ],
)
def test_verdicts(message, verdict, why):
    row = judge(**{"source_url": None, **message})
    assert row.verdict == verdict, row
    assert why in "; ".join(row.reasons)


def test_an_address_tells_the_source_too():
    url = "https://huggingface.co/datasets/Salesforce/xlam-function-calling-60k"
    assert judge(dataset="x", license="cc-by-4.0", source_url=url).verdict == REFUSE


def test_a_store_is_assessed_by_data_set_and_license(tmp_path: Path):
    builder = RowBuilder()
    columns = [("a", "mit"), ("a", "mit"), ("a", None), ("b", "cc-by-nc-4.0"), ("c", "MIT")]
    for seq, (dataset, text) in enumerate(columns):
        builder.begin(Origin(seq=seq, dataset=dataset, columns={}))
        builder.trajectory({"source_id": str(seq), "license": text,
                            "source_url": f"https://example.org/{seq}"})  # fmt: skip
        builder.finish()
    store = write_store(tmp_path / "s", builder)
    assessment = assess(store)
    counted = {(row.dataset, row.license): row.trajectories for row in assessment.rows}
    assert sum(counted.values()) == 5
    assert counted["a", "mit"] == 2  # not one row an address
    assert [(row.dataset, row.license) for row in assessment.refused()] == [
        ("a", None), ("b", "cc-by-nc-4.0"),
    ]  # fmt: skip
    assert assessment.ids() == ["cc-by-nc-4.0", "mit", None]
    assert assessment.hub_license() == "other"
    assert assess(store).rows == assessment.rows
    assert len(assess(store, "mit").refused()) == 1


def test_addresses_of_licenses():
    assert license_url("mit") == "https://spdx.org/licenses/MIT.html"
    assert license_url("cc-by-nc-4.0") == "https://creativecommons.org/licenses/by-nc/4.0/"
    assert license_url("llama3.1") is None
    assert license_url(None) is None
