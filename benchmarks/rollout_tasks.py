"""What bench_rollout.py runs in processes of their own: ``python rollout_tasks.py TASK '{...}'``.

Both sides run the same loop: so many calls of ``add``, then the answer, which is compared with the
task's. Models answer at once. Each task prints one line of JSON: seconds of the work alone, and
what came out. The task ``inspect`` runs with another Python that has inspect-ai, and nothing of
adp.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tasks import work

NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}


def ours(out: str, episodes: int, turns: int, concurrency: int) -> dict[str, Any]:
    """`adp.rollouts.collecting.collect`, with its growing store, from nothing to a sealed store."""
    from adp.rollouts.collecting.collect import alone, collect_now
    from adp.rollouts.collecting.settings import CollectSettings
    from adp.rollouts.environment import Verdict
    from adp.rollouts.policies.scripted import Scripted
    from adp.rollouts.tool_environment import ToolEnvironment
    from adp.rollouts.tools import FunctionTool
    from adp.rollouts.turns import Call, Turn, Usage
    from adp_schema.model import Task

    parameters = {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}
    add = FunctionTool("add", "Add two numbers.", parameters, lambda a, b: a + b)

    class Adder(ToolEnvironment):
        def offered(self) -> Any:
            return [add]

        def score(self, trajectory: Any) -> Verdict:
            return Verdict(success=trajectory.final_answer == "5")

    usage = Usage(tokens_in=100, tokens_out=20)

    def script(request: Any) -> Turn:
        if request.turn < turns - 1:
            return Turn(calls=(Call("add", '{"a": 2, "b": 3}'),), usage=usage)
        return Turn(text="5", usage=usage)

    tasks = [Task(task_id=f"t{k}", instruction="What is 2 + 3?") for k in range(episodes)]
    settings = CollectSettings(concurrency=concurrency, limits={"max_turns": turns})
    warm = CollectSettings(concurrency=1)
    collect_now(f"{out}/warm", Adder, alone(Scripted([Turn(text="5")])), tasks[:2], warm)
    answer: dict[str, Any] = {}
    with work(answer):
        report = collect_now(f"{out}/store", Adder, alone(Scripted(script)), tasks, settings)
    assert report.now.tokens_out == episodes * turns * 20
    return answer | {"episodes": report.done_now, "right": report.now.succeeded}


def inspect(out: str, episodes: int, turns: int, concurrency: int) -> dict[str, Any]:
    """Inspect's own tool loop with its mock model, from nothing to a written log."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import exact
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import tool

    @tool
    def add() -> Any:
        async def execute(a: int, b: int) -> int:
            """Add two numbers.

            Args:
                a: the first.
                b: the second.
            """
            return a + b

        return execute

    def answered(messages: Any, *rest: Any) -> Any:
        if sum(message.role == "assistant" for message in messages) < turns - 1:
            for_tool_call = ModelOutput.for_tool_call("mockllm", "add", {"a": 2, "b": 3})
        else:
            for_tool_call = ModelOutput.from_content("mockllm", "5")
        # Without it Inspect counts tokens by itself.
        for_tool_call.usage = ModelUsage(input_tokens=100, output_tokens=20, total_tokens=120)
        return for_tool_call

    def once(count: int, place: str) -> Any:
        samples = [Sample(id=f"t{k}", input="What is 2 + 3?", target="5") for k in range(count)]
        task = Task(dataset=samples, solver=[use_tools(add()), generate()], scorer=exact())
        config = GenerateConfig(max_connections=concurrency)
        model = get_model("mockllm/model", custom_outputs=answered, config=config, memoize=False)
        return evaluate(
            task, model=model, log_dir=place, max_samples=concurrency, display="none",
            log_samples=True, score_display=False,
        )[0]  # fmt: skip

    once(2, f"{out}/warm")
    answer: dict[str, Any] = {}
    with work(answer):
        log = once(episodes, f"{out}/logs")
    assert log.status == "success", log.error
    assert all(len(sample.messages) == 2 * turns for sample in log.samples)
    right = round(log.results.scores[0].metrics["mean"].value * log.results.completed_samples)
    return answer | {"episodes": log.results.completed_samples, "right": right}


if __name__ == "__main__":
    print(json.dumps({"ours": ours, "inspect": inspect}[sys.argv[1]](**json.loads(sys.argv[2]))))
