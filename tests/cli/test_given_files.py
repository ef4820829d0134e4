"""Files that a call names besides its data: recipes, configurations, rules, tasks, templates."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from adp.cli.main import main
from adp.core import input_files
from adp.core.input_files import read_bytes, read_text
from tests import kill
from tests.converters.test_run import chat, write_lines
from tests.waiting import PATIENCE

CALLS = {
    "a recipe": "curate FILE -o out",
    "an included recipe": "curate recipe.yaml -o out",
    "a table": "curate annotate.yaml -o out",
    "a configuration": "train sft --config FILE -o out",
    "rules": "redact store --rules FILE -o out",
    "a suite": "eval --suite FILE --policy expert -o out",
    "an environment": "collect --env FILE --policy expert --tasks test:1 -o out",
    "a script": "collect --env toolworld --policy scripted:file=FILE --tasks test:1 -o out",
    "tools": "collect --env configured:file=FILE --policy expert --tasks tasks.jsonl -o out",
    "SQL": "query store -f FILE -o out.csv",
    "words": "publish store me/s --dry-run --about FILE --out out",
    "a template": "tokens store --model tiny --chat-template FILE -o out",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    lines = write_lines(folder / "chats.jsonl", [chat(n) for n in range(2)])
    assert main(["convert", str(lines), "-o", str(folder / "store")]) == 0
    (folder / "tasks.jsonl").write_text('{"task_id": "a", "instruction": "Add."}\n')
    (folder / "recipe.yaml").write_text("recipe: 1\ninclude: given.yaml\n")
    (folder / "given.csv").symlink_to("given.yaml")
    (folder / "annotate.yaml").write_text(
        "recipe: 1\ninputs: {a: store}\nops: [annotate: {file: given.csv, key: trajectory_id}]\n"
    )
    return folder


@pytest.fixture
def given(here, monkeypatch):
    monkeypatch.chdir(here)
    path = here / "given.yaml"
    yield path
    path.rmdir() if path.is_dir() else path.unlink()


def make(kind: str, path: Path) -> str:
    """Put something in the place of a file; returns what is said of it."""
    if kind == "folder":
        path.mkdir()
        return "it is a folder, and no file"
    if kind == "device":
        path.symlink_to("/dev/zero")
        return "it is a device, and no file"
    if kind == "pipe":
        os.mkfifo(path)
        return "it is a pipe that nobody writes to"
    if kind == "large":
        with path.open("wb") as file:
            file.truncate((1 << 30) + 2)  # without a byte on the disk
        return "it is larger than"
    path.write_bytes(b"name: \xff\xfe\n")
    return "it is no UTF-8 text"


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["folder", "device", "pipe"])
def test_what_is_no_file_ends_in_one_sentence(kind, name, given, capsys):
    if name == "a template":
        pytest.importorskip("transformers")
    text = make(kind, given)
    if (kind, name) == ("folder", "a recipe"):
        text = "was not made with adp curate --link; name a recipe"
    code = main(shlex.split(CALLS[name].replace("FILE", "given.yaml")))
    err = capsys.readouterr().err
    assert code in (2, 3), err
    assert text in err.splitlines()[-1]
    assert [line[:7] for line in err.splitlines() if not line.startswith("stage")] == ["error: "]
    assert not Path("out", "adp.json").exists()
    shutil.rmtree("out", ignore_errors=True)


@pytest.mark.parametrize("kind", ["folder", "device", "pipe", "large", "other"])
def test_the_reader(kind, given, monkeypatch):
    output = make(kind, given)
    monkeypatch.setattr(input_files, "LARGEST", 1000)
    with pytest.raises(OSError, match=output) as caught:
        read_text(given)
    assert output in str(caught.value.strerror)


def test_as_many_bytes_as_are_allowed(given):
    given.write_bytes(b"\xef\xbb\xbfab\r\ncd\r")
    assert read_bytes(given, 10) == given.read_bytes()
    with pytest.raises(OSError, match="larger"):
        read_bytes(given, 9)
    assert read_text(given, "utf-8-sig") == "ab\ncd\n"


def test_the_output_of_another_program_is_read_to_its_end(given):
    given.write_text("x")
    slow = f"{sys.executable} -c 'import time; time.sleep(0.2); print(\"[dedup_exact]\")'"
    recipe = (
        f"(echo 'recipe: 1'; echo 'inputs: {{a: {given.parent}/store}}'; echo -n 'ops: '; {slow})"
    )
    call = shlex.join(kill.command("curate"))
    ran = subprocess.run(
        ["bash", "-c", f"{call} <{recipe} -o out"],
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert Path("out", "adp.json").exists()
