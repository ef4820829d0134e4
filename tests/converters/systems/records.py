"""Records as the code of the systems writes them, made by its rules and not by our writers."""

from __future__ import annotations

import json
from typing import Any

PROMPT = "Solve it step by step. Use <search> and <python>; put the answer between <answer> tags."


def rollout(thought: str, calls: list[tuple[str, str, str]], answer: str | None) -> str:
    """A text of ET-Agent: thoughts, calls with what came back, and the answer in a box."""
    text = ""
    for tag, words, result in calls:
        text += f"<think>{thought}</think> <{tag}>{words}</{tag}> <result>\n{result}\n</result>\n"
    if answer is None:
        return text + "<think>out of time"
    return f"{text}<think>Now I know.</think> <answer>It is \\[ \\boxed{{{answer}}} \\].</answer>"


RIVER = rollout(
    "Where does it rise?",
    [("search", "source of the river Maas", "Plateau of Langres, France")],
    "France",
)
RIVER_TWICE = rollout(
    "Look twice.",
    [
        ("search", "river Maas", "A river of 925 km"),
        ("search", "Maas source country", "It rises in France"),
    ],
    "Belgium",
)
ROOT = rollout("Compute.", [("python", "print(12 ** 2)", "144")], "144")
CUT = rollout("Try.", [("python", "1 / 0", "ZeroDivisionError: error")], None)


def et_rollouts() -> list[dict[str, Any]]:
    """What ``direct_rollout`` saves, and what it saves after a time-out."""
    counts = [(1, 0), (2, 0)]
    river = {
        "instruction": PROMPT,
        "input": "In which country does the river Maas rise?",
        "answer": ["France", "French Republic"],
        "source": "hotpotqa",
        "rollout_outputs": [RIVER, RIVER_TWICE],
        "predictions": ["France", "Belgium"],
        "tool_counts": [
            {"search_times": s, "python_times": p, "total_times": s + p} for s, p in counts
        ],
    }
    scored = {**river, "correctness": [1.0, 0], "score_tool": 0.25, "score_corr": 0.25, "rank": 0}
    late = {
        "instruction": PROMPT,
        "input": "What is 12 squared?",
        "answer": "144",
        "source": "aime",
        "rollout_outputs": [],
        "predictions": [],
        "tool_counts": [],
    }
    odd = {**late, "rollout_outputs": [ROOT, None, CUT], "predictions": ["144", None, ""],
           "tool_counts": [], "note": "é \U0001f600"}  # fmt: skip
    return [river, scored, late, odd]


def et_flywheel() -> list[dict[str, Any]]:
    """What the flywheel saves: evolved, and failed."""
    evolved = {
        "instruction": PROMPT,
        "input": "In which country does the river Maas rise?",
        "initial_output": RIVER_TWICE,
        "prediction": "Belgium",
        "answer": ["France"],
        "source": "musique",
        "initial_logs": [RIVER_TWICE[:40], RIVER_TWICE[40:]] * 20,
        "evolve_trajectories_buffer": [RIVER_TWICE, RIVER, CUT],
        "evolve_trajectories_llm_judge_results": [False, True, False],
        "evolve_judgements": ["Incorrect", "Correct"],
        "evolve_predictions": ["Belgium", "France", ""],
    }
    failed = {
        **evolved,
        "initial_output": "Error: timeout\n[Timeout (exceeding 120s)]",
        "prediction": "Timeout",
        "initial_logs": [],
        "evolve_trajectories_buffer": [],
        "evolve_trajectories_llm_judge_results": [],
        "evolve_judgements": [],
        "evolve_predictions": [],
    }
    return [evolved, failed, {**evolved, "initial_output": "another one", "prediction": None}]


def et_results() -> list[dict[str, Any]]:
    """What the evaluation saves, before and after it is scored, and what it reads at least."""
    run = {
        "instruction": PROMPT,
        "input": "What is 12 squared?",
        "output": ROOT,
        "prediction": "144",
        "answer": "144",
        "choice": None,
        "format": None,
        "logs": [ROOT],
        "search_query_history": [],
    }
    metrics = {
        "is_valid_answer": True,
        "python_calls": 1,
        "search_calls": 0,
        "tools_used": "python",
        "tool_counts": 1,
        "output_length": 90,
        "em": 1,
        "acc": 1,
        "f1": 1.0,
        "math_equal": 1,
        "llm_equal": 1,
        "llm_response": "Correct",
    }
    least = {"input": "Which?", "answer": ["a", "b"], "output": RIVER, "prediction": ""}
    return [run, {**run, "metrics": metrics}, least]


# ---- SAGE --------------------------------------------------------------------------------------


def sage_step(number: int, action: str, values: Any, observation: str, **more: Any) -> Any:
    """``TrajectoryStep.to_dict``."""
    return {
        "step_id": number,
        "thought": f"I should use {action}.",
        "action": action,
        "action_input": values,
        "observation": observation,
        "reward": 1.5,
        "timestamp": f"2025-12-01T10:00:0{number}.123456",
        "metadata": {},
        **more,
    }


def sage_trajectories() -> list[dict[str, Any]]:
    """``AgentTrajectory.to_dict``: a run with an answer, one that failed, and sparse ones."""
    steps = [
        sage_step(0, "weather_query_001", {"city": "Ghent", "days": 2.50}, "Rain, then sun."),
        sage_step(1, "calculator_002", {"expression": "1/0"},
                  "Error executing calculator_002: division by zero", reward=-1.0),
        sage_step(2, "finish", {"answer": "Take an umbrella."}, "Done.", metadata={"tokens": 12}),
    ]  # fmt: skip
    run = {
        "trajectory_id": "traj_000001",
        "task_id": "task_1",
        "instruction": "Do I need an umbrella in Ghent?",
        "steps": steps,
        "success": True,
        "total_reward": 2.0,
        "start_time": "2025-12-01T10:00:00.000001",
        "end_time": "2025-12-01T10:00:09",
        "available_tools": ["weather_query_001", "calculator_002"],
        "ground_truth": {
            "expected_tools": ["weather_query_001"],
            "expected_args": {"weather_query_001": {"city": "Ghent"}},
        },
        "metadata": {},
    }
    failed = {
        **run,
        "trajectory_id": "traj_000002",
        "steps": [
            sage_step(0, "error", {}, "no such agent", thought="Collection failed", reward=-1.0)
        ],
        "success": False,
        "total_reward": -1.0,
        "ground_truth": None,
        "metadata": {"error": "no such agent"},
    }
    sparse = {
        "trajectory_id": "traj_3",
        "instruction": "Nothing",
        "steps": [{"action": "f", "action_input": "x", "observation": ""},
                  {"action_input": {}, "action": None, "metadata": None, "step_id": 7}],
        "available_tools": [],
        "metadata": None,
    }  # fmt: skip
    return [run, failed, sparse]


def sage_dialogs() -> list[dict[str, Any]]:
    """Dialogs as the generator of isage-data makes them, and one with several results in a row."""
    done = json.dumps({"status": "success", "value": 123.45})
    turns = [
        {"role": "user", "content": "I need a report"},
        {"role": "assistant", "content": "I'll invoke web_scraper_010 for you."},
        {"role": "tool", "tool_id": "web_scraper_010",
         "content": "Tool web_scraper_010 executed successfully", "result": done},
        {"role": "assistant", "content": "Here it is."},
    ]  # fmt: skip
    dialog = {
        "dialog_id": "sft_000001",
        "goal": "Write a report",
        "turns": turns,
        "target_tools": ["web_scraper_010"],
        "metadata": {"difficulty": "hard", "source": "synthetic-v1", "num_turns": 4},
        "split": "train",
    }
    several = [
        {"role": "tool", "tool_id": "early_001", "content": "before all"},
        turns[0],
        turns[1],
        turns[2],
        {"role": "tool", "content": None, "tool_id": "mailer_002", "result": {"sent": 2}},
        {"content": "odd order", "role": "user", "tool_id": None, "result": None},
        {"role": "critic", "content": "well done"},
        {"role": "tool", "tool_id": "late_003", "content": "nobody asked", "result": "no JSON {"},
    ]
    return [dialog, {**dialog, "dialog_id": "sft_000002", "turns": several}]


# ---- Tiny Tool Use -----------------------------------------------------------------------------


def tiny_rows() -> list[dict[str, Any]]:
    """What the generator makes: templates, teacher mode; a chat template; the older key."""
    call = json.dumps({"name": "calculator", "parameters": {"expression": "2 + 3"}})
    result = json.dumps({"result": 5})
    template = (
        "Human: Compute 2 + 3\nAssistant: I'll help you with that. Let me use the calculator "
        f"function.\n\n[TOOL_CALL]{call}[/TOOL_CALL]\n\n{result}\n\n"
        "Based on the result, the answer is 5."
    )
    chat = (
        "<|im_start|>system\nUse tools.<|im_end|>\n<|im_start|>user\n2 + 3?<|im_end|>\n"
        f"<|im_start|>assistant\n[TOOL_CALL]{call}[/TOOL_CALL]<|im_end|>\n"
        f"<|im_start|>tool\n{result}<|im_end|>\n<|im_start|>assistant\n5<|im_end|>\n"
    )
    return [
        {"text": template, "tool_name": "calculator"},
        {"text": f"Human: What's 2 + 3?\nAssistant: {call}\n", "tool_name": "calculator"},
        {"text": chat, "tool_name": "calculator"},
        {"tool_name": "search", "conversation": "Human: Please look\nAssistant: {}\n"},
        {"text": f"[TOOL_CALL]{call}[/TOOL_CALL]"},
    ]


# ---- Alpaca ------------------------------------------------------------------------------------


def alpaca_rows() -> list[dict[str, Any]]:
    """Rows of ET-Agent, of SAGE's converter, and of LLaMA-Factory."""
    first = sage_trajectories()[0]
    steps = []
    for step in first["steps"]:
        call = json.dumps(step["action_input"], ensure_ascii=False)
        steps += [f"Thought: {step['thought']}",
                  f'<tool_call>\n{{"name": "{step["action"]}", "arguments": {call}}}\n</tool_call>',
                  f"Observation: {step['observation']}"]  # fmt: skip
    about = {key: first[key] for key in ("trajectory_id", "task_id", "success", "total_reward")}
    return [
        {"instruction": PROMPT, "input": "What is 12 squared?", "output": ROOT},
        {"instruction": first["instruction"], "output": "\n\n".join(steps), "metadata": about,
         "input": f"Available tools: {', '.join(first['available_tools'])}"},
        {"instruction": "Go on", "input": "", "output": "Yes.", "system": "Be short.",
         "history": [["Shall I?", "Do."], ["Now?", "Now."]]},
        {"output": "alone", "instruction": "Say it", "id": 3},
        {"instruction": None, "input": "only input", "output": ""},
        {"instruction": "odd history", "input": None, "output": "x", "history": [["a"], 1]},
        {"instruction": "none before", "output": "x", "history": []},
    ]  # fmt: skip


RECORDS = {
    "alpaca_rows": alpaca_rows,
    "et_agent_rollouts": et_rollouts,
    "et_agent_flywheel": et_flywheel,
    "et_agent_results": et_results,
    "sage_trajectories": sage_trajectories,
    "sage_dialogs": sage_dialogs,
    "tiny_tool_use": tiny_rows,
}
