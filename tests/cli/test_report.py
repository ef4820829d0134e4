from __future__ import annotations

import json

from tests.workflows.eval_stores import rollouts


def test_html(run, store, tmp_path):
    out = tmp_path / "report.html"
    done = run("report", "data", store.root, "-o", out)
    assert (done.code, done.out) == (0, f"wrote {out}\n")
    text = out.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert '<h1 dir="auto">small</h1>' in text
    again = run("report", "data", store.root, "-o", out)
    assert (again.code, again.err) == (
        5,
        f"error: {out} is there already; choose another name\n",
    )
    assert out.read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_markdown_on_standard_output_and_in_a_file(run, store, tmp_path):
    printed = run("report", "data", store.root, "--name", "my data").out
    assert printed.startswith("# my data\n\n- 3 trajectories (and 1 branch)\n")
    assert "\x1b" not in printed
    out = tmp_path / "report.md"
    assert run("report", "data", store.root, "--name", "my data", "-o", out).code == 0
    assert out.read_text() == printed


def test_json(run, store):
    value = json.loads(run("report", "data", store.root, "--json", "--examples", 1).out)
    assert (value["trajectories"], value["branches"], value["steps"]) == (4, 1, 7)
    assert value["success"] | {"low": 0, "high": 0} == {
        "name": None, "of": 3, "known": 2, "good": 1, "rate": 0.5, "low": 0, "high": 0,
    }  # fmt: skip
    assert len(value["examples"]) == 1
    assert [tool["name"] for tool in value["tools"]["rows"]] == ["bash", "build"]


def test_wrong_calls(run, store, tmp_path):
    wrong = {
        "report.pdf": "ends in neither .html nor .md; name the file report.html",
        "no/report.html": "is not there; make it first",
    }
    for name, message in wrong.items():
        done = run("report", "data", store.root, "-o", tmp_path / name)
        assert done.code == 2
        assert message in done.err
    done = run("report", "data", store.root, "--json", "-o", tmp_path / "report.html")
    assert (done.code, done.err) == (
        2,
        "error: --json prints to standard output; leave out -o\n",
    )
    assert run("report", "data", tmp_path / "none").code == 5
    assert list(tmp_path.iterdir()) == []


def test_help_has_an_example(run):
    assert "adp report data my_store -o report.html" in run("report", "data", "--help").out
    assert "data" in run("report", "--help").out


class TestEvaluations:
    """``adp report eval``: the tests of its numbers are beside its library."""

    def test_markdown_json_and_files(self, run, tmp_path):
        stores = [rollouts(tmp_path / name, name, rate, scored=False).root
                  for name, rate in (("base", 0.3), ("tuned", 0.8))]  # fmt: skip
        done = run("report", "eval", *stores, "--name", "Two runs")
        assert (done.code, done.out.partition("\n")[0]) == (0, "# Two runs")
        assert "### Paired differences" in done.out
        plain = json.loads(run("report", "eval", *stores, "--baseline", "tuned", "--json").out)
        assert [item["name"] for item in plain["runs"]] == ["tuned", "base"]
        page = tmp_path / "report.html"
        assert run("report", "eval", stores[0], "-o", page, "--examples", 1).code == 0
        assert page.read_text(encoding="utf-8").count("<pre") == 1
        assert run("report", "eval", stores[0], "-o", page).code == 5
        assert run("report", "eval", stores[0], "--baseline", "none").code == 2
        assert run("report", "eval", stores[0], "-o", tmp_path / "x.pdf").code == 2
