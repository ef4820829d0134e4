"""`adp collect` as a user calls it, with environments and policies that are built in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adp.cli.main import main
from adp_schema.store import Store

GOLD = Path(__file__).parents[2].parent / "shared" / "data" / "m3" / "bird-latest"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with tasks and a script."""
    monkeypatch.chdir(tmp_path)
    records = [
        {"id": "mul", "question": "What is 17 * 3?", "answer": "51"},
        {"id": "pow", "question": "What is 2 ** 10?", "answer": "1024"},
        {"question": ""},
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, records)))
    call = {"name": "calculator", "arguments": {"expression": "17 * 3"}}
    script = {"turns": [{"calls": [call]}, {"text": "51"}]}
    (tmp_path / "script.jsonl").write_text(json.dumps(script))
    return tmp_path


OPENAI = "openai:model=m,base_url=http://localhost:9/v1"
WORDS = ("collect", "--env", "calculator", "--policy", "scripted:file=script.jsonl",
         "--tasks", "tasks.jsonl", "-o", "sums")  # fmt: skip


def test_a_run_is_summed_up(run, here):
    done = run(*WORDS, "--n", 2)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == ("asked: 4 (2 tasks x 2) = 0 done before + 4 done now + 0 broken + 0 left")
    assert lines[1] == "success: 0.500 (2 of 4 scored)"
    assert lines[2] == "ended: 4 by themselves, 0 cut (answer 4)"
    assert lines[-1] == "sealed; next: adp stats sums"
    assert done.err.splitlines()[0] == "tasks.jsonl: 3 records = 2 tasks + 1 refused"
    assert "tasks.jsonl#3: it has no instruction" in done.err
    again = run(*WORDS, "--n", 2)
    assert "4 done before + 0 done now" in again.out
    rows = Store.open("sums").query("SELECT agent_name, extra FROM trajectories").to_pylist()
    assert {row["agent_name"] for row in rows} == {"scripted:script.jsonl"}
    assert {json.loads(row["extra"])["environment"] for row in rows} == {"calculator"}


LOUD = '''
import subprocess
print("imported")

class Loud:
    def act(self) -> str:
        """Prints."""
        print("called")
        subprocess.run(["echo", "child"])
        return "done"
'''


def test_what_the_code_of_users_prints_is_not_in_the_json(here, capfd):
    (here / "loud.py").write_text(LOUD)
    (here / "loud.script").write_text('{"turns": [{"calls": [{"name": "act"}]}, {"text": "x"}]}')
    (here / "tasks.jsonl").write_text('{"question": "Go on."}')
    words = ["--env", "loud.py:Loud", "--policy", "scripted:file=loud.script"]
    assert main(["collect", *words, "--tasks", "tasks.jsonl", "-o", "out", "--json"]) == 0
    readouterr = capfd.readouterr()
    assert json.loads(readouterr.out)["done_now"] == 1
    assert readouterr.err.split() == ["imported", "called", "child"]


def test_as_json_nothing_else_is_printed(run, here):
    (here / "tasks.jsonl").write_text('{"question": "What is 17 * 3?", "answer": "51"}')
    done = run(*WORDS, "--json")
    assert (done.code, done.err) == (0, "")
    report = json.loads(done.out)
    assert report["store"] == "sums"
    assert report["tasks"] == {"records": 1, "refused": 0, "reasons": []}
    assert report["asked"] == report["done_now"] == 1
    assert report["whole"]["success"] == {
        "rate": 1.0, "succeeded": 1, "scored": 1, "unscored": 0
    }  # fmt: skip


def test_the_script_that_a_store_was_begun_with_is_known_by_its_bytes(run, here):
    assert run(*WORDS, "--keep-open").code == 0
    path = here / "script.jsonl"
    path.write_text(path.read_text().replace("17", "18"))
    done = run(*WORDS)
    assert done.code == 5
    assert "sums was begun with other bytes in the files of --policy (file) than" in done.err
    assert run(*WORDS, "--n", 0).code == 2


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("--env", "nowhere"), 2, "unknown environment 'nowhere'"),
        (("--policy", "nobody"), 2, "unknown policy 'nobody'"),
        (("--policy", "scripted:file=none.jsonl"), 3, "none.jsonl cannot be read"),
        (("--tasks", "none.jsonl"), 3, "none.jsonl cannot be read"),
        (("--tasks", "no such"), 3, "there is no file or store 'no such'"),
        (("--tasks", "https://user:pw@x.org/a/t.jsonl?k=s"), 3, "error: t.jsonl is not read over"),
        (("--dataset", ""), 2, "--dataset is empty; give a name"),
        (("--tasks", "test:99999999999999999999"), 2, "ask for 10,000,000 at most"),
        (("--expert-mode", "wild"), 2, "assistance 'wild'"),
        (("-o", "tasks.jsonl"), 5, "tasks.jsonl"),
    ],
)
def test_a_wrong_call_is_one_sentence(run, here, change, code, message):
    words = list(WORDS)
    if change[0] in words:
        words[words.index(change[0]) + 1] = change[1]
    else:
        words += change
    done = run(*words)
    assert (done.code, done.out) == (code, "")
    assert message in done.err.splitlines()[-1]
    assert not (here / "sums").exists()


def test_an_expert_helps(run, here):
    words = ["collect", "--env", "toolworld", "--policy", "scripted:file=script.jsonl",
             "--tasks", "train:4", "-o", "helped"]  # fmt: skip
    assert run(*words, "--expert-mode", "informed:init_limit=1").code == 0
    rows = Store.open("helped").query(
        "SELECT success, count(*) AS n FROM trajectories WHERE parent_id IS NULL GROUP BY 1"
    )
    assert rows.to_pylist() == [{"success": True, "n": 4}]
    done = run(*words)
    assert done.code == 5
    text = "helped was begun with --expert-mode informed, and this call is without --expert-mode;"
    assert text in done.err
    for mode, text in [
        (
            "informed",
            "with --expert-mode init_limit=1, and this call has --expert-mode init_limit=",
        ),
        (
            "random:expert_probability=1",
            "with --expert-mode informed, and this call has --expert-mode random;",
        ),
    ]:
        assert f"helped was begun {text}" in run(*words, "--expert-mode", mode).err
    done = run("collect", "--env", "calculator", "--policy", "expert", "--tasks", "tasks.jsonl",
               "-o", "other")  # fmt: skip
    assert done.code == 3
    assert "no task can be done: task 'pow' is left out: the policy 'expert'" in done.err
    assert "this environment has none (toolworld has)" in done.err


def test_a_budget_says_how_to_go_on(run, here):
    done = run(*WORDS, "--n", 50, "--concurrency", 1, "--total-seconds", 0.01)
    assert done.code == 0
    assert "stopped: --total-seconds is used up" in done.out
    assert done.out.splitlines()[-1] == "next: the same call goes on"
    report = json.loads(run(*WORDS, "--n", 50, "--json").out)
    assert (report["left"], report["sealed"]) == (0, True)
    assert report["done_before"] + report["done_now"] == 100


@pytest.mark.skipif(not GOLD.exists(), reason="the reference data are not here")
@pytest.mark.parametrize("tasks", ["test:3", "m3s"])
@pytest.mark.parametrize(
    "expert", [("expert",), ("scripted:file=script.jsonl", "--expert-mode", "informed")]
)
def test_the_expert_solves_reference_data_of_m3(run, here, tasks, expert):
    assert run("convert", GOLD, "-o", "m3s").code == 0
    words = ["collect", "--env", "m3:store=m3s", "--tasks", tasks, "-o", "x", "--policy"]
    done = run(*words, *expert)
    assert done.code == 0
    assert "success: 1.000" in done.out


def test_programs_without_a_sandbox_are_asked_for_by_name(run, here):
    call = {"name": "python", "arguments": {"code": f"open({str(here / 'tasks.jsonl')!r}).close()"}}
    (here / "script.jsonl").write_text(json.dumps({"turns": [{"calls": [call]}, {"text": "51"}]}))
    words = ["collect", "--env", "python", *WORDS[3:]]
    done = run(*words, "--unsafe-python")
    assert done.code == 0
    settings = json.loads(Path("sums/collect.json").read_text())["settings"]
    assert settings["made_with"]["environment"]["settings"]["unsafe"] is True
    # The setting of that name is the same.
    again = run(*["collect", "--env", "python:unsafe=true", *words[3:]])
    assert "2 done before" in again.out
    (seen,) = Store.open("sums").get("sums/mul/attempt-0").steps[1].observations
    assert not seen.is_error, seen.text
    refused = run(*WORDS, "--unsafe-python")
    assert refused.code == 2
    assert "--unsafe-python is for the environment 'python', not 'calculator'" in refused.err


def test_when_everything_broke_the_reason_is_told(run, here):
    words = ["collect", "--env", "calculator", "--tasks", "tasks.jsonl", "-o", "down", "--policy",
             "openai:model=m,base_url=http://127.0.0.1:9/v1,retries=0"]  # fmt: skip
    done = run(*words)
    assert done.code == 12
    assert "broken: infrastructure: connection 2\n  infrastructure: connection: the " in done.out
    assert "not one episode is whole, 2 broke (infrastructure: connection: the" in done.err
    report = run(*words, "--json")
    assert report.code == 12
    error_messages = json.loads(report.out)["whole"]["error_messages"]
    assert list(error_messages) == ["infrastructure: connection"]


def test_tasks_may_be_left_out_where_the_environment_makes_them(run, here):
    words = ["collect", "--policy", "scripted:file=script.jsonl", "-o", "sums", "--total-cost", 1]
    done = run(*words, "--env", "calculator")
    assert done.out.splitlines()[0].startswith("asked: 100 (100 tasks x 1)")
    assert "note: no episode has a known cost" in done.out
    assert done.err.splitlines()[0].startswith("test:100: made by the environment")
    (here / "t.csv").write_text("a\n1\n")
    done = run(*words, "--env", "sql:tables=t.csv")
    assert (done.code, done.out) == (2, "")
    assert "'sql' makes no tasks of its own; give --tasks" in done.err


def test_a_script_that_fits_no_task_is_told(run, here):
    script = {"task_id": "mull", "turns": [{"text": "51"}]}
    (here / "script.jsonl").write_text(json.dumps(script))
    done = run(*WORDS)
    assert "note: 2 of 2 tasks have no script" in done.out
    assert "note: 1 of 1 scripts are for none of the tasks" in done.out


def test_rewards_alone_count_as_in_the_scorer(run, here):
    code = "class Jar:\n    def look(self) -> str: return 'x'\n    def get_reward(self): return 1\n"
    (here / "jar.py").write_text(code)
    (here / "tasks.jsonl").write_text('{"question": "Look."}')
    words = list(WORDS)
    words[2] = "jar.py:Jar"
    assert "success: 1.000 (1 of 1 scored); 1 by the reward alone" in run(*words).out
    assert run("score", "sums", "--with", "outcome").code == 0
    rows = Store.open("sums").query("SELECT value FROM scores WHERE metric = 'success'")
    assert rows.to_pylist() == [{"value": 1.0}]


def test_the_options_of_another_call_are_named(run, here):
    assert run(*WORDS[:-1], "timed", "--keep-open").code == 0
    assert run(*WORDS[:-1], "bare", "--keep-open", "--no-times").code == 0
    for store, words, begun, now in [
        ("timed", ("--no-times",), "without --no-times", "has --no-times"),
        ("bare", (), "with --no-times", "is without --no-times"),
        ("timed", ("--seed", 3), "with --seed 0", "has --seed 3"),
        ("timed", ("--max-turns", 3), "with --max-turns 30", "has --max-turns 3"),
        ("timed", ("--max-calls", 3), "without --max-calls", "has --max-calls 3"),
        ("timed", ("--max-seconds", 2), "without --max-seconds", "has --max-seconds 2.0"),
        ("timed", ("--dataset", "a b"), "with --dataset timed", 'has --dataset "a b"'),
        ("timed", ("--env", "weather"), "with --env calculator", "has --env weather"),
        ("timed", ("--policy", OPENAI), "with --policy scripted", "has --policy openai"),
    ]:
        done = run(*WORDS[:-1], store, *words)
        assert (done.code, done.out) == (5, "")
        assert f"{store} was begun {begun}, and this call {now}; go on with" in done.err


def test_a_budget_that_the_store_has_used_up_must_be_larger(run, here):
    usage = "from adp.rollouts.turns import Turn, Usage\n"
    usage += 'def dear(request):\n    return Turn(text="51", usage=Usage(10, 5))\n'
    (here / "dear.py").write_text(usage)
    words = ["collect", "--env", "calculator", "--policy", "dear.py:dear", "--tasks", "tasks.jsonl",
             "-o", "dear", "--n", 3, "--concurrency", 1]  # fmt: skip
    done = run(*words, "--total-tokens", 30)
    assert done.out.splitlines()[-2:] == [
        "stopped: --total-tokens is used up",
        "next: the same call with a larger --total-tokens goes on",
    ]
    assert run(*words, "--total-tokens", 300).out.splitlines()[-1][:6] == "sealed"


def test_tasks_come_from_a_store_at_a_url(run, here):
    assert run(*WORDS).code == 0
    words = [*WORDS[:6], (here / "sums").as_uri(), "-o", "again"]
    assert run(*words).out.splitlines()[0].startswith("asked: 2 (2 tasks x 1)")
    words[6] = (here / "nowhere").as_uri()
    assert (run(*words).code, Path("nowhere").exists()) == (5, False)


def test_a_call_for_less_says_why_it_ends_nothing(run, here):
    assert run(*WORDS, "--n", 4, "--keep-open").code == 0
    done = run(*WORDS, "--n", 2)
    assert done.out.splitlines()[-2:] == [
        "not sealed: it holds 4 episodes that this call does not ask for, and a call asked for "
        "--n 4",
        "next: a larger --n goes on; adp seal sums ends it as it is",
    ]
    report = json.loads(run(*WORDS, "--n", 2, "--json").out)
    assert (report["sealed"], report["beyond"], report["most_asked"]) == (False, 4, 4)
    assert run(*WORDS, "--n", 4).out.splitlines()[-1] == "sealed; next: adp stats sums"


def test_a_refusal_names_calls_that_work(run, here):
    assert run(*WORDS, "--n", 2).code == 0
    refused = run(*WORDS, "--n", 4)
    assert refused.code == 5
    since, more, merge = re.search(
        r"the same call with --since (\S+) -o (\S+); then adp (merge .*)$", refused.err.strip()
    ).groups()
    done = run(*WORDS[:-1], more, "--n", 4, "--since", since)
    assert done.out.splitlines()[-1] == f"sealed; next: adp {merge}"
    assert run(*merge.split()).code == 0
    assert Store.open("sums-whole").manifest.counts.trajectories == 8
    nothing = run(*WORDS[:-1], "x", "--n", 4, "--since", "sums-whole")
    assert (nothing.code, nothing.err.splitlines()[-1][:6]) == (0, "  task")
    assert "nothing is left to do: sums-whole holds all 8 episodes" in nothing.out
    (here / "tasks.jsonl").write_text('{"id": "other", "question": "?"}')
    refused = run(*WORDS)
    assert "with 2 tasks (--tasks, --split), and this call has 1; go on with the" in refused.err
    assert "--since sums -o sums-more; then adp merge sums sums-more -o sums-whole" in refused.err


def test_what_there_is_is_listed(run, here):
    done = run("collect", "--list")
    assert done.code == 0
    assert "calculator" in done.out
    assert "scripted" in done.out
    value = json.loads(run("collect", "--list", "--json").out)
    assert {row["name"] for row in value["policies"]} >= {"expert", "openai"}
    assert {row["name"]: row["needed"] for row in value["environments"]}["sql"] == ["tables"]
    (here / "t.csv").write_text("a;b\n1;2\n")
    assert "run_sql(query: string)" in run("collect", "-e", "sql:tables=t.csv", "--list").out
    tools = json.loads(run("collect", "-e", "toolworld", "--list", "--json").out)["tools"]
    assert "compare" in {tool["function"]["name"] for tool in tools}
    done = run("collect")
    assert (done.code, done.out) == (2, "")
    assert "adp collect --list shows what there is" in done.err


def test_an_environment_that_cannot_be_made_is_told_before_the_run(run, here):
    (here / "odd.py").write_text("def odd():\n    return 1 / 0\n")
    for env, code, output in [
        ("sql:tables=nope", 3, "nope is not there"),
        ("odd.py:odd", 2, "the environment 'odd' cannot be made: ZeroDivisionError"),
    ]:
        done = run("collect", "--env", env, *WORDS[3:])
        assert (done.code, done.out) == (code, "")
        assert output in done.err
    assert not (here / "sums").exists()


@pytest.mark.train
def test_what_the_chat_template_does_to_prompts_is_told_once_at_the_end(run, here):
    pytest.importorskip("torch", reason="needs the train extra")
    policy = "transformers:model=tiny,max_tokens=4,tools_in=text"
    words = ("--policy", policy, "--tasks", "tasks.jsonl", "--max-turns", 1, "-o", "runs")
    done = run("collect", "--env", "calculator", *words)
    assert done.code == 0, done.err
    note = "in 2 of 2 prompts: chats whose tools stand as text"
    assert done.out.count(f"note: {note}\n") == 1
    again = json.loads(run("collect", "--env", "calculator", *words[:-1], "more", "--json").out)
    assert note in again["notes"]
