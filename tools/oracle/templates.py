"""Whether the masks are right under chat templates that nobody here wrote.

    python -m tools.oracle.templates --wheels FOLDER [--out FILE]

Run by `make oracle-tests`. The templates are those that the wheels of axolotl and unsloth hold;
they are read out of the wheels in the folder, and not run as anything but a template. Every
conversation of ``tests/rendering/talks.py`` goes through every template. What is compared with is
the tokenizer's own ``apply_chat_template`` and marks around the words of each message
(``tests/rendering/oracle.py``). For each cell, a template and a conversation:

- *leak*: a token of another message, of a masked step or of a header is under the loss;
- *twice*: a step is trained in two rows;
- *no end*: the last trained token of a step is no special token, or comes after the end of the
  turn, and the renderer does not count it;
- *counted*: steps without an end of turn that the renderer counts, for which training is refused;
- *refused*: the renderer refuses the whole conversation, with a reason.

A cell with one of the first three fails the run.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from adp.rendering.chat import Chat
from adp.rendering.options import RenderOptions
from adp.rendering.render import IGNORED, Renderer, TokenRow
from adp.rendering.report import NO_END
from tests.rendering.families import UNKNOWN, tokenizer_of
from tests.rendering.oracle import check_row, ready, write
from tests.rendering.talks import TALKS, user

FAULTS = ("leak", "twice", "no end")


def templates(wheels: Path) -> Iterator[tuple[str, str]]:
    """Name and text of each template in the wheels of a folder."""
    for wheel in sorted(wheels.glob("*.whl")):
        package = wheel.name.partition("-")[0]
        with zipfile.ZipFile(wheel) as files:
            for name in sorted(files.namelist()):
                if name.endswith(".jinja"):
                    yield f"{package}/{Path(name).stem}", files.read(name).decode("utf-8")
                elif Path(name).name == "chat_templates.py":
                    for variable, text in constants(files.read(name).decode("utf-8")):
                        yield f"{package}/{variable}", text


def constants(source: str) -> Iterator[tuple[str, str]]:
    """The texts that a module assigns to names and that look like templates; it is not run."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            text, target = node.value.value, node.targets[0]
            if isinstance(text, str) and "{%" in text and isinstance(target, ast.Name):
                yield target.id, text


def made_renderer(text: str) -> Renderer:
    """A renderer of a template; one without tools takes them as text."""
    tokenizer = tokenizer_of(text)
    made = Renderer(tokenizer, RenderOptions())
    if made.template.forms.arguments is None:
        made = Renderer(tokenizer, RenderOptions(tools="text"))
    return made


def check_talk(made: Renderer, talk: Chat) -> Counter[str]:
    """What is found in the rows of one conversation."""
    rendered = made.chat(talk)
    counts: Counter[str] = Counter()
    if rendered.rejected is not None or not rendered.rows:
        counts["refused"] += 1
        return counts
    prepared = ready(made, talk)
    seen: Counter[int] = Counter()
    missing = 0
    for row in rendered.rows:
        try:
            steps = check_row(made, prepared, row, UNKNOWN)
        except AssertionError:
            counts["leak"] += 1
            continue
        seen.update(prepared.messages[step.index].step for step in steps)
        missing += sum(not ends_well(made, prepared, row, step.index) for step in steps)
    counts["twice"] += sum(count > 1 for count in seen.values())
    counted = rendered.notes[NO_END]
    counts["counted"] += counted
    counts["no end"] += max(0, missing - counted)
    counts["trained"] += rendered.trained
    return counts


def ends_well(made: Renderer, chat: Chat, row: TokenRow, index: int) -> bool:
    """Whether a step ends with a special token, and before the header of what comes next."""
    message = chat.messages[index]
    ids = row.labels[(row.step_index == message.step) & (row.labels != IGNORED)]
    words = [made.tokenizer.decode([int(number)]) for number in ids]
    last = next((word for word in reversed(words) if word.strip()), "")
    added = {str(token) for token in made.tokenizer.added_tokens_decoder.values()}
    if last not in added or last.startswith("</tool") or last in ("</think>", "</function>"):
        return False
    return bool(message.calls) or header_is_untrained(made, chat, row, index)


def header_is_untrained(made: Renderer, chat: Chat, row: TokenRow, index: int) -> bool:
    """Whether a turn of words ends before the header of a message of the user after it.

    Where the header follows the words at once, its first token may be the end of the turn.
    """
    message = chat.messages[index]
    asked = replace(user("header probe"), step=len(chat.messages))
    before = (*chat.messages[: index + 1], asked)
    text = write(made, replace(chat, messages=before), len(before))
    alone = write(made, replace(chat, messages=(asked,)), 1)
    words = message.text.strip()
    if text is None or alone is None or not words:
        return True
    between = text.rpartition("header probe")[0].rpartition(words)[2]
    start = alone.rpartition("header probe")[0]
    added = sorted(map(str, made.tokenizer.added_tokens_decoder.values()), key=len, reverse=True)
    begins = [p for p in range(len(start)) if not p or start.startswith(tuple(added), p)]
    begins += [len(made.tokenizer.bos_token)]  # what follows it need not be a special token
    header = next((start[p:] for p in sorted(begins) if between.endswith(start[p:])), "")
    closing = alone.rpartition("header probe")[2]
    for token in added:
        if closing.startswith(token):  # it ends the message before, too
            header = header.removeprefix(token)
    end = between.removesuffix(header)
    ((_, first, stop),) = [span for span in row.spans if span[0] == message.step]
    trained = row.text[first:stop].rpartition(words)[2]
    if end.strip():
        return len(trained.rstrip()) <= len(end.rstrip()) or not between.startswith(trained)
    return len(made.tokenizer(trained.strip(), add_special_tokens=False)["input_ids"]) <= 1


def check_template(text: str) -> dict[str, Any]:
    """The cells of one template."""
    try:
        made = made_renderer(text)
    except Exception as error:
        return {"unusable": f"{type(error).__name__}: {error}"[:200]}
    cells: Counter[str] = Counter()
    faults = []
    for title, talk in TALKS.items():
        result = check_talk(made, talk)
        cells["cells"] += 1
        cells.update({name: 1 for name in ("refused", *FAULTS) if result[name]})
        cells["steps trained"] += result["trained"]
        cells["steps counted"] += result["counted"]
        faults += [f"{title}: {name}" for name in FAULTS if result[name]]
    return {**cells, "faults": faults}


def main() -> int:
    """Check all templates; 1 when a cell is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wheels", type=Path, required=True, help="folder of the wheels")
    parser.add_argument("--out", type=Path, help="file for the figures")
    asked = parser.parse_args()
    figures: dict[str, Any] = {}
    for name, text in templates(asked.wheels):
        figures[name] = check_template(text)
        print(name, json.dumps(figures[name]), flush=True)
    total: Counter[str] = Counter()
    for figure in figures.values():
        total.update({key: value for key, value in figure.items() if isinstance(value, int)})
    wheels = [wheel.name for wheel in sorted(asked.wheels.glob("*.whl"))]
    totals = {"wheels": wheels, "templates": len(figures), **total}
    print(json.dumps(totals))
    if asked.out:
        text = json.dumps({**totals, "by_template": figures}, indent=2, sort_keys=True)
        asked.out.write_text(text + "\n", encoding="utf-8")
    if not figures:
        print(f"no templates in {asked.wheels}", file=sys.stderr)
    return int(not figures or any(total[name] for name in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
