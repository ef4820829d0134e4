"""Whose limits an episode has: those of the call, else the environment's own."""

from __future__ import annotations

import json

import pytest

import adp
from adp.cli.main import main
from adp.eval.evaluate import EvaluateOptions, evaluate
from adp.eval.suite import Suite
from adp.rollouts.collecting.limits import Limits, limits_in
from adp.rollouts.turns import Call, Turn
from adp_bfcl.environment import Bfcl
from adp_schema.errors import OutputExistsError, UsageError

WORLD = """
class Counter:
    \"\"\"Counts.\"\"\"

    max_turns = {turns}

    def reset(self):
        return "Count."

    {word}def up(self) -> int:
        \"\"\"One more.\"\"\"
        return 1


def always(request):
    from adp.rollouts.turns import Call, Turn

    return Turn(calls=(Call("up"),))
"""


def settings(out):
    return json.loads((out / "collect.json").read_text())["settings"]["limits"]


def test_what_is_given_wins():
    class Long:
        max_turns = 200

    assert limits_in(Long(), Limits()).max_turns == 200
    assert limits_in(Long(), Limits(max_calls=3)) == Limits(max_turns=200, max_calls=3)
    assert limits_in(Long(), Limits(max_turns=30)).max_turns == 30
    assert limits_in(Long(), Limits(max_turns=None)).max_turns is None
    assert limits_in(object(), Limits()) == Limits()
    assert limits_in(Bfcl(), Limits()).max_turns == 200
    for wrong in (0, "many", -1):
        Long.max_turns = wrong
        with pytest.raises(UsageError, match=r"max_turns of Long is .* it must be a number from 1"):
            limits_in(Long(), Limits())


@pytest.mark.parametrize("word", ["", "async "])
def test_on_the_command_line_and_in_python(tmp_path, word, capsys):
    file = tmp_path / "world.py"
    file.write_text(WORLD.format(turns=4, word=word))
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"question": "?", "answer": "1"}')
    words = ["collect", "--env", f"{file}:Counter", "--policy", f"{file}:always"]
    words += ["--tasks", str(tasks), "--json", "-o"]
    out = tmp_path / "out"
    assert main([*words, str(out), "--max-calls", "99", "--keep-open"]) == 0
    assert json.loads(capsys.readouterr().out)["whole"]["stop_reasons"] == {"max_turns": 1}
    assert settings(out) == {
        "max_turns": 4, "max_calls": 99, "max_tokens": None, "max_seconds": None,
    }  # fmt: skip
    # The same number, said or not, is the same run; another one is another run.
    assert main([*words, str(out), "--max-calls", "99", "--max-turns", "4"]) == 0
    assert main([*words, str(out), "--max-calls", "99", "--max-turns", "5"]) == 5
    assert "begun with --max-turns 4, and this call has --max-turns 5" in capsys.readouterr().err
    output = tmp_path / "said"
    assert main([*words, str(output), "--max-turns", "2"]) == 0
    assert settings(output)["max_turns"] == 2

    def policy(request):
        return Turn(calls=(Call("up"),))

    env = f"{file}:Counter"
    adp.collect(env, policy, str(tasks), tmp_path / "python")
    assert settings(tmp_path / "python")["max_turns"] == 4
    adp.collect(env, policy, str(tasks), tmp_path / "given", limits={"max_turns": 3})
    assert settings(tmp_path / "given")["max_turns"] == 3
    with pytest.raises(OutputExistsError, match=r"--max-turns 3, and this call has --max-turns 4"):
        adp.collect(env, policy, str(tasks), tmp_path / "given")
    suite = Suite(name="s", environment=env, tasks=str(tasks))
    options = EvaluateOptions()
    evaluate(suite, f"{file}:always", str(tmp_path / "suite"), options)
    assert settings(tmp_path / "suite")["max_turns"] == 4
    fixed = suite.model_copy(update={"limits": Limits(max_turns=6)})
    evaluate(fixed, f"{file}:always", str(tmp_path / "fixed"), options)
    assert settings(tmp_path / "fixed")["max_turns"] == 6
