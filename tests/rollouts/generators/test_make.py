"""Runs of generators: all calls carried out, nothing twice, the same bytes however they ran."""

import json
from pathlib import Path

import pytest

from adp.rollouts.generators.carry_out import KEY
from adp.rollouts.generators.make_options import MakeOptions, options_of, prepare_make
from adp_schema.errors import AdpError, EmptyResultError, OutputExistsError, UsageError
from adp_schema.manifest import MANIFEST
from tests.rollouts.generators.made import SHOP, TEACHER, again, calls_of, main_lines, make


def key(run):
    return run.task.instruction.lower(), json.dumps([part[:2] for part in calls_of(run)])


@pytest.mark.parametrize(
    ("generator", "more"),
    [("templates", {}), ("synthetic", {}), ("teacher", {"policy": TEACHER})],
)
def test_every_call_is_carried_out_and_verified(tmp_path, generator, more):
    report = make(tmp_path / "made", generator, "weather", count=30, **more)
    runs = main_lines(tmp_path / "made")
    assert report.kept == len(runs) == 30
    assert report.tried == report.kept + sum(report.failures.values())
    assert len({key(run) for run in runs}) == 30
    for run in runs:
        ((name, arguments, seen),) = calls_of(run)
        assert seen.is_error is False
        assert seen.text == again(name, arguments).text
        assert json.loads(run.task.expected_calls) == [{"name": name, "arguments": arguments}]
        assert run.success is True
        for value in arguments.values():
            assert str(value) in run.task.instruction
        members = json.loads(run.extra)[KEY]
        assert (members["name"], members["seed"]) == (generator, 0)
    assert report.covered() == {
        "tools": 1, "tools_covered": 1, "parameters": 3,
        "parameters_covered": 1 if generator == "templates" else 3,
    }  # fmt: skip


def test_what_fails_is_counted_and_never_kept(tmp_path):
    (tmp_path / "moody.py").write_text(
        "class Moody:\n"
        "    def act(self, number: int) -> dict:\n"
        '        """Acts."""\n'
        "        if number % 3 == 0:\n"
        "            raise ValueError('no')\n"
        "        return {'error': 'not now'} if number % 3 == 1 else {'done': number}\n"
    )
    report = make(tmp_path / "made", "synthetic", f"{tmp_path}/moody.py:Moody", count=15)
    numbers = [calls_of(run)[0][1]["number"] for run in main_lines(tmp_path / "made")]
    assert [number % 3 for number in numbers] == [2] * 15
    assert set(report.failures) <= {"execution", "error result", "duplicate"}
    assert report.failures["execution"] > 3
    lines = (tmp_path / "made" / "make_failures.jsonl").read_text().splitlines()
    assert len(lines) == sum(report.failures.values())
    assert all("calls" in json.loads(line) for line in lines)


def bytes_of(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(Path(folder).rglob("*"))
        if file.is_file() and file.name != "make.json"
    }


@pytest.mark.parametrize(
    ("generator", "env", "more"),
    [("teacher", "weather", {"policy": TEACHER}), ("chains", SHOP, {})],
)
def test_workers_and_stops_do_not_change_the_bytes(tmp_path, monkeypatch, generator, env, more):
    more |= {"count": 40, "dataset": "d"}
    make(tmp_path / "one", generator, env, concurrency=1, **more)
    make(tmp_path / "many", generator, env, concurrency=13, **more)
    options = MakeOptions(generator=generator, env=env, concurrency=3, **more)
    stop = StopAfter(15)
    with pytest.raises(KeyboardInterrupt):
        prepare_make(options, tmp_path / "stopped").run(tmp_path / "stopped", watch=stop)
    failures = tmp_path / "stopped" / "make_failures.jsonl"
    with failures.open("a") as file:
        file.write('{"candidate": "cut off')
    report = prepare_make(options, tmp_path / "stopped").run(tmp_path / "stopped")
    assert 15 <= report.kept_before < report.kept == 40
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "many")
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "stopped")


class StopAfter:
    """Stops a run when so many samples are kept."""

    def __init__(self, most):
        self.most = most

    def __call__(self, kept):
        if kept >= self.most:
            raise KeyboardInterrupt


def test_the_same_call_again_and_another_one(tmp_path):
    out = tmp_path / "made"
    make(out, "synthetic", "weather", count=5)
    before = (out / MANIFEST).read_bytes()
    report = make(out, "synthetic", "weather", count=5)
    assert (report.kept, report.kept_before, report.sealed) == (5, 5, True)
    assert (out / MANIFEST).read_bytes() == before
    more = make(out, "synthetic", "weather", count=9)
    assert more.kept == 5
    assert "sealed" in more.notes[-1]
    with pytest.raises(OutputExistsError, match="seed"):
        make(out, "synthetic", "weather", count=5, seed=1)


def test_samples_of_another_store_are_left_out(tmp_path):
    make(tmp_path / "train", "synthetic", "weather", count=40)
    report = make(tmp_path / "test", "synthetic", "weather", count=40,
                  without=(str(tmp_path / "train"),))  # fmt: skip
    assert report.failures["duplicate"] >= 40
    keys = [{key(run) for run in main_lines(tmp_path / name)} for name in ("train", "test")]
    assert not keys[0] & keys[1]


def test_a_tool_with_few_values_ends(tmp_path):
    (tmp_path / "few.py").write_text(
        "class Few:\n    def act(self, on: bool) -> str:\n        return 'done'\n"
    )
    report = make(tmp_path / "made", "synthetic", f"{tmp_path}/few.py:Few", count=500)
    assert report.kept < 500
    assert report.exhausted == ["act"]


def test_nothing_kept(tmp_path):
    (tmp_path / "bad.py").write_text(
        "class Bad:\n    def act(self, on: bool) -> str:\n        raise ValueError('no')\n"
    )
    with pytest.raises(EmptyResultError, match=r"no sample was kept of 200 .*execution: 200"):
        make(tmp_path / "made", "synthetic", f"{tmp_path}/bad.py:Bad", count=5)


def test_worlds_are_taken_where_the_environment_needs_them(tmp_path):
    names = tmp_path / "values.yaml"
    names.write_text("values: {'*': {entity: [ZaRuKe, BaDeFi]}}\n")
    report = make(tmp_path / "made", "chains", "toolworld:failures=0,distractors=0", count=20,
                  templates=names, tasks="train:20", answer="answer: {result}")  # fmt: skip
    assert report.kept == 20
    for run in main_lines(tmp_path / "made"):
        assert all(not seen.is_error for *_, seen in calls_of(run))
        entities = [arguments.get("entity") for _, arguments, _ in calls_of(run)]
        assert entities[0] in ("ZaRuKe", "BaDeFi")


def test_the_data_section_of_a_configuration(tmp_path):
    file = "tools.json"
    assert options_of("manual_templates", "synthetic", 9, file).generator == "templates"
    assert options_of("toolbench", "synthetic", 9, file).generator == "synthetic"
    assert options_of("teacher_mode", "synthetic", 9, file).generator == "synthetic"
    taught = options_of("teacher_mode", None, 9, file, 7, policy="scripted:file=x")
    assert (taught.generator, taught.count, taught.seed) == ("teacher", 9, 7)
    for wrong in (("toolbench", "real"), ("other", None)):
        with pytest.raises(UsageError):
            options_of(*wrong, 9, file)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"generator": "teacher"}, "--policy"),
        ({"generator": "synthetic", "tools": ("none",)}, "there is no tool 'none'"),
        ({"generator": "chains"}, "--edges"),
    ],
)
def test_faults_of_the_call(tmp_path, options, words):
    with pytest.raises(AdpError, match=words):
        make(tmp_path / "made", env="calculator", **options)
