"""Traps of published data sets, six to ten: order, outcomes, names, ids and pictures."""

from __future__ import annotations

import json

import pytest

from tests.converters.datasets.stores import arguments, store_of, table
from tests.converters.datasets.trap_rows import SAMPLES, chat, linked, turns_of

ACTION = "<function=bash>\n<parameter=command>ls</parameter>\n</function>"


def test_6_several_turns_of_the_agent_in_a_row(tmp_path):
    click = "Action: click(start_box='<|box_start|>({},30)<|box_end|>')"
    rows = [
        {"role": "system", "content": "You are a helpful assistant.", "loss_mask": 0},
        {
            "role": "user",
            "content": "You are a GUI agent. You are given a task and your action history.",
            "loss_mask": 0,
        },
        *({"role": "assistant", "content": click.format(n), "loss_mask": 0} for n in (1, 2, 3)),
        {
            "role": "user",
            "content": "<|vision_start|><|image_pad|>...<|vision_end|>",
            "loss_mask": 0,
        },
        {"role": "assistant", "content": click.format(4), "loss_mask": 1},
    ]
    store = store_of(tmp_path, rows, "training_example.json")
    agent = [step for step in table(store, "steps") if step["source"] == "agent"]
    assert [step["loss_weight"] for step in agent] == [0.0, 0.0, 0.0, 1.0]
    assert len({call["step"] for call in table(store, "tool_calls")}) == 4
    assert [it["call_step"] for it in table(store, "observations")] == [agent[2]["step"]]


def test_6_texts_and_calls_in_messages_of_their_own(tmp_path):
    """Toucan: the words, each call and each result are messages; results come in order."""
    call = {"role": "assistant", "content": ""}
    turns = [
        {"role": "user", "content": "Two tides?"},
        {"role": "assistant", "content": "I ask twice."},
        {**call, "function_call": {"name": "tide", "arguments": '{"place": "Oban"}'}},
        {**call, "function_call": {"name": "tide", "arguments": '{"place": "Mallaig"}'}},
        {"role": "function", "content": "nine"},
        {"role": "function", "content": "ten"},
    ]
    row = {"uuid": "u", "subset_name": "s", "question": "q", "available_tools": "[]"}
    store = store_of(tmp_path, [{**row, "messages": json.dumps(turns)}])
    assert [step["source"] for step in table(store, "steps")] == ["user", "agent"]
    places = [arguments(call)["place"] for call in table(store, "tool_calls")]
    results = {it["call"]: it["text"] for it in table(store, "observations")}
    assert (places, results) == (["Oban", "Mallaig"], {0: "nine", 1: "ten"})


FIRST = {
    "environment": "ic_bash",
    "dataset": "d",
    "task_id": 1,
    "query": "List.",
    "info": {},
    "turn_history": {
        "actions": ["ls", "cat a"],
        "observations": ["a", "x"],
        "rewards": [1.0, 0.2],
        "valid_action": [True, True],
    },
    "summary": {"max_reward": 1.0, "max_reward_idx": 0, "turns_taken": 2, "turns_max": 10},
}
JUDGED = (
    "## Documentation\ntide: d\nParameters: {}\n\n## Task Instruction\n"
    "Tide?\n\n## Standard Answer\n\n"
    "## AI Assistant's Solution\n1. Function: tide\nParameters: {}\nRetruns: nine\n\n## Analysis"
)
OUTCOMES = {
    "best step": ([{"0": FIRST}], True, 1.0),
    "words": (
        [
            {
                "messages": chat(
                    "Q?",
                    "Thought: t\nAction: finish[x]",
                    "Observation: Episode finished, reward = False",
                )
            }
        ],
        False,
        None,
    ),
    "verdicts": (
        [
            {
                "API": [
                    {
                        "id": 0,
                        "input": [{"role": "user", "content": JUDGED}],
                        "output": "o",
                        "process_correctness": "Yes",
                        "final_response_correctness": "Uncertain",
                    }
                ]
            }
        ],
        None,
        None,
    ),
    "is_successful": (
        [
            {
                "goal": "g",
                "is_successful": True,
                "steps": [
                    {"action_content": {"action": "wait", "time": 2}, "screenshot": "/i.png"}
                ],
            }
        ],
        True,
        None,
    ),
    "reward": (
        [
            {
                "id": 1,
                "conversations": turns_of(
                    "You are web shopping.",
                    "OK",
                    "WebShop [SEP] Search",
                    "Thought: t\nAction: search[x]",
                ),
                "reward": 0.75,
                "source": "human",
            }
        ],
        None,
        0.75,
    ),
    "gold answer": ([{**SAMPLES["webdancer"], "answer": [["5"]]}], None, None),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_7_what_is_an_outcome_and_what_is_not(tmp_path, name):
    rows, success, reward = OUTCOMES[name]
    (run,) = table(store_of(tmp_path, rows), "trajectories")
    assert (run["success"], run["reward"]) == (success, reward)


def test_7_giving_an_answer_is_no_success(tmp_path):
    def node(kind, words, *children):
        return {
            "is_terminal": False,
            "pruned": False,
            "finished": False,
            "depth": 0,
            "node_type": kind,
            "description": words,
            "Elo": 1000.0,
            "child_count": len(children),
            "expand_num": 1,
            "io_state": {},
            "children": list(children),
        }

    end = node("Action Input", '{"return_type": "give_answer", "final_answer": "x"}')
    tree = node("Action Input", "", node("Action", "Finish", end))
    answer = {
        "valid_data": False,
        "query": "q",
        "final_answer": "x",
        "finish_type": "give_answer",
        "function": [],
        "chain": [],
        "train_messages": [],
    }
    row = {"win": False, "tree": {"tree": tree}, "forward_args": {}, "compare_candidates": []}
    store = store_of(tmp_path, [{**row, "answer_generation": answer}])
    assert [run["success"] for run in table(store, "trajectories")] == [False]


NAMES = ["User Feed (Video Posts) V2", "Market Trends API", "weather.forecast", "get/boats"]


@pytest.mark.parametrize("name", NAMES)
def test_8_names_of_tools_with_any_sign(tmp_path, name):
    tools = json.dumps(
        [
            {"name": it, "description": "d", "parameters": {"type": "dict", "properties": {}}}
            for it in NAMES
        ]
    )
    system = (
        f"You are an expert in composing functions. Functions that you can invoke:\n"
        f"{tools}. \nShould you decide"
    )
    turns = [
        {"from": "user", "value": "Do it."},
        {"from": "assistant", "value": f'[{name}(place="a, (b)", n=2)]'},
    ]
    (call,) = table(store_of(tmp_path, [{"system": system, "conversations": turns}]), "tool_calls")
    assert (call["name"], arguments(call)) == (name, {"place": "a, (b)", "n": 2})


ROLES = {
    "User": "user",
    "AI": "agent",
    "ai": "agent",
    "agent": "agent",
    "developer": "system",
    "human": "user",
    "gpt": "agent",
}


@pytest.mark.parametrize("role", ROLES)
def test_8_roles_under_any_word(tmp_path, role):
    first, second = {"role": "user", "content": "Tide?"}, {"role": role, "content": "words"}
    turns = [
        first,
        second,
        {"role": "tool call", "content": {"name": "tide", "arguments": {}}},
        {"role": "tool response", "content": "nine"},
    ]
    row = {"conversation": json.dumps(turns), "tools": "[]"}
    store = store_of(tmp_path, [row])
    (step,) = (it for it in table(store, "steps") if it["text"] == "words")
    assert step["source"] == ROLES[role]
    assert ([it["name"] for it in table(store, "tool_calls")], linked(store)) == (["tide"], 1)


def test_8_results_of_an_environment(tmp_path):
    turns = [
        {"role": "user", "content": "Tide?"},
        {"role": "tool call", "content": {"name": "tide", "arguments": {}}},
        {"role": "environment", "content": "nine"},
    ]
    store = store_of(tmp_path, [{"conversation": json.dumps(turns), "tools": "[]"}])
    assert [it["text"] for it in table(store, "observations")] == ["nine"]


def step_row(number: int, **more: object) -> dict[str, object]:
    before = "".join(f"{n + 1}: click [{n}]\n" for n in range(number)) or "1: None\n"
    user = (
        f"OBSERVATION:\npage {number}\nURL: x\nOBJECTIVE: Find boats\nPREVIOUS ACTIONS:\n{before}"
    )
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": user},
        {
            "role": "assistant",
            "content": f"In summary, the next action I will perform is ```click [{number}]```",
        },
    ]
    return {"dataset": "d", "messages": messages, **more}


def test_9_the_suffix_of_an_id_is_the_step(tmp_path):
    rows = [step_row(n, id=f"t_{n}", task_name="t") for n in (3, 0)]
    (run,) = table(store_of(tmp_path, rows), "trajectories")
    assert run["source_id"] == "t"


def test_9_runs_that_share_an_id_stay_apart(tmp_path):
    rows = [
        {"instance_id": "same", "messages": chat("Fix it.", ACTION, "OBSERVATION:\n" + text)}
        for text in "abc"
    ]
    runs = table(store_of(tmp_path, rows), "trajectories")
    assert len({run["trajectory_id"] for run in runs}) == 3


@pytest.mark.parametrize("ids", [{}, {"id": 7}, {"id": None}])
def test_9_ids_may_be_numbers_or_missing(tmp_path, ids):
    row = {
        **ids,
        "conversations": turns_of(
            "You are web shopping.", "OK", "WebShop [SEP] Search", "Thought: t\nAction: search[x]"
        ),
    }
    (run,) = table(store_of(tmp_path, [{**row, "reward": 1.0, "source": "human"}]), "trajectories")
    assert run["source_id"] == (str(ids["id"]) if ids.get("id") else None)


@pytest.mark.parametrize("url", ["data:image/png;base64,{b64_img}", "{img}", "<|image_pad|>"])
def test_10_placeholders_are_no_pictures(tmp_path, url):
    rows = [
        {"role": "system", "content": "Imagine you are a robot browsing the web."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Observation: see."},
                {"type": "image_url", "image_url": {"url": url}},
            ],
        },
        {"role": "assistant", "content": "Thought: I click.\n\nAction: Click [3]"},
    ]
    store = store_of(tmp_path, rows, "taskBoats--1.json")
    assert not any(row.get("data") for row in table(store, "media"))
    assert [call["name"] for call in table(store, "tool_calls")] == ["Click"]
    assert [row["uri"] for row in table(store, "media")] == [url]
