"""The columns of `measure`, by group, with what they mean."""

from __future__ import annotations

from collections.abc import Mapping

from adp.curation.ops.measure.cheats import SIGNS

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "sizes": {
        "tokens": "Tokens of all texts, reasoning, calls and results, without the list of tools.",
        "tokens_trained": "Tokens of what the agent wrote and is trained on: no copied context, "
        "no steps of weight 0.",
        "n_steps": "Steps that are words or acts, not events of the log.",
        "n_agent_steps": "Those of the agent.",
        "n_turns": "Turns of the user. Where the environment speaks as the user, one a result.",
        "n_calls": "Calls of the agent.",
        "n_observations": "Observations.",
    },
    "errors": {
        "known_results": "Results that are known to have failed or not.",
        "n_errors": "Results that failed.",
        "error_rate": "n_errors / known_results; null when no status is known.",
        "likely_errors": "Results without a recorded status whose text reads like a failure.",
    },
    "faults": {
        "infra_errors": "Failed results, likely ones included, that the surroundings are to blame "
        "for: connection, timeout, rate limit, server, disk, container, access.",
        "model_errors": "Those that the agent is to blame for: unknown tool, wrong arguments, "
        "syntax, wrong names, failed edits, code that raised.",
        "other_errors": "Those of which the text says neither.",
        "run_fault": "Who is to blame for the error that ended the run: infra, model or other; "
        "null when none ended it.",
    },
    "loops": {
        "longest_repeat": "Longest run of equal calls: 1 when none is repeated at once, 0 without "
        "calls.",
        "loops": "Stretches in which one to three calls are repeated loop_rounds times and more.",
        "repeated_calls": "Calls of loops after their first round.",
    },
    "retries": {
        "error_retry_cycles": "Failed calls with calls of the same tool behind them, each with the "
        "same or nearly the same arguments.",
        "longest_retry": "Calls of the longest such cycle.",
        "recovered_retries": "Cycles whose last call did not fail.",
    },
    "ends": {
        "run_truncated": "Whether a limit ended the run, or cut the agent's last step; null when "
        "nothing says so.",
        "cut_steps": "Steps of the agent that ended because they were too long.",
        "cut_results": "Results that are marked as cut, or whose text says so.",
        "empty_final": "Whether the agent's last step has neither text nor calls, or the final "
        "answer is empty; null when there is neither.",
    },
    "calls": {
        "malformed_calls": "Calls of tools whose arguments are no JSON object or do not fit the "
        "tool's schema, or that name no tool on offer.",
        "unknown_tool_calls": "Those that name no tool on offer.",
    },
    "usage": {
        "judged_results": "Results with a word that no earlier text has, and a later step.",
        "unused_results": "Those none of whose new words the agent takes up later.",
    },
    "cheats": {sign.column: sign.description for sign in SIGNS},
}
"""Group -> its columns. The group ``steps`` has the columns of steps."""

STEP_COLUMNS: Mapping[str, str] = {
    "is_error_step": "Whether a result of the step failed; null when no status is known. Only "
    "steps of the agent have a value.",
    "is_repeated": "Whether a call of the step belongs to a loop and is not in its first round.",
    "is_malformed": "Whether a call of the step is malformed.",
}

GROUPS = (*COLUMNS, "steps")
"""The groups, in the order of their columns."""
