"""The data card: what the Hub reads in its head, and text that nothing in the data can steer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

from adp.stores.composition import composition
from adp.workflows.publish import findings
from adp.workflows.publish.card import _feature
from adp.workflows.publish.findings import StoreFindings
from adp.workflows.publish.folder import Prepared, prepare
from adp.workflows.publish.messages import SCHEMA
from adp.workflows.publish.options import PublishOptions
from adp.workflows.publish.repo import RepoId
from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from adp_schema.tables import TABLES
from tests.store_builders import write_store
from tests.workflows.publish.published import HOSTILE, Words, write_published

REPO = RepoId("alice", "agent-runs")
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
FINDINGS = StoreFindings({"github_token": 2, "<b>|": 1})
TITLE = "A | `b` <script>x</script>\n---\n# h {{7*7}} \\}@misc{evil"


@pytest.fixture(autouse=True)
def _findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "scan", lambda *_: FINDINGS)


def publish(folder: Path, words: Words, **options: object) -> Prepared:
    store = write_published(folder / "store", words)
    wanted = PublishOptions(allow_findings=True, accept_licenses=True, **options)
    return prepare(store.root, REPO, folder / "out", wanted)


def parts(prepared: Prepared) -> tuple[dict[str, object], str]:
    """The head as data, and the text."""
    whole = (prepared.folder / "README.md").read_text()
    before, head, text = whole.split("---\n", 2)
    assert before == ""
    return yaml.safe_load(head), text


def shape(text: str) -> Counter[str]:
    """How often each kind of Markdown occurs."""
    counts: Counter[str] = Counter()
    for token in PARSER.parse(text):
        counts[f"{token.type} {token.tag}"] += 1
        for child in token.children or ():
            kind = "text" if child.type in ("text", "text_special", "softbreak") else child.type
            counts[kind] += kind != "text"
    return counts


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "scan", lambda *_: FINDINGS)
        folder = tmp_path_factory.mktemp("hostile")
        return publish(folder, HOSTILE, title=TITLE, license="mit")


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "scan", lambda *_: FINDINGS)
        return publish(tmp_path_factory.mktemp("tagged"), Words(), title="Trips: 'a'", tag="v1")


def test_hostile_words_change_nothing_but_the_words(hostile: Prepared, tmp_path: Path):
    words = Words(license="as the source says", split="train")
    harmless = publish(tmp_path, words, title="Runs", license="mit")
    head, text = parts(hostile)
    plain_head, plain = parts(harmless)
    assert shape(text) == shape(plain)
    assert shape(text)["html_inline"] == shape(text)["html_block html"] == 0
    assert list(head) == list(plain_head)
    assert head["pretty_name"] == " ".join(TITLE.split())
    same = ("license", "license_name", "tags", "task_categories", "size_categories")
    assert {name: head.get(name) for name in same} == {name: plain_head.get(name) for name in same}
    names = [config["config_name"] for config in head["configs"]]
    assert names == [config["config_name"] for config in plain_head["configs"]]


def test_no_hostile_character_is_left(hostile: Prepared):
    for name in ("README.md", "croissant.json"):
        text = (hostile.folder / name).read_text()
        assert not set(text) & {"\u202e", "\u2066", "\x1b", "\x00"}, name
        assert len(text) < 200_000
    _, text = parts(hostile)
    shown = text.split("## Citation")[0]
    assert not {"<script", "<svg", "<img", "</td", "<iframe"} & set(shown.lower().split())
    assert "<s" not in shown
    assert "7\\*7" in shown  # shown, and not worked out


@pytest.mark.slow
def test_a_hostile_store_is_still_read_by_all(hostile: Prepared, tmp_path: Path):
    import os
    import subprocess
    import sys

    from tests.workflows.publish.test_folder import LOAD

    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, "-c", LOAD, str(hostile.folder)]
    subprocess.run(words, env=environment, capture_output=True, check=True)


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_hostile_metadata_validate(hostile: Prepared):
    import mlcroissant

    described = mlcroissant.Dataset(jsonld=str(hostile.folder / "croissant.json"))
    assert described.metadata.ctx.issues.errors == set()


def test_the_hub_reads_the_head(tagged: Prepared):
    """With the library that the Hub itself is read with."""
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(tagged.folder / "README.md", ignore_metadata_errors=False)
    assert card.data.pretty_name == "Trips: 'a'"
    assert card.data.license == "mit"
    assert card.data.size_categories == ["n<1K"]
    default = [config["config_name"] for config in card.data.configs if config.get("default")]
    assert default == ["messages"]


def test_the_features_are_those_of_the_files(tagged: Prepared):
    from datasets import Features

    head, _ = parts(tagged)
    infos = {info["config_name"]: info for info in head["dataset_info"]}
    for config in tagged.configs:
        info = infos[config.name]
        assert Features._from_yaml_list(info["features"]).arrow_schema.types == config.schema.types
        rows = {split["name"]: split["num_examples"] for split in info["splits"]}
        assert rows == {split.name: split.rows for split in config.splits}
        assert info["download_size"] == config.size


@pytest.mark.parametrize(
    ("license_", "expected"),
    [("mit", "mit"), ("CC BY-NC 4.0", "cc-by-nc-4.0"), ("my own", "unknown"),
     ("academic only", "other")],
)  # fmt: skip
def test_the_license_of_the_head(license_, expected, tmp_path: Path):
    head, _ = parts(publish(tmp_path, Words(license=license_)))
    assert head["license"] == expected
    assert ("license_link" in head) == (expected == "other")


def test_numbers_are_those_of_the_composition(tagged: Prepared):
    _, text = parts(tagged)
    numbers = composition(Store.open(str(tagged.folder / "store")))
    assert f"{numbers.trajectories} trajectories of agents, of which {numbers.branches}" in text
    assert f"{numbers.steps} steps and {numbers.calls} tool calls in {numbers.main_lines}" in text
    row = next(line for line in text.splitlines() if line.startswith("| trips | 5 |"))
    data = numbers.datasets[0]
    assert f"| 100.0 % | {data.steps} | {data.calls} | 50.0 % of 2 | mit | not said |" in row
    assert "note = {Revision v1, store " + tagged.manifest_hash in text
    assert "1. **convert** with adp" in text
    assert "2. **publish**" in text
    assert "| 2 | github" not in text
    assert "| github\\_token | 2 |" in text


def test_many_data_sets_are_cut(tmp_path: Path):
    builder = RowBuilder()
    for seq in range(150):
        builder.begin(Origin(seq=seq, dataset=f"d{seq}", columns={}))
        builder.trajectory({"source_id": "x", "license": "mit"})
        builder.finish()
    store = write_store(tmp_path / "s", builder)
    made = prepare(store.root, REPO, tmp_path / "o", PublishOptions(allow_findings=True))
    _, text = parts(made)
    assert "50 more data sets are not listed" in text
    assert "50 more are not listed; they are in the columns" in text


def test_a_recipe_is_shown(tmp_path: Path):
    store = write_published(tmp_path / "store")
    store.manifest.lineage[0].options["recipe"] = "ops:\n  - dedup ```\n<script>"
    store.manifest.write(tmp_path / "store")
    options = PublishOptions(allow_findings=True)
    _, text = parts(prepare(store.root, REPO, tmp_path / "out", options))
    blocks = [token.content for token in PARSER.parse(text) if token.type == "fence"]
    assert "ops:\n  - dedup ```\n<script>\n" in blocks


def test_columns_are_described_as_datasets_does():
    datasets = pytest.importorskip("datasets")
    schemas = [SCHEMA, *(table.schema for table in TABLES.values())]
    for schema in schemas:
        ours = [_feature(field.name, field.type) for field in schema]
        assert ours == datasets.Features.from_arrow_schema(schema)._to_yaml_list()
