"""What is written from a redacted store is what a redacted source would have given."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.converters.export import export
from adp.converters.registry import BUILTIN
from adp.converters.run import ConvertOptions, convert
from adp.stores.checks.run import run_checks
from adp.stores.redact import RedactOptions, redact, scan
from adp.stores.redact.rules import placeholder
from adp_schema.store import Store
from tests.converters.atif_records import atif_records
from tests.converters.sharegpt_records import sharegpt_records
from tests.converters.strategies import adp_v1_records, openai_records
from tests.effort import examples
from tests.golden import EXAMPLES, ROOT
from tests.stores.redact import planted

OPTIONS = RedactOptions(kinds=("all",), user=((), ()), workers=1)
KEYS = dict(planted.plain("5"))
KINDS = ("github-token", "stripe-key", "sendgrid-key", "anthropic-key", "telegram-token")
WORD = re.compile(r'(?<=")(?:hello|a b|Ghent|Cologne|kettle|mill|travel-7b|[a-z]+-[0-9])(?=")')


def plant(text: str, *, clean: bool) -> str:
    """Put keys, or placeholders for them, where some words are that fill a JSON string."""
    names: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        kind = names.setdefault(match.group(), KINDS[len(names) % len(KINDS)])
        return placeholder(kind) if clean else KEYS[kind]

    return WORD.sub(replace, text)


def stores(folder: Path, name: str, text: str, source_format: str) -> tuple[Store, Store]:
    """A store of the text with keys, redacted, and one of the text with placeholders."""
    made = []
    for clean in (False, True):
        ours = folder / str(clean)
        ours.mkdir()
        (ours / name).write_text(plant(text, clean=clean), encoding="utf-8")
        options = ConvertOptions(format=source_format, dataset="d")
        convert([str(ours / name)], str(ours / "store"), options=options)
        made.append(str(ours / "store"))
    redact(Store.open(made[0]), str(folder / "redacted"), OPTIONS)
    return Store.open(str(folder / "redacted")), Store.open(made[1])


def written(store: Store, to: str, folder: Path) -> dict[str, bytes]:
    """The files of an export."""
    export(store, to, str(folder))
    hashes = store.scan("trajectories").select("source_hash").collect()["source_hash"].to_list()
    files = {}
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        where, data = str(path.relative_to(folder)), path.read_bytes()
        for number, name in enumerate(hashes):
            # The hash of the record stands in for an id, and the records do differ.
            where = where.replace(name, f"hash-{number}")
            data = data.replace(name.encode(), b"hash-%d" % number)
        files[where] = data
    return files


def check(folder: Path, redacted: Store, converted: Store) -> None:
    """Both stores give the same files in every format, and read without a fault."""
    assert scan(redacted, OPTIONS).total == 0
    for to in BUILTIN:
        here = written(redacted, to, folder / f"a-{to}")
        assert here == written(converted, to, folder / f"b-{to}"), to
    both = zip(redacted.trajectories(), converted.trajectories(), strict=True)
    for ours, theirs in both:
        assert [step.model_dump() for step in ours.steps] == [
            step.model_dump() for step in theirs.steps
        ]


@pytest.mark.parametrize("source_format", sorted(EXAMPLES))
def test_examples(tmp_path, source_format):
    source = ROOT / EXAMPLES[source_format]
    text = source.read_text(encoding="utf-8")
    assert plant(text, clean=False) != text
    redacted, converted = stores(tmp_path, source.name, text, source_format)
    check(tmp_path, redacted, converted)
    if source_format == "sharegpt":  # it has all that spans can name
        before = {item.check.id: item.findings for item in run_checks(converted)[0]}
        assert {item.check.id: item.findings for item in run_checks(redacted)[0]} == before


@pytest.mark.parametrize(
    ("source_format", "records"),
    [
        ("openai_chat", openai_records()),
        ("adp_v1", adp_v1_records()),
        ("atif", atif_records()),
        ("sharegpt", sharegpt_records()),
    ],
)
def test_any_records(tmp_path_factory, source_format, records):
    @settings(max_examples=examples(12))
    @given(several=st.lists(records, min_size=1, max_size=4))
    def attempt(several: list[bytes]) -> None:
        folder = tmp_path_factory.mktemp("any")
        lines = [item.decode("utf-8", "surrogatepass").replace("\n", " ") for item in several]
        text = "\n".join(lines) + "\n"
        redacted, converted = stores(folder, "x.jsonl", text, source_format)
        check(folder, redacted, converted)

    attempt()
