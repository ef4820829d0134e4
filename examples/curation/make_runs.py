"""Write runs of two travel agents for the recipes beside this file: `make_runs.py FOLDER`.

    chats/round-1.jsonl, chats/round-2.jsonl   four attempts at each of 24 tasks
    m3/run/...                                 an agent that asks an expert for help
    losses.csv                                 a loss for each run of the first round
    benchmark.jsonl                            tasks that must not be in the training data

Everything is made up, and the same in every run. Only the standard library is needed.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from pathlib import Path
from typing import Any

CITIES = ("Ghent", "Cologne", "Lyon", "Turin", "Basel", "Graz", "Brno", "Utrecht")
WISHES = (
    "I travel with two bicycles and need a train that takes them",
    "my mother is eighty and would rather not change trains twice",
    "I have a meeting at nine and must not be late for it",
    "the tickets have to be cheap, I do not mind how long it takes",
    "we are six people and want to sit together at one table",
    "I would like to see the mountains, so please no night train",
)
MORE = (
    "please leave an hour between trains, because I am slow on stairs",
    "a seat by the window would be lovely, the landscape is said to be great there",
    "my dog comes along, so tell me what the rules for animals are",
    "I pay with the card that I gave you last year in the autumn",
    "do not choose the first train of the day, I never get up that early",
    "if it snows in the hills I would rather stay at home and read",
    "there should be a place where I can buy something to eat on the way",
)
NAMES = ("search_trains", "get_weather", "book_seat")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in keys},
                "required": list(keys),
            },
        },
    }
    for name, keys in zip(
        NAMES, (("origin", "destination"), ("city",), ("train", "passenger")), strict=True
    )
]
SYSTEM = (
    "You are a travel assistant. Look before you book, never book twice, and say so when a wish "
    "cannot be met. Ask before you pay for anything, and answer in one short paragraph."
)


def call(number: int, name: str, **arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": f"call_{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def question(task: int) -> str:
    start, end = CITIES[task % 8], CITIES[(task * 3 + 1) % 8]
    return (
        f"Please find me a train from {start} to {end} on {task % 27 + 1} May and book a seat; "
        f"{WISHES[task % 6]}, and {MORE[(3 * task + task // 6) % 7]}. "
        f"Booking number of my last journey: QX-{1000 + 37 * task}."
    )


def run(task: int, attempt: int, dice: random.Random) -> dict[str, Any]:
    """One attempt: it may fail, stumble over a wrong argument, or go round in circles."""
    strong = attempt % 2 == 0
    start, end = CITIES[task % 8], CITIES[(task * 3 + 1) % 8]
    train = f"IC {100 + task}"
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": question(task)},
    ]
    number = 0

    def do(name: str, answer: str, **arguments: str) -> None:
        nonlocal number
        messages.append(call(number, name, **arguments))
        messages.append(result(number, answer))
        number += 1

    if not strong and dice.random() < 0.5:
        do("search_trains", "Error: the argument destination is missing", origin=start)
    rounds = 4 if attempt == 3 and task % 5 == 0 else 1
    for _ in range(rounds):
        do("search_trains", json.dumps([train, f"RE {300 + task}"]), origin=start, destination=end)
    if dice.random() < 0.4:
        do("get_weather", f"{dice.choice(['sun', 'rain', 'fog'])} in {end}", city=end)
    solved = rounds == 1 and dice.random() < (0.85 if strong else 0.45)
    if solved:
        do("book_seat", f"Seat {task + 11} on {train} is booked.", train=train, passenger="you")
        words = dice.choice(("Done", "All set", "It is booked"))
        text = f"{words}: {train} from {start} to {end}, seat {task + 11}. Have a good journey!"
    else:
        text = f"I am sorry, I found {train} to {end}, but could not book it for you."
    messages.append({"role": "assistant", "content": text})
    return {
        "id": f"task-{task}-attempt-{attempt}",
        "task_id": f"task-{task}",
        "model": "travel-70b" if strong else "travel-7b",
        "success": solved,
        "reward": 1.0 if solved else round(0.4 * dice.random(), 2),
        "tools": TOOLS,
        "messages": messages,
    }


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def chats(folder: Path) -> None:
    """Two rounds of runs; the first one has some runs twice, as logs do."""
    dice = random.Random(7)
    for number, tasks in enumerate((range(16), range(16, 24)), 1):
        rows = [run(task, attempt, dice) for task in tasks for attempt in range(4)]
        if number == 1:
            rows += [{**rows[place], "id": f"again-{place}"} for place in (0, 9, 22)]
            with (folder / "losses.csv").open("w", newline="", encoding="utf-8") as file:
                lines = csv.writer(file, lineterminator="\n")
                lines.writerow(["source_id", "loss"])
                lines.writerows([row["id"], round(dice.uniform(0.2, 3), 3)] for row in rows)
        write_lines(folder / "chats" / f"round-{number}.jsonl", rows)
    items = [{"id": f"bench-{task}", "question": question(task)} for task in (2, 5)]
    items.append({"id": "bench-x", "question": " ".join(question(99).split()[::-1])})
    write_lines(folder / "benchmark.jsonl", items)


# ---- an agent that asks an expert for help


def action(actor: str, thought: str, name: str, arguments: Any, seen: str) -> dict[str, Any]:
    """What one actor would do at a step, as M3 writes it."""
    final = name == "FINAL"
    body = (
        f"<FINAL>{arguments}</FINAL>"
        if final
        else json.dumps({"name": name, "arguments": arguments})
    )
    kind = "FINAL" if final else "RETRIEVE" if name == "retrieve_documents" else "API"
    value = arguments if final else {"name": name, "arguments": arguments}
    if final:
        reward = "{REWARD_FINAL_ANSWER_MATCH}"
    elif "Error" in seen:
        reward = "{REWARD_BAD_TOOL_CALL}"
    else:
        reward = "{REWARD_SUCCESS_TOOL_CALL}"
    return {
        "metadata": {
            "thought": thought, "action": kind, "action_arguments": value, "observation": seen,
        },
        "actor": actor,
        "output": {
            "role": "assistant" if final else "function",
            "content": f"<think>{thought}</think>{body}",
        },
        "reward": reward,
    }  # fmt: skip


def m3_run(task: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A run of three steps: a wrong call of the agent, the expert's call, the answer."""
    city = CITIES[task % 8]
    asked = f"Which river flows through {city}?"
    there = [{"role": "user", "content": asked}]
    tools = [
        {
            "type": "function",
            "function": {
                "name": "get_river",
                "description": "River of a city.",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"],
                },
            },
        }
    ]
    wrong = action(
        "agent",
        "I search the web.",
        "search_web",
        {"query": f"river {city}"},
        "ToolDoesNotFoundError: The provided tool name 'search_web' does not exist.",
    )
    right = action(
        "expert",
        "There is a tool for this.",
        "get_river",
        {"city": city},
        f"ToolCallSuccessful: {{'river': 'river of {city}'}}",
    )
    answer = action("expert", "The result names it.", "FINAL", f"The river of {city}.", "Done!")
    executed = [
        {**(right if task % 2 else wrong), "alternate_trace": [wrong if task % 2 else right]},
        *([] if task % 2 else [{**right, "alternate_trace": []}]),
        {**answer, "alternate_trace": []},
    ]
    interactions = {}
    for number, step in enumerate(executed):
        interactions[str(number)] = {"input": list(there), **step}
        role = "observation" if "Successful" in step["metadata"]["observation"] else "user"
        there += [step["output"], {"role": role, "content": step["metadata"]["observation"]}]
    trajectory = {
        "system": "You answer step by step.",
        "tools": json.dumps(tools),
        "interactions": interactions,
        "tool_availability_policy": "both_api_rag",
        "tool_usage_policy": "",
    }
    help_given = {
        "mode": "informed", "init_limit": 2, "recent_limit": -2, "random_epsilon": 1.0,
        "tracker": [int(step["actor"] == "expert") for step in executed],
    }  # fmt: skip
    facts = {
        "sample_id": f"river-{task}", "truncated": False, "terminated": True, "success": True,
        "total_time_steps": len(executed), "expert_assistance": help_given,
    }  # fmt: skip
    return trajectory, facts


def m3(folder: Path) -> None:
    run_folder = folder / "m3" / "run"
    (run_folder / "trajectories").mkdir(parents=True, exist_ok=True)
    for task in range(6):
        trajectory, facts = m3_run(task)
        path = run_folder / "trajectories" / f"trajectory_{task}.json"
        path.write_text(json.dumps(trajectory, indent=1), encoding="utf-8")
        (run_folder / f"metadata_{task}.json").write_text(json.dumps(facts), encoding="utf-8")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    chats(folder)
    m3(folder)
    print(f"runs written to {folder}")


if __name__ == "__main__":
    main()
