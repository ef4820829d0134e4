from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "check_names.py"


def check(folder, *words):
    return subprocess.run(
        [sys.executable, TOOL, *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_retired_words_are_faults_wherever_a_name_is_given(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "pen.py").write_text(
        "class Found:\n    own: int\n\n"
        "def told(one):\n    for each in one:\n        one.said = each\n"
        "try:\n    import json as own\nexcept ImportError as mine:\n    pass\n"
    )
    done = check(tmp_path, "src")
    places = [line.split(" says")[0] for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert sorted(places) == [
        "src/pen.py:1: Found",
        "src/pen.py:1: pen",
        "src/pen.py:2: own",
        "src/pen.py:4: one",
        "src/pen.py:4: told",
        "src/pen.py:5: each",
        "src/pen.py:6: said",
        "src/pen.py:8: own",
        "src/pen.py:9: mine",
    ]


def test_public_classes_stand_once_and_private_ones_may_repeat(tmp_path):
    for package in ("a", "b"):
        (tmp_path / "src" / package).mkdir(parents=True)
        text = "class Job:\n    pass\n\nclass _Run:\n    pass\n"
        (tmp_path / "src" / package / "work.py").write_text(text)
    done = check(tmp_path, "src")
    assert done.returncode == 1
    assert done.stdout == (
        "src/a/work.py:1: the class Job stands 2 times: src/a/work.py:1, src/b/work.py:1\n"
    )
    (tmp_path / "src" / "b" / "work.py").write_text("class Shard:\n    pass\n")
    assert check(tmp_path, "src").returncode == 0
