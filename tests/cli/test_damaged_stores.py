"""A store whose files are not those of its manifest, and every command that there is.

The commands come from the command line itself, so a new one fails here until it is said how it is
called, or why it reads no store.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer

import adp
from adp.cli import main as cli
from adp.cli.commands import VERIFYING, WRITE_ON_DEMAND, plugin_commands
from adp.converters.run import ConvertOptions, convert
from adp.rendering.tiny import tiny_tokenizer
from adp_schema import verification
from adp_schema.errors import DamagedStoreError
from adp_schema.store import Store
from tests.converters.test_run import chat, write_lines
from tests.growing import numbered
from tests.stores import any_store

CALLS = {
    "bfcl results": "STORE -o OUT --model m",
    "compare": "A_baseline --data STORE --eval STORE --set epochs=1 -o OUT",
    "collect": "--env toolworld --policy scripted:file=TURNS --tasks STORE -o OUT",
    "convert": "INPUT -o OUT --since STORE",
    "curate": "RECIPE -o OUT",
    "diff": "STORE WHOLE",
    "drop": "STORE --where success -o OUT",
    "eval": "--suite toolworld --policy scripted:file=TURNS --tasks STORE -o OUT",
    "evolve": "STORE --env toolworld --policy scripted:file=TURNS --ops re_rollout -o OUT",
    "export": "STORE --to openai_chat -o OUT",
    "head": "STORE",
    "info": "STORE",
    "loop": "LOOP -o OUT",
    "make m3-thoughts": "STORE --policy scripted:file=TURNS -o OUT",
    "merge": "WHOLE STORE -o OUT",
    "parse": "STORE -o OUT --dialect react",
    "publish": "STORE me/runs --dry-run --accept-licenses --allow-findings --out OUT",
    "query": "STORE -c SELECT+*+FROM+steps -o OUT.jsonl",
    "redact": "STORE -o OUT",
    "rejects": "STORE -o OUT",
    "report data": "STORE -o OUT.html",
    "report eval": "STORE -o OUT.html",
    "sample": "STORE",
    "score": "STORE --with outcome",
    "seal": "GROWING",
    "search": "STORE words",
    "show": "STORE ID",
    "stats": "STORE",
    "tokens": "STORE --model tiny -o OUT",
    "train distill": "STORE --model tiny --teacher TEACHER -o OUT",
    "train dpo": "STORE --model tiny -o OUT",
    "train grpo": "STORE --model tiny --set grpo.rewards=[answer] -o OUT",
    "train kto": "STORE --model tiny --set training.per_device_train_batch_size=2 -o OUT",
    "train reward": "STORE --model tiny -o OUT",
    "train sft": "STORE --model tiny -o OUT",
    "validate": "STORE --fail-on never",
    "why": "STORE ID",
}

NO_STORE = {
    "bfcl judge": "reads files of results",
    "bfcl import": "reads files of results",
    "chat": "writes what is said",
    "conformance": "reads files of a format",
    "doctor": "reads files of a format",
    "formats": "lists the formats",
    "job": "writes a script",
    "judge agreement": "looks at scores of a judge, which these stores have not",
    "judge compare": "looks at two runs of a task, which these stores have not",
    "make chains": "makes data of tools",
    "make m3-turns": "reads files of M3's benchmark",
    "make synthetic": "makes data of tools",
    "make teacher": "makes data of tools",
    "make templates": "makes data of tools",
    "methods": "lists methods",
    "new": "writes a package",
    "merge-adapter": "reads models",
    "push-model": "reads models",
    "serve-search": "serves documents; a store is read when one names a column",
    "train ppo": "says what there is in place of PPO",
    "pull": "fetches a store, of which it hashes every file as it comes",
}

KEEPS_PLAN = ("loop",)
"""What leaves its plan and its records behind, with which the same call goes on."""

LOOK = (
    "diff",
    "head",
    "info",
    "sample",
    "show",
    "stats",
    "validate",
    "why",
)
"""What only looks; the others make something of what they read."""


def commands() -> list[str]:
    """Every command, and those of groups."""
    names = []
    for name, entry in cli.command_table().items():
        command = cli.load_command(name, *entry)
        parts = getattr(command, "commands", None)
        names += [f"{name} {part}" for part in parts] if parts else [name]
    return names


def test_every_command_is_tried_here():
    assert sorted(commands()) == sorted([*CALLS, *NO_STORE])
    assert {name.split()[0] for name in CALLS if name not in LOOK} == {
        *VERIFYING,
        *WRITE_ON_DEMAND,
        *plugin_commands(),
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A store with every table, another one, and what the commands want besides."""
    folder = tmp_path_factory.mktemp("made")
    source = write_lines(folder / "chats.jsonl", [chat(n) for n in range(4)])
    runs = [any_store.Run("a", image=1, task=0), any_store.Run("b", branch=True, task=1)]
    any_store.write(folder / "store", [runs], "w")
    convert([source], str(folder / "whole"), options=ConvertOptions(dataset="other"))
    (folder / "turns.jsonl").write_text(json.dumps({"turns": [{"text": "I do not know."}]}))
    if find_spec("transformers"):
        tiny_tokenizer().save_pretrained(folder / "teacher")
    with adp.grow(folder / "growing", seal_count=1) as store:
        store.append(numbered("one"))
        store.append(numbered("two"))
    return folder


@pytest.fixture
def place(made, tmp_path) -> Path:
    """A copy of all that, which a test may damage."""
    shutil.copytree(made, tmp_path / "p")
    place = tmp_path / "p"
    recipe = {
        "recipe": 1,
        "inputs": {"a": str(place / "store")},
        "ops": ["dedup_exact"],
    }
    (place / "recipe.yaml").write_text(json.dumps(recipe))
    stage = {"score": {"store": str(place / "store"), "with": ["outcome"]}}
    loop = {"loop": 1, "model": "none", "rounds": {"repeat": 1, "stages": [stage]}}
    (place / "loop.yaml").write_text(json.dumps(loop))
    return place


def words(name: str, place: Path) -> list[str]:
    names = {
        "STORE": place / "store", "WHOLE": place / "whole", "GROWING": place / "growing",
        "INPUT": place / "chats.jsonl", "RECIPE": place / "recipe.yaml", "OUT": place / "new",
        "LOOP": place / "loop.yaml", "TURNS": place / "turns.jsonl", "ID": "d0/a",
        "TEACHER": place / "teacher",
    }  # fmt: skip
    output = []
    for word in CALLS[name].split():
        for key, value in names.items():
            word = word.replace(key, str(value)) if key.isupper() and key in word else word
        output.append(word.replace("+", " "))
    return [*name.split(), *output]


def flip(path: Path, at: float = 0.3) -> None:
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 1
    path.write_bytes(data)


def other_parquet(path: Path) -> None:
    """Another valid file of the same table."""
    rows = pq.read_table(path)
    pq.write_table(rows.slice(0, max(rows.num_rows - 1, 0)), path)


def link_out(path: Path) -> None:
    """The same bytes, somewhere else."""
    away = path.parents[2] / "away.parquet"
    path.rename(away)
    path.symlink_to(away)


def link_folder_out(path: Path) -> None:
    away = path.parents[2] / "away"
    path.parent.rename(away)
    path.parent.symlink_to(away)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a bit": flip,
    "a bit of the footer": lambda path: flip(path, 0.97),
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "missing": Path.unlink,
    "other rows": other_parquet,
    "a link": link_out,
    "a folder that is a link": link_folder_out,
    "a pipe": pipe,
}
SILENT = ("a bit", "a bit of the footer")
"""Damage that the sizes do not show."""

QUICK = ("export", "info")
"""What is tried with each kind of damage and each table; `make test-slow` does it with all."""


def quick_or_slow(*cells: object, quick: bool) -> object:
    """A cell of the grid, which only `make test-slow` runs unless it is a quick one."""
    return pytest.param(*cells, marks=() if quick else pytest.mark.slow)


def contents(place: Path) -> dict[str, tuple[int, int]]:
    """What is there, with what tells a change."""
    results = {}
    for path in sorted(place.rglob("*")):
        if path.suffix == ".lock":
            continue
        info = path.lstat()
        results[str(path)] = (info.st_size, 0 if path.is_dir() else info.st_mtime_ns)
    return results


def shards_of(place: Path, name: str) -> list[Path]:
    """The first file of each table of the store that a command reads."""
    root = place / ("growing" if name == "seal" else "store")
    store = Store.open(str(root), check=False)
    return [root / shards[0].path for shards in store.manifest.tables.values() if shards]


def check_refusal(run, place: Path, name: str, shard: Path) -> None:
    before = contents(place)
    done = run(*words(name, place))
    assert done.code == 5, (name, shard, done)
    assert f"{shard.parent.name}/{shard.name}: " in done.err
    (last,) = [line for line in done.err.splitlines() if not line.startswith("preparing: ")]
    assert last.startswith("error: ")
    if name in KEEPS_PLAN:
        assert (place / "new" / "loop.json").exists()
        assert not list(place.glob("new/round-*"))
        assert not list(place.glob("new/work/*/*"))
        shutil.rmtree(place / "new")
    assert not list(place.glob("new*"))
    assert contents(place) == before


@pytest.mark.parametrize("name", [quick_or_slow(name, quick=name in QUICK) for name in CALLS])
def test_a_bit_of_any_table(run, place, name, monkeypatch):
    """Who makes something hashes all, however large the store is; who looks, small stores."""
    if name not in LOOK:
        monkeypatch.setattr(verification, "SMALL", 0)
    shards = shards_of(place, name)
    assert len(shards) >= (3 if name == "seal" else 10)
    for shard in shards:
        kept = shard.read_bytes()
        flip(shard)
        check_refusal(run, place, name, shard)
        shard.write_bytes(kept)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        quick_or_slow(name, damage, quick=name in QUICK or damage == "a bit")
        for name in CALLS
        for damage in DAMAGE
    ],
)
def test_any_damage(run, place, name, damage, monkeypatch):
    if name not in LOOK:
        monkeypatch.setattr(verification, "SMALL", 0)
    shard = next(path for path in shards_of(place, name) if path.parent.name == "steps")
    DAMAGE[damage](shard)
    check_refusal(run, place, name, shard)


@pytest.mark.parametrize("name", [quick_or_slow(name, quick=name == "info") for name in LOOK])
def test_a_large_store_is_compared_by_size(run, place, name, monkeypatch):
    """Without its hashes, damage shows itself by what fails, if it does: then that is said."""
    monkeypatch.setattr(verification, "SMALL", 0)
    for shard in shards_of(place, name):
        kept = shard.read_bytes()
        for damage in DAMAGE:
            if damage in SILENT:
                DAMAGE[damage](shard)
                done = run(*words(name, place))
                assert done.code == 0 or f"{shard.parent.name}/{shard.name}" in done.err
                assert done.code in (0, 5)
                shard.write_bytes(kept)
    os.truncate(shard, 10)
    check_refusal(run, place, name, shard)


@pytest.mark.parametrize("name", ["export", "redact", "merge", "query"])
def test_who_is_in_a_hurry(run, place, name, monkeypatch):
    """With --no-verify only the sizes count, and what cannot be read is still damage."""
    monkeypatch.setattr(verification, "SMALL", 0)
    output = [*words(name, place), "--no-verify"]
    flip(place / "store" / "sources" / "part-00000.parquet", 0.97)
    done = run(*output)
    assert done.code in (0, 5)
    assert done.code == 0 or "sources/part-00000.parquet" in done.err
    assert "None" not in done.err
    os.truncate(place / "store" / "steps" / "part-00000.parquet", 100)
    assert "steps/part-00000.parquet: it has 100 bytes, not " in run(*output).err


def test_a_link_within_the_store_is_read(run, place):
    shard = place / "store" / "steps" / "part-00000.parquet"
    shard.rename(shard.with_name("kept.parquet"))
    shard.symlink_to("kept.parquet")
    (place / "link").symlink_to(place / "store")
    assert run("info", place / "link", "--verify").code == 0


def test_a_file_is_hashed_once(place, monkeypatch):
    """As long as the system says that it is the same; a changed one is hashed again."""
    store = Store.open(str(place / "whole"))
    hashed = []
    real = verification.digest_file

    def watched(path):
        hashed.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(verification, "digest_file", watched)
    monkeypatch.setattr(verification, "_hashes", {})
    shards = [place / "whole" / s.path for t in store.manifest.tables.values() for s in t]
    for shard in shards:
        os.utime(shard, (1e9, 1e9))
    for _ in range(3):
        with verification.verified():
            store.check()
    assert len(hashed) == len(shards)
    flip(shards[0])
    with pytest.raises(DamagedStoreError, match="its bytes differ"), verification.verified():
        store.check()


def test_the_library(place):
    """What makes something from a store hashes it; a store that was opened before, too."""
    store = Store.open(str(place / "store"))
    flip(place / "store" / "steps" / "part-00000.parquet")
    out = place / "new"
    for given in (store, store.root):
        with pytest.raises(DamagedStoreError, match="steps/part-00000"):
            adp.export(given, "openai_chat", out)
        with pytest.raises(DamagedStoreError, match="steps/part-00000"):
            adp.score(given, "outcome")
        with pytest.raises(DamagedStoreError, match="steps/part-00000"):
            adp.render(given, "tiny", out)
    with pytest.raises(DamagedStoreError, match="steps/part-00000"):
        adp.drop(store.root, "success", out)
    with pytest.raises(DamagedStoreError, match="steps/part-00000"):
        adp.merge([store.root, place / "whole"], out)
    assert not out.exists()


def test_a_growing_store(run, place):
    """Its shards have hashes; its journal checks itself."""
    (shard,) = (place / "growing" / "steps").glob("*-00000.parquet")
    flip(shard)
    for name in ("stats", "export", "score"):
        replaces = [word.replace("/store", "/growing") for word in words(name, place)]
        done = run(*replaces)
        assert (done.code, "its bytes differ" in done.err) == (5, True)


def test_typer_groups_have_the_option_too():
    for name in ("report", "train", "bfcl"):
        group = cli.load_command(name, *cli.command_table()[name])
        for part in group.commands.values():
            assert any("--no-verify" in getattr(param, "opts", ()) for param in part.params)
    assert typer.__version__
