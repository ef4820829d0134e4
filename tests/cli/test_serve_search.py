"""``adp serve-search`` as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import httpx2

from adp.cli.main import main


def test_it_serves_until_it_is_interrupted(tmp_path):
    corpus = tmp_path / "docs.jsonl"
    rows = [{"id": "etna", "title": "Etna", "text": "A volcano."}, {"id": "po", "text": "A river."}]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code = "import sys; from adp.cli.main import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve-search", str(corpus), "--port", "0"],
        stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, env={**os.environ},
    )  # fmt: skip
    line = process.stdout.readline()
    url = re.search(r"2 documents at (http://\S+)/search", line)[1]
    with httpx2.Client(trust_env=False, timeout=20) as client:
        answer = client.post(f"{url}/search", json={"query": "volcano"}).json()
    assert [document["id"] for document in answer] == ["etna"]
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "ended" in rest


def test_a_corpus_that_is_not_there(tmp_path, capsys):
    assert main(["serve-search", str(tmp_path / "none")]) != 0
    assert "are not there" in capsys.readouterr().err
