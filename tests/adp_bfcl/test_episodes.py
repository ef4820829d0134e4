"""Episodes in the environment, their scores, and BFCL's files made of them."""

from __future__ import annotations

import asyncio
import json

import pytest

import adp
from adp.eval.scorer import SCORERS, Item, Scored
from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import ENVIRONMENTS
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Call, Turn
from adp_bfcl.environment import KIND, MORE_FUNCTIONS, Bfcl, BfclSettings
from adp_bfcl.figures import aggregate
from adp_bfcl.imported_results import trajectories_of
from adp_bfcl.loader import by_id, load
from adp_bfcl.results import write_results
from adp_bfcl.scorer import BfclScorer
from adp_bfcl.scores import judge_results, write_scores
from adp_bfcl.tasks import entry_from, task_of
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory
from adp_schema.store import Store
from tests.adp_bfcl.official import installed
from tests.adp_bfcl.samples import ANSWER, row, write


@pytest.fixture
def tasks(tmp_path):
    folder = write(
        tmp_path / "questions",
        "BFCL_v4_simple_python",
        [row(f"simple_python_{number}") for number in range(4)],
        answers={f"simple_python_{number}": ANSWER for number in range(4)},
    )
    write(folder, "BFCL_v4_irrelevance", [row(f"irrelevance_{number}") for number in range(3)])
    return [task_of(entry) for entry in load(("simple_python", "irrelevance"), folder).entries]


def play(task, script, attempt=0, settings=None):
    about = About("bfcl", attempt, task, policy="some/model", timed=False)
    actor = Alone(Scripted(script))
    return asyncio.run(run_episode(about, Bfcl(settings), actor, Limits(max_turns=300)))


def add(**arguments):
    return Turn(calls=(Call("maths_add", json.dumps(arguments)),))


def scored(trajectory):
    return {item.metric: item for item in BfclScorer().score(Item(trajectory, trajectory.task))}


def test_they_are_registered():
    assert ENVIRONMENTS.get("bfcl") is KIND
    assert SCORERS.get("bfcl").make(SCORERS.get("bfcl").settings()).name == "bfcl"


def test_a_call_is_judged_and_not_carried_out(tasks):
    right = play(tasks[0], [add(a=2, b=3)])
    wrong = play(tasks[0], [add(a=2, b=4)])
    assert (right.success, right.reward, wrong.success, wrong.reward) == (True, 1.0, False, 0.0)
    assert json.loads(wrong.judge)["error_type"] == "value_error:others"
    assert right.steps[-1].observations == []
    assert json.loads(right.tools)[0]["function"]["name"] == "maths_add"
    assert scored(right)["bfcl"].value == 1.0
    assert scored(wrong)["bfcl"].evidence["error_type"] == "value_error:others"


def test_the_agent_may_say_that_nothing_fits(tasks):
    malformed = Turn(text="<tool_call>{", malformed="no JSON")
    states = {}
    for name, turn in {
        "abstained": Turn(text="No."),
        "called": add(),
        "malformed": malformed,
    }.items():
        result = scored(play(tasks[-1], [turn]))
        states[name] = [
            result["bfcl"].value,
            result["bfcl_fixed"].value,
            result[f"bfcl_{name}"].value,
        ]
    assert states == {"abstained": [1, 1, 1], "called": [0, 0, 1], "malformed": [1, 0, 1]}


def test_what_cannot_be_scored_has_a_reason(tasks):
    def down(request):
        raise InfrastructureError("http_500", "the server failed")

    broken = scored(play(tasks[0], down))["bfcl"]
    assert (broken.value, broken.infrastructure) == (None, True)
    for trajectory in (Trajectory(), Trajectory(task_id="x", task=Task(task_id="x"), extra="{")):
        result = scored(trajectory)["bfcl"]
        assert result.value is None
        assert result.reason
    empty = scored(Trajectory(task=tasks[0]))["bfcl"]
    assert (empty.value, empty.reason) == (None, "the agent did not answer")
    with pytest.raises(UsageError, match="no entry of BFCL"):
        Bfcl().reset(Task(task_id="x", instruction="?"))


def test_figures_name_what_is_missing(tasks):
    rows = []
    for number, task in enumerate(tasks):
        trajectory = play(task, [add(a=2, b=3) if number % 2 == 0 else Turn(text="?")])
        for score in scored(trajectory).values():
            rows.append(Scored(trajectory.trajectory_id, task.task_id, 0, score))
    figures = {figure.name: figure for figure in BfclScorer().figures(rows)}
    assert figures["bfcl/simple_python"].value == 0.5
    assert figures["bfcl/simple_python"].low < 0.5 < figures["bfcl/simple_python"].high
    assert figures["bfcl/irrelevance"].value == pytest.approx(1 / 3)
    overall = figures["bfcl/v4 overall"]
    assert overall.value is None
    assert "multi_turn" in overall.reason
    assert "simple_python," not in overall.reason


def test_aggregation_of_version_4():
    everything = {"simple_python": 0.9, "simple_java": 0.6, "simple_javascript": 0.3}
    everything |= dict.fromkeys(("multiple", "parallel", "parallel_multiple"), 0.8)
    result = aggregate(everything, {})
    assert result["simple_ast"].value == pytest.approx(0.6)
    assert result["non_live"].value == pytest.approx(0.75)
    assert result["overall"].value is None
    zero = aggregate(everything, {}, missing_as_zero=True)
    assert zero["overall"].value == pytest.approx(0.075)
    live = {
        "live_simple": 1.0,
        "live_multiple": 0.0,
        "live_parallel": 0,
        "live_parallel_multiple": 0,
    }
    assert aggregate(live, {}, missing_as_zero=True)["live"].value == pytest.approx(258 / 1351)


def test_files_of_results_and_back(tasks, tmp_path):
    episodes = [play(task, [add(a=2, b=3)], attempt) for task in tasks for attempt in (1, 0)]
    files = write_results(episodes, tmp_path / "result").files
    names = {str(file.relative_to(tmp_path)): count for file, count in files.items()}
    assert names == {
        "result/some_model/non_live/BFCL_v4_simple_python_result.json": 4,
        "result/some_model/non_live/BFCL_v4_irrelevance_result.json": 3,
    }
    rows = [json.loads(line) for line in next(iter(files)).read_text().splitlines()]
    assert rows[0]["result"] == [{"maths_add": '{"a": 2, "b": 3}'}]
    entries = {task.task_id: entry_from(task) for task in tasks}
    report = judge_results(tmp_path / "result", entries)
    assert report.accuracy("some_model") == {"simple_python": 1.0, "irrelevance": 0.0}
    scores = write_scores(report, tmp_path / "score")
    (file,) = [file for file in scores if "irrelevance" in file.name]
    head, *failures = [json.loads(line) for line in file.read_text().splitlines()]
    assert head == {"accuracy": 0.0, "correct_count": 0, "total_count": 3}
    assert {failure["error_type"] for failure in failures} == {"irrelevance_error:decoder_success"}
    with Store.grow(tmp_path / "store") as store:
        for trajectory in trajectories_of(tmp_path / "result", entries):
            assert store.append(trajectory)
    back = Store.open(str(tmp_path / "store")).get("bfcl/some_model/simple_python_0")
    assert scored(back)["bfcl"].value == 1.0
    assert back.steps[-1].calls[0].name == "maths_add"


def test_files_that_others_wrote(tasks, tmp_path):
    folder = tmp_path / "result" / "m"
    folder.mkdir(parents=True)
    rows = ['{"id": "simple_0", "result": "[maths.add(a=2.0, b=3)]"}', "{", '{"id": 1}', "null"]
    rows += ['{"id": "simple_1", "result": "no"}', '{"id": "simple_9", "result": "[]"}']
    (folder / "BFCL_v3_simple_result.json").write_text("\n".join(rows))
    entries = {task.task_id: entry_from(task) for task in tasks}
    report = judge_results(tmp_path / "result", entries)
    verdicts = [item.verdict and item.verdict.error_type for item in report.judged]
    assert report.judged[0].verdict.valid
    assert verdicts[1:] == ["ast_decoder:decoder_failed", None]
    assert report.judged[2].reason
    assert [item.line for item in report.rejected] == [2, 3, 4]


def gold(request):
    """Makes the expected calls, one turn of the user after the other."""
    return _gold_turns(request.task)[request.turn]


def _gold_turns(task):
    calls = json.loads(task.expected_calls)
    turns = []
    for number in range(len(json.loads(task.turns))):
        of_turn = [call for call in calls if call["turn"] == number]
        if of_turn:
            made = (Call(call["name"], json.dumps(call["arguments"])) for call in of_turn)
            turns.append(Turn(calls=tuple(made)))
        turns.append(Turn(text="Done."))
    return turns


@installed
@pytest.mark.parametrize("kind", ["base", "miss_func", "miss_param", "long_context"])
def test_several_turns(kind, tmp_path):
    pytest.importorskip("mpmath")
    entries = [by_id()[f"multi_turn_{kind}_{number}"] for number in (0, 61, 103, 150)]
    for entry in entries:
        result = play(task_of(entry), gold)
        assert result.success is True, result.judge
        assert scored(result)["bfcl"].value == 1.0
        results = [observation for step in result.steps for observation in step.observations]
        assert results
        assert {item.error_type for item in results} == {None}
        users = [step for step in result.steps if step.source == "user"]
        assert len(users) == len(entry.question)
        if kind == "miss_func":
            (turn,) = entry.held_back
            assert users[turn].text == MORE_FUNCTIONS
            environment = Bfcl()
            environment.reset(task_of(entry))
            offered = {tool["function"]["name"] for tool in environment.tools()}
            assert not set(entry.held_back[turn]) & offered
        lazy = play(task_of(entry), [])
        assert json.loads(lazy.judge)["error_type"] == "multi_turn:empty_turn_model_response"
    assert list(write_results([result], tmp_path).files.values()) == [1]
    report = judge_results(tmp_path, by_id(), mode="fc")
    assert report.judged[0].verdict.valid


@installed
def test_the_expert_does_each_turn_of_the_user(tmp_path):
    pytest.importorskip("mpmath")
    names = [f"multi_turn_{kind}_{at}" for kind in ("base", "miss_func") for at in (0, 61, 150)]
    tasks = [task_of(by_id()[name]) for name in names]
    report = adp.collect("bfcl", "expert", tasks, str(tmp_path / "store"))
    assert (report.done_now, report.now.succeeded) == (6, 6)


@installed
def test_an_agent_that_never_stops_is_cut_and_judged():
    pytest.importorskip("mpmath")
    task = task_of(by_id()["multi_turn_base_0"])
    result = play(task, lambda request: Turn(calls=(Call("pwd", "{}"), Call("nothing", "{}"))))
    assert (result.truncated, result.stop_reason) == (True, "force_terminated")
    assert sum(step.source == "agent" for step in result.steps) == 21
    assert json.loads(result.judge)["error_type"] == "multi_turn:force_terminated"
    kinds = [observation.error_type for observation in result.steps[1].observations]
    assert kinds == [None, "unknown_tool"]
    broken = play(task, lambda request: Turn(calls=(Call("ls", "{"),)))
    assert broken.steps[1].observations[0].error_type == "parsing"
    assert json.loads(broken.judge)["error_type"] == "multi_turn:empty_turn_model_response"


@installed
def test_prompt_mode():
    settings = BfclSettings(mode="prompt")
    entry = by_id()["simple_python_0"]
    result = play(task_of(entry), [Turn(text="[x(")], settings=settings)
    assert result.steps[0].source == "system"
    assert "calculate_triangle_area" in result.steps[0].text
    assert result.tools is None
    assert json.loads(result.judge)["error_type"] == "ast_decoder:decoder_failed"
    pytest.importorskip("mpmath")
    turns = by_id()["multi_turn_base_0"]

    def script(request):
        texts = [f"[{', '.join(turn)}]" for turn in turns.answers]
        steps = [item for text in texts for item in (text, "Done.")]
        return Turn(text=steps[request.turn])

    result = play(task_of(turns), script, settings=settings)
    # The expected calls of this entry have arguments without a name, which prompt mode drops.
    assert json.loads(result.judge)["error_type"] == "multi_turn:execution_response_mismatch"


@installed
@pytest.mark.parametrize("name", ["base_0", "base_103", "long_context_61", "miss_func_150"])
def test_a_copy_goes_on_as_if_alone(name):
    """A copy midway ends like an episode from the start; what it does changes nothing else."""
    pytest.importorskip("mpmath")
    task = task_of(by_id()[f"multi_turn_{name}"])
    steps = _gold_turns(task)
    for cut in (1, len(steps) // 2, len(steps) - 1):
        plain, first = Bfcl(), Bfcl()
        plain.reset(task)
        first.reset(task)
        wanted = [plain.step(step) for step in steps]
        assert [first.step(step) for step in steps[:cut]] == wanted[:cut]
        copied, spoiled = first.fork(), first.fork()
        for tool in spoiled.tools()[:5]:
            spoiled.step(Turn(calls=(Call(tool["function"]["name"], "{}"),)))
        spoiled.step(Turn(calls=(Call("mkdir", '{"dir_name": "z"}'), Call("cd", "{}"))))
        assert [copied.step(step) for step in steps[cut:]] == wanted[cut:]
        assert [first.step(step) for step in steps[cut:]] == wanted[cut:]
        verdicts = [item.score(Trajectory()) for item in (plain, first, copied)]
        assert verdicts == [verdicts[0]] * 3
        assert verdicts[0].success is True
        assert copied._services.state().keys() == plain._services.state().keys()
        instances = {id(instance) for instance in copied._services.instances.values()}
        assert not instances & {id(instance) for instance in first._services.instances.values()}
        assert {id(method.__self__) for method in copied._services._methods.values()} == instances
