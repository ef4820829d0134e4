"""What OpenHands and BrowserGym read in the texts that are written for them: their code says it.

``make harness-tests`` installs them in an environment of their own and names its Python in
``ADP_HARNESSES``; without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adp.rendering.chat import Chat, ChatCall, Message
from adp.trainers.export.agentlab import EXPORTER as AGENTLAB
from adp.trainers.export.agentlab import AgentLabOptions
from adp.trainers.export.openhands_v0 import EXPORTER as V0
from adp.trainers.export.openhands_v0 import OpenHandsV0Options
from tests.trainers.export.chats import agent, chat_of, export, user

PYTHON = os.environ.get("ADP_HARNESSES")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="make harness-tests installs the harnesses")

ROOT = Path(__file__).parents[3]
TEXTS = (
    *("ls -l", "two\nlines\n\n  indented", 'it\'s "so"', "a\\nb", "42", "None", "{}", "[1, 2]", ""),
    *("<b>x</b>", "=", "☃ ümläut", "a=b, c(d)", "'", '"', "x = {'a': 1}\nprint(x)", "#no comment"),
)
TOOLS: tuple[dict[str, Any], ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "",
            "parameters": {"type": "object", "properties": properties},
        },
    }
    for name, properties in {
        "execute_bash": {"command": {"type": "string"}},
        "execute_ipython_cell": {"code": {"type": "string"}},
        "finish": {"message": {"type": "string"}, "task_completed": {"type": "string"}},
        "find": {
            "what": {"type": "string"},
            "count": {"type": "integer"},
            "places": {"type": "array"},
        },
    }.items()
)
WRITTEN = {"bash": "execute_bash", "ipython": "execute_ipython_cell", "find": "find"}
"""Names of the sources -> those of OpenHands."""


def made(seed: int) -> Chat:
    """A chat with calls whose arguments are hard to write."""
    draw = random.Random(seed)
    messages = [user("go")]
    for number in range(draw.randint(1, 4)):
        name = draw.choice(sorted(WRITTEN))
        arguments: dict[str, Any] = {
            "bash": {"command": draw.choice(TEXTS)},
            "ipython": {"code": draw.choice(TEXTS)},
            "find": {
                "what": draw.choice(TEXTS),
                "count": draw.randint(-3, 10**6),
                "places": draw.sample(TEXTS, draw.randint(0, 3)),
            },
        }[name]
        call = ChatCall(name, arguments, json.dumps(arguments), f"c{number}")
        messages.append(agent(draw.choice(("", "I look.", "Two\n\nparts")), call))
        messages.append(Message("tool", draw.choice(TEXTS), 0, call_id=call.call_id, name=name))
    return chat_of(*messages, tools=())


def ask(tmp_path: Path, jobs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the harnesses answer."""
    for job in jobs.values():
        job["work"] = str(tmp_path)
    questions, answers = tmp_path / "jobs.json", tmp_path / "answers.json"
    questions.write_text(json.dumps(jobs), encoding="utf-8")
    command = [
        str(PYTHON),
        "-m",
        "tools.oracle.harness_rows",
        str(questions),
        "--out",
        str(answers),
    ]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600, env={"PATH": os.environ["PATH"]})
    answered = json.loads(answers.read_text(encoding="utf-8"))["answers"]
    assert {name: item["error"] for name, item in answered.items() if "error" in item} == {}
    return {name: item["rows"] for name, item in answered.items()}


def read_by_openhands(value: Any) -> Any:
    """An argument as OpenHands' parser gives it back: outer white space is gone."""
    return value.strip() if isinstance(value, str) else value


def test_openhands_reads_our_calls_and_writes_them_as_we_do(tmp_path: Path) -> None:
    jobs, given = {}, {}
    for seed in range(200):
        options = OpenHandsV0Options(values="inline", other_tools="tool", weights=False)
        chat = made(seed)
        [row], _ = export(V0, chat, options)
        given[str(seed)] = (chat, row["conversations"])
        jobs[str(seed)] = {"what": "openhands", "messages": row["conversations"], "tools": TOOLS}
    answers = ask(tmp_path, jobs)
    for seed, (chat, messages) in given.items():
        [answer] = answers[seed]
        read = [item for item in answer["read"] if "tool_calls" in item]
        calls = [item["tool_calls"][0]["function"] for item in read]
        assert [(item["name"], json.loads(item["arguments"])) for item in calls] == [
            (WRITTEN[call.name], {k: read_by_openhands(v) for k, v in call.arguments.items()})
            for message in chat.messages
            for call in message.calls
        ]
        results = [item for item in answer["read"] if item["role"] == "tool"]
        assert [(item["name"], item["content"]) for item in results] == [
            (WRITTEN[str(message.name)], message.text.strip())
            for message in chat.messages
            if message.role == "tool"
        ]
        if all(_is_trimmed(message) for message in chat.messages):
            assert answer["written"] == messages


def _is_trimmed(message: Message) -> bool:
    """Whether nothing in a message begins or ends with white space."""
    texts = [message.text, *(v for call in message.calls for v in call.arguments.values())]
    return all(text == text.strip() for text in texts if isinstance(text, str))


def test_openhands_reads_values_on_lines_of_their_own_as_well(tmp_path: Path) -> None:
    jobs: dict[str, dict[str, Any]] = {}
    for values in ("inline", "block"):
        options = OpenHandsV0Options(values=values, other_tools="tool", weights=False)
        for seed in range(100):
            [row], _ = export(V0, made(seed), options)
            messages = row["conversations"]
            jobs[f"{values}{seed}"] = {"what": "openhands", "messages": messages, "tools": TOOLS}
    answers = ask(tmp_path, jobs)
    for seed in range(100):
        assert answers[f"block{seed}"][0]["read"] == answers[f"inline{seed}"][0]["read"]


def test_browsergym_reads_our_actions(tmp_path: Path) -> None:
    calls = [
        *(("fill", {"bid": "a12", "value": text}) for text in TEXTS),
        *(("select_option", {"bid": "4", "options": [text, "b"]}) for text in TEXTS),
        *(("goto", {"url": f"http://a/?q={number}"}) for number in range(3)),
        *(("scroll", {"delta_x": 0, "delta_y": -1.5}), ("go_back", {}), ("noop", {})),
        *(("unknown", {"flag": True, "nothing": None, "deep": {"a": [1, {"b": ""}]}}),),
    ]
    chat = chat_of(
        user("go"),
        *(
            agent("", ChatCall(name, arguments, json.dumps(arguments), f"c{number}"))
            for number, (name, arguments) in enumerate(calls)
        ),
        *(agent(text) for text in TEXTS if text),
    )
    rows, _ = export(AGENTLAB, chat, AgentLabOptions())
    actions = [json.loads(row["conversations"][1]["content"])["action"] for row in rows]
    answers = ask(tmp_path, {"all": {"what": "browsergym", "actions": actions}})["all"]
    sent = [("send_msg_to_user", {"text": text}) for text in TEXTS if text]
    assert [item["calls"] for item in answers] == [[[n, a]] for n, a in [*calls, *sent]]
    refused = [item["refused"] for item in answers if item["refused"]]
    assert refused == ["Invalid action type 'unknown'."]


def test_the_words_of_browsergym_on_its_actions_reach_the_prompt() -> None:
    site = Path(str(PYTHON)).parents[1].glob("lib/python*/site-packages")
    program = (
        f"import sys; sys.path.append({str(next(site))!r})\n"
        "from adp.trainers.export.harness.action_space import described\n"
        "print(described('browsergym', []))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, timeout=600, capture_output=True, text=True)
    assert done.stdout.startswith("# Action Space\n17 different types of actions are available.")
    assert "select_option(bid: str, options: str | list[str])" in done.stdout
