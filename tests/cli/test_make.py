"""`adp make` as a user calls it."""

import json

import pytest

ENV = "benchmarks/shop_environment.py:Shop"


@pytest.mark.parametrize(
    "words",
    [("templates", "-e", ENV), ("synthetic", "-e", ENV), ("chains", "-e", ENV),
     ("teacher", "-e", ENV, "-p", "benchmarks/trial_teacher.py:teacher")],
)  # fmt: skip
def test_each_generator(run, tmp_path, words):
    done = run("make", *words, "-n", 12, "-o", tmp_path / "made")
    assert done.code == 0, done.err
    assert "12 samples of 12 asked for kept of " in done.out
    assert "covered: " in done.out
    again = json.loads(run("make", *words, "-n", 12, "-o", tmp_path / "made", "--json").out)
    assert (again["kept"], again["kept_before"], again["sealed"]) == (12, 12, True)
    assert again["coverage"]["by_tool"]["get_order"]["parameters"].keys() == {"order_id"}
    assert run("validate", tmp_path / "made").code == 0
    assert run("stats", tmp_path / "made").code == 0
    assert run("make", words[0], "--help").code == 0


def test_a_recipe_takes_what_was_made(run, tmp_path):
    assert run("make", "synthetic", "-e", "weather", "-n", 9, "-o", tmp_path / "made").code == 0
    (tmp_path / "recipe.yaml").write_text(
        f"recipe: 1\nname: r\nseed: 0\ninputs: {{made: {tmp_path}/made}}\n"
        "ops:\n- filter: {sql: success}\noutputs:\n  data: {}\n"
    )
    assert run("curate", tmp_path / "recipe.yaml", "-o", tmp_path / "out").code == 0
    counted = run("query", "-c", "SELECT count(*) n FROM trajectories", tmp_path / "out" / "data")
    assert "9" in counted.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("synthetic", "-e", "nothing"), "nothing"),
        (("chains", "-e", ENV, "--form", "other"), "form"),
        (("templates", "-e", ENV, "--templates-file", "none.yaml"), "none.yaml"),
    ],
)
def test_a_fault_is_one_sentence(run, tmp_path, words, message):
    done = run("make", *words, "-o", tmp_path / "made")
    assert done.code in (2, 3)
    assert message in done.err
    assert "Traceback" not in done.err
