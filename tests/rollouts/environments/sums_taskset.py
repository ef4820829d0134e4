"""The text of a small taskset of verifiers: sums, with a tool, a state, a stop and rewards."""

TASKSET = '''
import verifiers.v1 as vf


class SumData(vf.TaskData):
    a: int
    b: int


class SumState(vf.State):
    calls: int = 0


class Sums(vf.Toolset[vf.ToolsetConfig, SumState]):
    TOOL_PREFIX = "sums"

    @vf.tool
    async def add(self, a: int, b: int) -> int:
        """Adds two numbers."""
        self.state.calls += 1
        if a < 0:
            raise ValueError("no negative numbers")
        return a + b


class SumTask(vf.Task[SumData, SumState]):
    @classmethod
    def toolsets(cls, config):
        return [Sums(vf.ToolsetConfig())]

    @vf.stop
    async def too_many(self, trace: vf.Trace) -> bool:
        return trace.state.calls >= 3

    @vf.reward(weight=2.0)
    async def right(self, task, trace) -> float:
        return float(trace.last_reply == str(task.a + task.b))

    @vf.reward
    async def short(self, trace) -> dict:
        return {"turns": 1.0 / trace.num_turns}

    @vf.metric
    async def calls(self, trace) -> float:
        return float(trace.state.calls)


class SumTaskset(vf.Taskset[SumTask]):
    def load(self):
        for a, b in ((17, 25), (3, 4)):
            yield SumTask(
                SumData(id=f"{a}+{b}", a=a, b=b, prompt=f"{a} + {b}?", system_prompt="You add.")
            )


__all__ = ["SumTaskset"]
'''
