"""A store whose every text says what it is told to: harmless words, or an attack."""

from __future__ import annotations

import json
from pathlib import Path

from adp_schema.builder import Origin, RowBuilder
from adp_schema.manifest import Lineage
from adp_schema.store import Store
from tests.store_builders import reject_row, write_store

ATTACKS = (
    "<script>document.title='taken'</script>",
    "</pre></td></table><script src=https://evil.example/x.js></script>",
    "<img src=x onerror=alert(1)>",
    '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><image href="//e.example/"/></svg>',
    '" onmouseover="alert(1)" x=\'',
    "javascript:alert(1)",
    "{{7*7}}{% raw %}{{ config }}{% include '/etc/passwd' %}{#",
    "${7*7} <%= 7*7 %> #{7*7}",
    "\u202egnp.exe\u202c \u2066left\u2069 \u200f",
    "$\\frac{1}{0}$ $\\badcommand{ $x^",
    "\x1b[2J\x00\x07\x9b31m",
    "---\ntitle: taken\n---\n# heading\n\n| a | b |\n|---|---|\n",
    "![x](http://evil.example/p.png) [click](javascript:alert(1)) <http://evil.example>",
    "```\n~~~\n````\n</code>",
    "&lt;b&gt; &amp; <!-- --> ]]> <![CDATA[",
    "漢字 🤖 עברית العربية",
    "a" * 1_000_000,
    "https://evil.example/" + "b" * 300,
    '\\udc80 {"a": "\\ud800"}',
)


def hostile_store(folder: Path, attacks: tuple[str, ...] = ATTACKS) -> Store:
    """Write a store with these texts in each column that a report or a card shows.

    Args:
        folder: folder of the store.
        attacks: the texts; each is the name of a data set, a tool, a model, ...
    """
    builder = RowBuilder()
    for number, text in enumerate(attacks):
        _run(builder, number, text)
        builder.reject(reject_row(text.encode(), text, record=number))
    losses = {f"$.x: {text}": number + 1 for number, text in enumerate(attacks)}
    store = write_store(folder, builder, losses=losses)
    output = {text[:1000]: text[:1000] for text in attacks}
    store.manifest.lineage = [Lineage(act="drop", options=output, parents=list(output))]
    store.manifest.write(folder)
    return Store.open(str(folder))


def harmless() -> tuple[str, ...]:
    """Harmless texts, as many and as long as the attacks."""
    return tuple(f"word{n:02d}".ljust(len(text), "x") for n, text in enumerate(ATTACKS))


def _run(builder: RowBuilder, number: int, text: str) -> None:
    builder.begin(Origin(seq=100 * number, dataset=text,
                         columns={"source_file": text, "source_format": text}))  # fmt: skip
    columns = ("agent_name", "agent_model", "license", "split", "stop_reason", "error_type",
               "error_message", "final_answer", "task_id", "notes", "source_url")  # fmt: skip
    builder.trajectory(
        {
            **dict.fromkeys(columns, text),
            "source_id": f"{number} {text}",
            "success": number % 3 > 0,
            "reward": number / 10,
            "tools": json.dumps([{"function": {"name": text}}]),
        }
    )
    builder.step({"source": "system", "kind": "message", "text": text})
    builder.step({"source": "user", "kind": "message", "text": f"{text}\n\n{text}"})
    turn = {"source": "agent", "kind": "llm_turn", "text": text, "reasoning": text}
    builder.step({**turn, "model": text, "stop_reason": text, "tokens_in": 10, "tokens_out": 3})
    call = {"call_id": "c1", "kind": "code", "name": text, "language": text}
    builder.call({**call, "arguments": json.dumps({text: text}), "arguments_kind": "object"})
    answer = {"text": text, "is_error": number % 2 == 0, "error_type": text, "exit_code": number}
    builder.observation(answer, answers="c1")
    builder.finish()
