"""The page of actions in texts has a query for turns that were left."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "text-actions.md"


def test_the_query_of_the_page_lists_the_turns_that_were_left(run, tmp_path):
    texts = ["Action: web_search red shoes", "Thought: x\nAction: find\nAction Input: {}"]
    messages = [{"role": "user", "content": "go"}]
    for text in texts:
        messages += [
            {"role": "assistant", "content": text},
            {"role": "user", "content": "Observation: no"},
        ]
    source = tmp_path / "chat.jsonl"
    source.write_text(json.dumps({"messages": messages}) + "\n")
    store = tmp_path / "store"
    assert run("convert", source, "-o", store, "--dialect", "react").code == 0
    (block,) = re.findall(r"```sh\n(adp query .*?)```", PAGE.read_text(), re.DOTALL)
    words = [word.replace(r"\$", "$") for word in shlex.split(block)[1:]]
    done = run(*[store if word == "my_store" else word for word in words], "--json")
    (row,) = json.loads(done.out)["rows"]
    assert texts[0] in str(row)
    assert "arguments" in str(row)
