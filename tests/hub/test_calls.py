"""Which calls the client makes: docs/hub.md lists them."""

from __future__ import annotations

import re
from pathlib import Path

import adp
from adp.workflows.publish.check import check
from adp.workflows.publish.upload import upload
from adp.workflows.pull import pull

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
URL = "hf://datasets/me/set"


def documented() -> dict[str, set[str]]:
    """What the page says: act -> calls."""
    lines = (ROOT / "docs" / "hub.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("| call | publish | pull | query | convert |")
    acts = [part.strip() for part in lines[start].strip("|").split("|")][1:]
    results: dict[str, set[str]] = {act: set() for act in acts}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        call, *marks = [part.strip() for part in line.strip("|").split("|")]
        for act, mark in zip(acts, marks, strict=True):
            assert mark in ("", "yes")
            if mark:
                results[act].add(re.sub("`", "", call))
    return results


def test_the_page_lists_all_calls_and_no_other(fake_hub, tmp_path):
    fake_hub.part = 20_000
    adp.convert(EXAMPLES, tmp_path / "folder/store")
    (tmp_path / "folder/README.md").write_text("---\nlicense: mit\n---\n# A set\n")
    chats = (EXAMPLES / "chat/booking.jsonl").read_bytes()
    parquet = next((tmp_path / "folder/store/sources").iterdir()).read_bytes()
    acts = {
        "publish": lambda: (check("me/set"), upload(tmp_path / "folder", "me/set", tag="v1")),
        "pull": lambda: pull(URL, tmp_path / "pulled"),
        "query": lambda: adp.query(URL, "SELECT name FROM calls"),
        "convert": lambda: adp.convert("hf://datasets/me/chats", tmp_path / "converted"),
    }
    fake_hub.repos.push("me/chats", {"a.jsonl": chats, "b.parquet": parquet})
    made = {}
    for act, call in acts.items():
        fake_hub.forget()
        call()
        made[act] = set(fake_hub.kinds())
        assert not any(call.token for call in fake_hub.calls if call.origin == "cdn")
    assert made == documented()
