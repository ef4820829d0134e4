"""Fuzz the dialects: seeded mutations of texts with actions, in chats that go through a store.

python -m tests.fuzz.dialects --cases 20000               every dialect, on two processes
python -m tests.fuzz.dialects --dialect react --cases 500  some of them
python -m tests.fuzz.dialects --dialect react --case 1234  one case again, with its record

A case is a chat whose turns are mutated texts of a dialect. Cases are converted with the dialect
named, and written back to their own format: each must come back byte for byte. Besides, spans must
be in order, an edit of an argument must show in the text or be reported, and a store that is
parsed later must be the one that a conversion makes.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from adp.converters.export import export
from adp.converters.registry import formats
from adp.converters.run import ConvertOptions, convert
from adp.converters.text_calls.apply import TextParser
from adp.converters.text_calls.dialect import Dialect
from adp.converters.text_calls.registry import DIALECTS, dialect
from adp.converters.text_calls.restore import restore
from adp.converters.text_calls.store import ParseOptions, parse
from adp.stores.shards import open_finished
from adp_schema import jsontext
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Media, Pair, Trajectory
from adp_schema.protocols import Converter, RawRecord
from adp_schema.reader import assemble, to_models
from adp_schema.store import Store
from tests.conservation import nest
from tests.fuzz.__main__ import note
from tests.samples import ROOT as SAMPLES

CHUNK = 250
PARSED_LATER = 4
"""Of one chunk in so many a store without a dialect is parsed, too."""

FORMATS = ("openai_chat", "sharegpt", "preference")
SECONDS = 2.0
"""A text of a few kilobytes that takes longer to parse, in time of the CPU, is a finding."""

TOKENS = (
    *(
        "\n",
        "\r\n",
        "\n\n",
        " ",
        "\t",
        "\u2028",
        "\ufeff",
        "\x00",
        "\ud83d",
        "é",
        "…",
        "\\",
        "'",
        '"',
    ),
    *("`", "```", "```bash\n", "```json\n", "~~~", "{", "}", "[", "]", "(", ")", ":", ",", "="),
    *("<", ">", "</", "/>", "<think>", "</think>", "[THINK]", "◁think▷", "Thought:", "Action:"),
    *("Action Input:", "Observation:", "Final Answer:", "<tool_call>", "</tool_call>"),
    *("<tool_response>", "<function=f>", "</function>", "<parameter=a>", "</parameter>"),
    *("<invoke name=", "null", "NaN", "-1e999", "None", "True", "f(a=1)", "search[x]"),
    *('{"name": "f", "arguments": {}}', "<answer>", "</answer>", "\\boxed{", "x" * 300),
    *("data:image/png;base64,AAAA", "adp-media:image/png;0"),
)
REPLIES = ("ok", "[1]", "a\nb", "error: no", "")


# ---- the cases -------------------------------------------------------------------------------


@cache
def seeds(name: str) -> tuple[str, ...]:
    """Texts of a dialect: its example, those that its tests quote, and of real samples."""
    grammar = dialect(name)
    texts = [grammar.example, *_quoted(name, grammar), *_real(grammar)]
    return tuple(dict.fromkeys(texts))


def _quoted(name: str, grammar: Dialect) -> Iterator[str]:
    """Strings of the dialect's tests that hold a mark of it."""
    import ast

    folder = Path(__file__).parents[1] / "converters" / "text_calls"
    for path in sorted(folder.rglob(f"test_*{name.split('_')[0]}*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                if 10 < len(text) < 3000 and any(mark in text for mark in grammar.marks):
                    yield text


def _real(grammar: Dialect, most: int = 40) -> list[str]:
    """Turns of real samples in which the dialect reads a call; none where they are absent."""
    texts: list[str] = []
    for values in _samples():
        likely = [it for it in values if any(mark in it for mark in grammar.marks)]
        texts += [it for it in likely[:60] if grammar.parse(it).calls][:6]
        if len(texts) >= most:
            break
    return texts[:most]


@cache
def _samples() -> tuple[tuple[str, ...], ...]:
    """The strings of each file of chats among the real samples."""
    folders = [SAMPLES / name for name in ("adp_v1", "datasets", "datasets_new")]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.json*"))]
    return tuple(
        tuple(_strings(path.read_text(encoding="utf-8", errors="replace")))
        for path in paths
        if "std" not in path.name and path.stat().st_size < 1 << 19
    )


def _strings(data: str) -> Iterator[str]:
    """The strings of JSON text, or of lines of it, that a turn may be."""
    for match in re.finditer(r'"(?:[^"\\]|\\.){12,3000}"', data):
        try:
            value = json.loads(match.group())
        except ValueError:
            continue
        if "\n" in value or "<" in value or "(" in value or "[" in value:
            yield value


def mutate(text: str, others: Sequence[str], chance: random.Random) -> str:
    """A text with some changes."""
    for _ in range(chance.choice((0, 1, 1, 2, 3, 6))):
        start, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + chance.choice((1, 3, 20, 400)))
        part, other = text[start:end], chance.choice(others)
        way = chance.randrange(8)
        if way == 0:
            part = ""
        elif way == 1:
            part = part * 2
        elif way == 2:
            part += chance.choice(TOKENS)
        elif way == 3:
            part = chance.choice(TOKENS)
        elif way == 4:
            part = part[::-1]
        elif way == 5:
            place = chance.randrange(len(other) + 1)
            part = other[place : place + chance.choice((5, 40, 400))]
        elif way == 6:
            part += text if len(text) < 3000 else ""
        else:
            part = part.swapcase()
        text = text[:start] + part + text[end:]
    return text[:8000]


def make(name: str, seed: int, case: int, shape: str) -> dict[str, Any]:
    """The record of a case."""
    chance = random.Random(f"{name} {seed} {case}")
    grammar, texts = dialect(name), seeds(name)
    strangers = seeds(chance.choice(DIALECTS))
    turns = [("user", mutate(chance.choice(texts), strangers, chance))]
    for _ in range(chance.randrange(1, 4)):
        turns.append(("assistant", mutate(chance.choice(texts), strangers, chance)))
        mark = chance.choice((*grammar.results, "", ""))
        reply = mutate(f"{mark} {chance.choice(REPLIES)}", texts, chance)
        if chance.random() < 0.3:
            reply += mutate(f"{mark} more", strangers, chance)
        turns.append((chance.choice(("user", "user", "user", "tool", "assistant")), reply))
    if chance.random() < 0.5:
        turns.insert(0, ("system", chance.choice(texts)))
    return _record(turns, shape, case)


_SHAREGPT = {"user": "human", "assistant": "gpt", "tool": "observation", "system": "system"}


def _record(turns: list[tuple[str, str]], shape: str, case: int) -> dict[str, Any]:
    if shape == "sharegpt":
        chat = [{"from": _SHAREGPT[role], "value": text} for role, text in turns]
        return {"conversations": chat, "id": f"c{case}"}
    messages = [{"role": role, "content": text} for role, text in turns]
    if shape == "openai_chat":
        return {"messages": messages, "id": f"c{case}"}
    last = {"role": "assistant", "content": turns[1][1]}
    return {"prompt": messages[:-1], "chosen": [messages[-1]], "rejected": [last], "id": case}


# ---- what must hold --------------------------------------------------------------------------


def text_fault(grammar: Dialect, text: str) -> str | None:
    """What is wrong with how a dialect takes a text apart; None when nothing is."""
    grammar.parse(text)  # it may be asked about any text, but what is read has no surrogates
    text = text.encode("utf-8", "replace").decode("utf-8")
    started = time.process_time()
    turn = grammar.parse(text)
    pieces = grammar.pieces(text)
    results = grammar.results_in(text, turn.calls)
    if time.process_time() - started > SECONDS:
        return "parsing takes too long"
    spans = [call.span for call in turn.calls]
    marked = [*turn.thoughts, *([turn.answer] if turn.answer is not None else [])]
    taken = sorted([*spans, *(item.span for item in marked)])
    if any(first[1] > second[0] for first, second in pairwise(taken)) or spans != sorted(spans):
        return f"spans overlap or are out of order: {taken}"
    if any(not 0 <= start < end <= len(text) for start, end in taken):
        return f"a span is empty or outside: {taken}"
    for item in (*marked, *(result.marked for result in results)):
        if not item.span[0] <= item.words[0] <= item.words[1] <= item.span[1]:
            return f"words are outside of their marks: {item}"
    bounds = [result.marked.span for result in results]
    if any(first[1] > second[0] for first, second in pairwise(bounds)):
        return f"results overlap: {bounds}"
    if len(pieces) > 1 and "".join(text[slice(*it.span)] for it in pieces) != text:
        return "the pieces are not the text"
    for call in turn.calls:
        if call.arguments is not None and not jsontext.is_valid(call.arguments):
            return f"arguments are no JSON: {call.arguments!r}"
        grammar.write(call)
    return None


def edit_fault(grammar: Dialect, record: dict[str, Any], chance: random.Random) -> str | None:
    """What is wrong after an edit: it neither shows in the text nor is reported."""
    (run,) = read_parsed(record, formats.get("openai_chat"), grammar)
    steps = [step for step in run.steps if step.calls]
    rows = [*run.steps, *(it for step in run.steps for it in step.observations)]
    is_cut = any('"joined"' in it or '"piece"' in it for it in (row.extra or "" for row in rows))
    if not steps or is_cut:  # a turn of several steps holds the calls of all of them
        return None
    step = chance.choice(steps)
    call = chance.choice(step.calls)
    if call.arguments_raw is not None:
        call.arguments_raw = "edited 7"
    else:
        members = json.loads(call.arguments or "{}")
        texts = [key for key, value in members.items() if isinstance(value, str)]
        if not texts:
            return None
        call.arguments = json.dumps({**members, chance.choice(texts): "edited 7"})
    expected = [(it.name, it.arguments, it.arguments_raw) for it in step.calls]
    losses = Losses()
    restore(run, losses)
    if losses.items:
        return None
    again = [it for text in (step.text or "",) for it in grammar.parse(text).calls]
    values = [(it.name, it.arguments, it.raw) for it in again]
    if [_loaded(it) for it in values] != [_loaded(it) for it in expected]:
        return f"after an edit the text says {values} and not {expected}"
    return None


def _loaded(values: tuple[str | None, str | None, str | None]) -> tuple[Any, ...]:
    name, arguments, raw = values
    return name, None if arguments is None else json.loads(arguments, parse_float=str), raw


def read_parsed(record: dict[str, Any], converter: Converter, grammar: Dialect) -> list[Trajectory]:
    """The trajectories of a record with its texts parsed, branches in their places."""
    builder = RowBuilder()
    data = json.dumps(record).encode()
    builder.begin(Origin(0, "d", {"source_format": converter.name}, size=len(data)))
    converter.read(RawRecord(data, "f", 1, 0, len(data)), builder, Losses())
    builder.close_record(Losses())
    TextParser(grammar).change_record(builder)
    tables = builder.tables()
    media = {blob.media_id or "": blob for blob in to_models(tables["media"], Media)}
    runs = list(assemble(tables["trajectories"], tables, media))
    pairs = to_models(tables["pairs"], Pair)
    for run in runs:
        run.pairs = pairs
    return nest(runs, converter)


def chunk_faults(
    name: str, records: Sequence[dict[str, Any]], shape: str, *, is_parsed_later: bool = True
) -> dict[int, str]:
    """Index of a record -> what is wrong with what a store makes of it; -1 is about all."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        lines = [json.dumps(record).encode() for record in records]
        (place / "chats.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        options = ConvertOptions(format=shape, dialect=name, workers=1)
        convert([str(place / "chats.jsonl")], str(place / "store"), options=options)
        store = open_finished(str(place / "store"))
        if store.manifest.counts.rejected:
            reasons = store.scan("rejects").collect().to_dicts()
            return {-1: f"rejected: {reasons[:2]}"}
        faults = _written_faults(store, shape, place, lines)
        if not faults and is_parsed_later:
            faults = _parsed_faults(name, store, place, options)
        return faults


def _written_faults(store: Store, shape: str, place: Path, lines: list[bytes]) -> dict[int, str]:
    export(store, shape, str(place / "out"))
    written = next((place / "out").rglob("chats.jsonl")).read_bytes().splitlines()
    if len(written) != len(lines):
        return {-1: f"{len(lines)} records came back as {len(written)}"}
    return {
        index: f"comes back as {after[:3000]!r}"
        for index, (before, after) in enumerate(zip(lines, written, strict=True))
        if before != after
    }


def _parsed_faults(name: str, store: Store, place: Path, options: ConvertOptions) -> dict[int, str]:
    """A store without a dialect that is parsed is the one that a conversion makes."""
    plain = ConvertOptions(format=options.format, dialect="none", workers=1)
    convert([str(place / "chats.jsonl")], str(place / "plain"), options=plain)
    plain_store = open_finished(str(place / "plain"))
    parse(plain_store, str(place / "parsed"), options=ParseOptions(dialect=name, workers=1))
    parsed = open_finished(str(place / "parsed"))
    for table in ("trajectories", "steps", "tool_calls", "observations"):
        rows = [it.scan(table).collect().sort("seq", maintain_order=True).to_dicts()
                if it.files(table) else [] for it in (store, parsed)]  # fmt: skip
        if rows[0] != rows[1]:
            wrong = [row["seq"] for row, other in zip(*rows, strict=False) if row != other]
            return {-1: f"adp parse makes other {table}, first of {wrong[:3]}"}
    return {}


# ---- running ---------------------------------------------------------------------------------


def run_chunk(job: tuple[str, int, int, int]) -> dict[str, Any]:
    """Check a run of cases."""
    name, seed, first, last = job
    shape = FORMATS[first // CHUNK % len(FORMATS)]
    grammar = dialect(name)
    records = [make(name, seed, case, shape) for case in range(first, last)]
    faults: list[tuple[int, str]] = []
    counts: Counter[str] = Counter()
    for case, record in enumerate(records, first):
        for text in texts_of(record):
            counts["texts"] += 1
            try:
                counts["calls"] += len(grammar.parse(text).calls)
                fault = text_fault(grammar, text)
            except Exception as error:
                fault = f"raised {error!r}"
            if fault is not None:
                faults.append((case, fault))
        if shape == "openai_chat" and "\\ud" not in json.dumps(record):
            fault = edit_fault(grammar, record, random.Random(f"edit {name} {seed} {case}"))
            faults += [] if fault is None else [(case, fault)]
    try:
        is_parsed_later = first // CHUNK % PARSED_LATER == 0
        broken = chunk_faults(name, records, shape, is_parsed_later=is_parsed_later)
    except Exception as error:
        broken = {-1: f"raised {error!r}"}
    faults += [(first + max(index, 0), fault) for index, fault in broken.items()]
    return {"name": name, "counts": counts, "faults": faults}


def texts_of(record: dict[str, Any]) -> list[str]:
    """The texts of a record that a model wrote or read."""
    turns = record.get("messages") or record.get("conversations") or [
        *record["prompt"], *record["chosen"], *record["rejected"]
    ]  # fmt: skip
    return [turn.get("content") or turn.get("value") or "" for turn in turns]


def main() -> int:
    """Run, print what is wrong, and return the exit status."""
    options = _options()
    names = options.dialect or list(DIALECTS)
    if options.case is not None:
        shape = FORMATS[options.case // CHUNK % len(FORMATS)]
        record = make(names[0], options.seed, options.case, shape)
        print(json.dumps(record))
        faults = [text_fault(dialect(names[0]), text) for text in texts_of(record)]
        print([fault for fault in faults if fault], chunk_faults(names[0], [record], shape))
        return 0
    bad = 0
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for name in names:
            firsts = range(0, options.cases, CHUNK)
            jobs = [(name, options.seed, it, min(it + CHUNK, options.cases)) for it in firsts]
            started, counts = time.perf_counter(), Counter[str]()
            faults: list[tuple[int, str]] = []
            for result in pool.map(run_chunk, jobs):
                counts.update(result["counts"])
                faults += result["faults"]
            for case, fault in faults[:20]:
                print(f"{name} {case}: {fault[:600]}")
            seconds = round(time.perf_counter() - started)
            known = f"{counts['texts']} texts, {counts['calls']} calls, {len(faults)} findings"
            print(f"{name}: {options.cases} cases, {known} in {seconds} s", flush=True)
            bad += bool(faults)
            if options.out:
                figures = {"cases": options.cases, "seed": options.seed, "seconds": seconds}
                note(options.out, name, {**figures, **counts, "findings": len(faults)})
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.dialects", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--case", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="put the figures of each dialect into this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
