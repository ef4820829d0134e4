"""What is printed of losses: contents first, keys of ``extra`` together, the rest with --json."""

from __future__ import annotations

import json

from adp.cli.losses_text import grouped_losses, print_losses
from adp.converters.unwritten_columns import REASON


def test_contents_come_first_and_keys_of_extra_last():
    counts = {
        f"$.steps[*].extra.usage: {REASON}": 900,
        f"$.steps[*].extra.a: b: {REASON}": 100,
        f"$.steps[*].timestamp: {REASON}": 500,
        f"$.links[*].kind: {REASON}": 400,
        "$.steps[*].kind: a step of kind event, which no model saw, is left out": 30,
        "$.branches[*]: it is left out": 20,
        f"$.branches[*].steps[*].reasoning: {REASON}": 10,
        "$.steps[*].extra.line: a line that is no object is not written": 700,
        f"$.media.1f.mime: {REASON}": 2,
        f"$.media.2e.mime: {REASON}": 2,
    }
    assert grouped_losses(counts) == [
        ("$.steps[*].kind: a step of kind event, which no model saw, is left out", 30),
        ("$.branches[*]: it is left out", 20),
        (f"$.branches[*].steps[*].reasoning: {REASON}", 10),
        (f"$.steps[*].timestamp: {REASON}", 500),
        (f"$.links[*].kind: {REASON}", 400),
        (f"$.media.*.mime: {REASON}", 4),
        (f"$.steps[*].extra.*: {REASON} (2 keys)", 1000),
        ("$.steps[*].extra.line: a line that is no object is not written", 700),
    ]


def test_it_says_where_the_full_list_is(capsys):
    print_losses({f"$.column_{number}: {REASON}": 1 for number in range(12)})
    assert "and 2 more kinds; --json has the full list" in capsys.readouterr().out
    print_losses({f"$.extra.{key}: {REASON}": 1 for key in "ab"})
    assert "--json has them key by key" in capsys.readouterr().out
    print_losses({f"$.text: {REASON}": 1})
    assert "--json" not in capsys.readouterr().out
    print_losses({})
    assert capsys.readouterr().out == ""


def test_json_has_every_key(run, store, tmp_path):
    words = ("export", store.root, "--to", "pi", "--json", "-o")
    losses = json.loads(run(*words, tmp_path / "out").out)["losses"]
    assert not any("the id of the session becomes" in name for name in losses)
    assert any(name.endswith("source_id: the session gets another id") for name in losses)
