"""The page of the scorers. Its example is run whenever the page is made."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterator, Sequence

from adp.eval.scorer import SCORERS, Item, Score, ScorerKind
from adp_schema.model import Observation, Step, Task, ToolCall, Trajectory
from tools.markdown import NOTE, table
from tools.ops_page import plain, type_words

NAMES = (
    "outcome",
    "answer",
    "tool_f1",
    "trajectory_match",
    "planning",
    "capability",
    "schema_validity",
    "format",
    "execution",
    "conciseness",
    "efficiency",
    "tool_productivity",
    "et_agent",
    "reasoning_length",
    "judge",
    "agent_training",
    "agent_reward",
    "tool_verifier",
    "plan_evaluator",
)
"""Scorers of this page, in its order."""

OTHER_PAGES = {"bfcl": "bfcl.md", "m3": "experts.md#m3s-report-the-scorer-m3"}
"""Scorers of single benchmarks, and the pages that they are on."""

_INTRO = """
A scorer looks at one trajectory and its task and gives numbers. It changes nothing, asks no model
(unless it is a judge), and gives the same numbers every time.

    adp score my_store --with outcome,execution,tool_f1:arguments=superset
    adp score my_store --with "judge:policy='openai:model=gpt-4o',votes=3"
    adp score my_store --with trajectory_match --reference gold_store

Settings stand behind the name, as `name:key=value,key=value`; a value with commas stands in
brackets or quotes.

**Unscored is not 0.** Where a number makes no sense, it is missing and says why: no reference
answer, no call, no recorded result. A run that broke without the agent's fault (its column
`error_type` is `infrastructure`, `environment` or `policy`) is unscored by every scorer, and
counted apart; so is what a judge did not answer.

**What is right** comes from the task: `answers`, `expected_calls`, `gold_trajectory`; with
`--reference STORE`, from the runs of another store. Expected calls may be
`{"name": ..., "arguments": {...}}` (also `parameters`, `args`, `kwargs`, `input`, or JSON text),
OpenAI's `{"function": {...}}`, BFCL's `{name: {parameter: [allowed, ...]}}`, or a name alone; lists
may be nested by turns.

**What is correct**, for scorers that put it in proportion to something, is whether the task was
solved: the column `success`; where that is null, a reward within 1e-6 of 1. The setting `correct`
takes another measure. Scores say in `from` which it was.

**Calls** are those of the agent, in order. Left out are calls of the user, messages written as
calls, and steps that only repeat earlier context. A result belongs to the call that it names, or
to the only call of its step; a message of the environment right behind the step counts as well.
Where an expert acted beside the agent, its calls are among them, and `actor=agent` leaves them out.

## From scores to figures

A figure is a mean over trajectories with an interval, unless it says otherwise. Names with a colon
are about the whole corpus: `execution_success:calls` is the share of all calls, so that a run with
ten calls counts ten times as much as a run with one.

- **Intervals** (95 %): attempts at one task are not independent. With one attempt a task and values
  of 0 and 1 it is Wilson's. Otherwise the standard error is clustered by task, as Inspect AI and
  Miller 2024 compute it: `sqrt(C/(C-1) * sum_c (sum_i (x_i - mean))^2) / N` for C tasks and N runs,
  with Student's quantile for C-1 degrees of freedom (Cameron and Miller 2015). An amount has its
  mean plus and minus that (`cluster`). A share has Wilson's interval with the effective number of
  runs, `p (1 - p) / error^2` (`wilson-cluster`): near 0 and 1 the symmetrical interval holds the
  truth too seldom, and ends beyond 1. Of 2,000 made-up data sets with four attempts at each task,
  the interval holds the true mean in so many:

  | true mean | tasks | correlation of attempts | wilson-cluster | symmetrical |
  |---|---|---|---|---|
  | 0.97 | 30 | 0 | 97.7 % | 87.2 % |
  | 0.97 | 30 | 0.3 | 97.3 % | 76.7 % |
  | 0.97 | 100 | 0 | 96.4 % | 95.3 % |
  | 0.97 | 100 | 0.1 | 94.4 % | 92.2 % |
  | 0.97 | 100 | 0.3 | 92.8 % | 90.3 % |
  | 0.5 | 5 | 0.2 | 97.8 % | |
  | 0.5 | 10 | 0.2 | 95.6 % | |
  | 0.5 | 30 | 0.2 | 95.6 % | |

  A data set without any failure counts as a miss of the symmetrical interval, which has no width
  there. With few tasks of which a few nearly always fail (a true mean of 0.95, 30 tasks, a
  correlation of 0.6, 16 attempts) it is 86 %: what was never drawn, no interval knows. When all
  tasks agree (0 of 200), Wilson's interval over the number of tasks stands in for an empty one; an
  amount, or a difference, then has none, and the note says so. Success and pass@1 of one run have
  one interval where all tasks have equally many attempts; where they do not, success counts runs
  and pass@1 tasks. In Python there is a bootstrap over tasks as well.
- **A task** is its data set and its id: "1" of one data set is not "1" of another, and files whose
  ids mean different things belong in data sets of their own. For rollouts the data set is what the
  task says, not the name of the run; where the task says none, its environment and a hash of its
  words tell it from others. Between stores, and for `--tasks` and `--reference`, tasks of data sets
  that the other side does not have are the same when id and words are; the id alone is enough
  where words are missing and one side names no data set. A task that could be two is none of them.
- **pass@k** is the chance that one of k attempts succeeds, `1 - C(n-c,k)/C(n,k)` (Chen et al.
  2021); **pass^k** that all of k do, `C(c,k)/C(n,k)` (Yao et al. 2024). With fewer than k attempts
  at a task they are undefined and say so.
- **Two runs** over the same tasks are compared by the difference within each task, with the same
  interval, an exact sign test and a sign-flip permutation test.

In Python:

    from adp.eval.metrics import Intervals, mean_figures, paired_difference, pass_figures

    mean_figures(rows, ["success"], Intervals(method="bootstrap", seed=1))
    paired_difference(rows_before, rows_after, "success").p_permutation
""".strip()


def scorers_page() -> str:
    """One section a scorer: its definition, its settings, and what it says about an example."""
    kinds = [SCORERS.get(name) for name in NAMES]
    lines = ["# Scorers", "", NOTE, "", *_INTRO.splitlines(), "", "## All scorers", ""]
    lines += table(
        ["scorer", "what it measures"],
        [[f"[{kind.name}](#{kind.name})", kind.about] for kind in kinds]
        + [[f"[{name}]({page})", SCORERS.get(name).about] for name, page in OTHER_PAGES.items()],
    )
    lines += ["", *_example(), ""]
    for kind in kinds:
        lines += [
            f"## {kind.name}",
            "",
            *_about(kind),
            "",
            *_settings(kind),
            "",
            *_scores(kind),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _about(kind: ScorerKind) -> list[str]:
    """The docstring of the scorer's module, with code names as Markdown."""
    module = importlib.import_module(SCORERS.target(kind.name).partition(":")[0])
    text = inspect.cleandoc(module.__doc__ or kind.about)
    return [re.sub(r"``([^`]+)``", r"`\1`", line) for line in text.splitlines()]


def _settings(kind: ScorerKind) -> list[str]:
    schema = kind.settings.model_json_schema()
    rows = []
    for name, info in kind.settings.model_fields.items():
        native = schema["properties"][name]
        value = info.get_default(call_default_factory=True)
        value = native.get("default", value)
        default = f"`{plain(value)}`" if not info.is_required() else "required"
        shown = type_words(native, schema.get("$defs", {}))
        rows.append([f"`{name}`", shown, default, info.description or ""])
    if not rows:
        return ["It has no settings."]
    return table(["setting", "type", "default", "meaning"], rows)


# ---- the example ---------------------------------------------------------------------------


def _item() -> Item:
    """A run that asks once too often and with a wrong argument, and is right in the end."""
    weather = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "day": {"type": "integer"}},
        "required": ["city"],
    }
    steps = [
        Step(source="user", kind="message", text="Will it rain in Leiden on day 3?"),
        _turn({"city": "Leiden", "day": "3"}, "Error: day is not an integer", failed=True),
        _turn({"city": "Leiden", "day": 3}, "Thunderstorm, 21 millimetres"),
        _turn({"city": "Leiden", "day": 3}, "Thunderstorm, 21 millimetres"),
        Step(source="agent", kind="llm_turn", text="Yes, there will be a thunderstorm."),
    ]
    task = Task(
        task_id="leiden",
        instruction="Will it rain in Leiden on day 3?",
        answers='["yes", "a thunderstorm"]',
        expected_calls='[{"name": "weather", "arguments": {"city": "Leiden", "day": 3}}]',
        extra='{"capability": "tool_use"}',
    )
    tools = [{"type": "function", "function": {"name": "weather", "parameters": weather}}]
    run = Trajectory(
        trajectory_id="example/leiden",
        task_id="leiden",
        tools=json.dumps(tools),
        success=True,
        terminated=True,
        truncated=False,
        final_answer="Yes, a thunderstorm",
        steps=steps,
    )
    return Item(run, task)


def _turn(arguments: dict[str, object], result: str, *, failed: bool = False) -> Step:
    call = ToolCall(call=0, name="weather", arguments=json.dumps(arguments))
    kind = "invalid_args" if failed else None
    answer = Observation(call=0, text=result, is_error=failed, error_type=kind)
    return Step(source="agent", kind="llm_turn", calls=[call], observations=[answer])


def _example() -> Iterator[str]:
    """The example, as the sections below score it."""
    item = _item()
    yield "## The example below"
    yield ""
    yield "Each scorer says with its default settings what it makes of this run; the task expects"
    yield f"`{item.task.expected_calls if item.task else ''}` and one of"
    yield f"`{item.task.answers if item.task else ''}`, and is about the capability `tool_use`:"
    yield ""
    for step in item.trajectory.steps:
        if step.text:
            yield f"    {step.source}: {step.text}"
        for call in step.calls:
            yield f"    agent: {call.name}({call.arguments})"
        for result in step.observations:
            yield f"    result: {result.text}"
    yield f"    final answer: {item.trajectory.final_answer} (success)"


def _scores(kind: ScorerKind) -> list[str]:
    """What a scorer says about the example, and why it may say nothing."""
    scores: Sequence[Score] = kind.make(kind.settings()).score(_item())
    rows = []
    for score in scores:
        value = f"{score.value:.4g}" if score.value is not None else f"unscored: {score.reason}"
        rows.append([f"`{score.metric}`", value])
    return ["The example:", "", *table(["metric", "value"], rows)]
