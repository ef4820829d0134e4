"""``adp chat``: by a script, on a terminal, and killed."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from adp.rollouts.policies.names import policy_spec
from adp_schema.store import Store
from tests.waiting import PATIENCE

HOSTILE = "\x1b[2J\x1b]0;gone\x07 \x9b31m \u202eevil"
TURNS = [
    {"text": f"I compute.{HOSTILE}", "reasoning": HOSTILE,
     "calls": [{"name": "calculator", "arguments": {"expression": "17*3"}},
               {"name": f"no{HOSTILE}", "arguments": HOSTILE}]},
    {"text": "51"},
    {"text": "bye"},
]  # fmt: skip
CODE = "import sys; from adp.cli.main import main; sys.exit(main())"


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.jsonl"
    path.write_text(json.dumps({"turns": TURNS}) + "\n", encoding="utf-8")
    return f"scripted:file={path}"


@pytest.fixture
def chat(run, monkeypatch):
    """Call it with lines on standard input."""

    def call(text, *words):
        content = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        return run("chat", *words)

    return call


def steps(root):
    return [step.text for item in Store.open(str(root)).trajectories() for step in item.steps]


def test_a_script_is_answered_line_by_line(chat, script, tmp_path):
    result = chat("What?\nthanks\n", script, "--env", "calculator", "--store", tmp_path / "s")
    assert result.code == 0
    assert '-> calculator({"expression": "17*3"})' in result.out
    assert "<- 51" in result.out
    assert "there is no tool" in result.out
    assert result.out.endswith("51\nbye\n")
    assert steps(tmp_path / "s")[0] == "What?"


def test_no_control_character_leaves(chat, script):
    for more in ([], ["--json"]):
        result = chat("What?\n/tools\n/help\n", script, "--env", "calculator", *more)
        text = result.out + result.err
        assert not {letter for letter in text if ord(letter) < 32} - {"\n"}
        assert not set("\x7f\x9b\u202e") & set(text)


def test_json_is_an_object_a_turn(chat, script):
    result = chat("What?\nthanks\n", script, "-e", "calculator", "--json")
    first, second, third = map(json.loads, result.out.splitlines())
    assert [call["name"] for call in first["calls"]] == ["calculator", f"no{HOSTILE}"]
    assert [item["error"] for item in first["results"]] == [None, "unknown_tool"]
    assert first["results"][0]["text"] == "51"
    assert (second["text"], third["text"]) == ("51", "bye")


def test_messages_of_several_lines_and_commands(chat, script, tmp_path):
    text = 'one \\\ntwo\n"""\n/not a command\n\nlast\n"""\n /x\n\n/undo\n/save\n/quit\nnever\n'
    result = chat(text, script, "--store", tmp_path / "s")
    assert result.code == 0
    assert [item for item in steps(tmp_path / "s") if item and ("\n" in item or "/" in item)] == [
        "one \ntwo", "/not a command\n\nlast", " /x",
    ]  # fmt: skip


def test_saving_later_keeps_all_of_it(chat, script, tmp_path):
    result = chat(f"one\n/save {tmp_path / 's'}\n/reset\ntwo\n", script)
    assert f"kept in {tmp_path / 's'}" in result.out
    assert [text for text in steps(tmp_path / "s") if text in ("one", "two")] == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [("/nothing\n", 2, "no command /nothing"), ("/save\n", 2, "/save STORE"), ("", 0, "")],
)
def test_what_is_wrong_in_a_script_ends_it(chat, script, text, code, words):
    result = chat(text, script)
    assert (result.code, words in result.err) == (code, True)


def test_bytes_that_are_no_text(chat, script, tmp_path):
    assert chat(b"a \xff\xfe b\r\n\x00\n", script, "--store", tmp_path / "s").code == 0
    assert steps(tmp_path / "s")[0] == "a \ufffd\ufffd b"


def test_a_server_that_is_not_there(chat, tmp_path):
    policy = "openai:model=m,base_url=http://127.0.0.1:9,retries=0"
    result = chat("hello\n", policy, "--store", tmp_path / "s")
    assert result.code == 12
    assert "not answered" in result.err
    assert "infrastructure" in result.out
    (trajectory,) = Store.open(str(tmp_path / "s")).trajectories()
    assert trajectory.error_type == "infrastructure"


def test_a_finished_store_takes_nothing(chat, script, run, tmp_path):
    chat("one\n", script, "--store", tmp_path / "s")
    assert run("seal", tmp_path / "s").code == 0
    assert chat("one\n", script, "--store", tmp_path / "s").code == 5


def test_models_are_named_by_themselves(tmp_path):
    assert policy_spec("tiny") == 'transformers:model="tiny"'
    assert policy_spec("Qwen/Qwen3-0.6B") == 'transformers:model="Qwen/Qwen3-0.6B"'
    assert policy_spec(str(tmp_path)) == f'transformers:model="{tmp_path}"'
    for spec in ("openai:model=a/b", "scripted:file=/a/b", "code.py:Policy", "a.yaml", "nothing"):
        assert policy_spec(spec) == spec


def begun(words, **options):
    return subprocess.Popen([sys.executable, "-c", CODE, "chat", *map(str, words)], **options)


def read_until(handle, text):
    """What comes until a text does."""
    seen, end = b"", time.monotonic() + PATIENCE
    while text.encode() not in seen:
        assert time.monotonic() < end, seen
        seen += os.read(handle, 1 << 16)
    return seen


def test_a_killed_process_loses_nothing(chat, script, tmp_path):
    words = (script, "-e", "calculator", "--store", tmp_path / "s")
    process = begun(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"What?\n")
    process.stdin.flush()
    read_until(process.stdout.fileno(), "<- Error")
    read_until(process.stdout.fileno(), "51\n")
    draft = next((tmp_path / "s" / "chats").glob("*.json"))
    end = time.monotonic() + PATIENCE
    while "51" not in [step.get("text") for step in json.loads(draft.read_bytes())["steps"]]:
        assert time.monotonic() < end
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert steps(tmp_path / "s") == []
    result = chat("", *words)
    assert "left by a process that was killed" in result.out
    assert [text for text in steps(tmp_path / "s") if text in ("What?", "51")] == ["What?", "51"]


def test_on_a_terminal_ctrl_c_stops_a_turn_and_ctrl_d_ends(script, tmp_path):
    code = tmp_path / "slow.py"
    code.write_text(
        "import asyncio\n"
        "class Slow:\n"
        "    async def act(self, request):\n"
        "        await asyncio.sleep(0 if len(request.messages) > 1 else 600)\n"
        "        from adp.rollouts.turns import Turn\n"
        "        return Turn(text='a \\x1b[2J answer')\n"
        "    async def close(self): pass\n"
        "    name = 'slow'\n",
        encoding="utf-8",
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "INPUTRC": "/dev/null"}
    process = begun((f"{code}:Slow", "--store", tmp_path / "s"), stdin=theirs, stdout=theirs,
                    stderr=theirs, env=environment, start_new_session=True)  # fmt: skip
    read_until(ours, "> ")
    os.write(ours, b"hello\n")
    read_until(ours, "stops this turn")
    process.send_signal(signal.SIGINT)
    read_until(ours, "stopped; say something")
    os.write(ours, b"again\n")
    seen = read_until(ours, "answer")
    assert b"\x1b[2J" not in seen
    read_until(ours, "> ")
    os.write(ours, b"\x04")
    assert process.wait(PATIENCE) == 0
    assert steps(tmp_path / "s") == ["hello", "again", "a \x1b[2J answer"]
