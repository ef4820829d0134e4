"""What a trajectory says, by role: the texts that ops compare, in the order of the messages.

System prompts and tool schemas are the same in thousands of trajectories, so an op that compares
texts has to choose whose words it looks at. `views` gives them one text a row. Rows with the same
``seq`` and ``message`` are parts of one message; an n-gram that would go from one message into the
next says nothing about either.

| kind | what |
|---|---|
| ``system`` | texts of the system |
| ``task`` | texts of the user before the first step of the agent |
| ``user`` | texts of the user after that |
| ``agent`` | reasoning and text of the agent, without the spans that were read as calls |
| ``actions`` | calls of the agent: the name of the tool and the arguments, see `action_text` |
| ``observations`` | results of calls, and what else the environment says |
| ``patch`` | what is written into files: new texts of edits, added lines of patches |

``all`` stands for all but ``patch``, which would say the same a second time. Context edits, events
and copied context are left out: they repeat what other rows say.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec
import polars as pl

from adp.curation.partitions import Partition

Kind = Literal["system", "task", "user", "agent", "actions", "observations", "patch", "all"]

EVERYTHING: tuple[Kind, ...] = ("system", "task", "user", "agent", "actions", "observations")
"""What ``all`` stands for."""

_SPOKEN = frozenset({"system", "task", "user", "agent", "observations", "patch"})
"""Kinds that need the table of steps."""

_WRITTEN = frozenset(
    {
        *("new_str", "new_string", "new_content", "new_text", "insert_text", "file_text"),
        *("replacement", "replace", "updated_code", "new_code"),
    }
)
"""Names of arguments whose text goes into a file."""

_WHOLE = frozenset({"content", "contents", "text", "body", "code"})
"""Names of arguments whose text goes into a file when another argument names that file."""

_FILES = frozenset({"path", "file_path", "filepath", "file", "filename", "file_name"})

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode

_DIFFS = ("diff --git ", "*** Begin Patch", "\n@@ ", "--- a/")
"""What a text with a patch in it contains."""


def views(partition: Partition, kinds: Collection[str]) -> pl.DataFrame:
    """The texts of some roles of the trajectories of a partition.

    Args:
        partition: which trajectories.
        kinds: which texts: some of the kinds above, or ``all``.

    Returns:
        ``seq``; ``step`` (-1 for what came before the first); ``message`` (number of the message
        among the rows of its trajectory, from 0); ``kind``; ``text``. In the order of ``seq`` and
        of the messages; within a message reasoning comes before text, and text before calls. Rows
        with an empty text are left out.
    """
    wanted = set(wanted_kinds(kinds))
    parts = []
    if wanted & _SPOKEN:
        parts.append(_spoken(partition, wanted))
    if wanted & {"actions", "patch"}:
        parts.append(_actions(partition, wanted))
    if wanted & {"observations", "patch"}:
        parts.append(_observations(partition, wanted))
    rows = pl.concat(parts) if parts else _no_rows()
    message = pl.struct("seq", "step", "lane").rle_id()
    return (
        rows.filter(pl.col("kind").is_in(list(wanted)) & (pl.col("text").str.len_bytes() > 0))
        .sort("seq", "step", "lane", "part", "place", maintain_order=True)
        .with_columns(message.alias("message"))
        .select(
            "seq",
            "step",
            (pl.col("message") - pl.col("message").first().over("seq")).alias("message"),
            "kind",
            "text",
        )
    )


def wanted_kinds(kinds: Collection[str]) -> list[str]:
    """The kinds, with what ``all`` stands for in its place."""
    every = EVERYTHING if "all" in kinds else ()
    return sorted({*kinds, *every} - {"all"})


def _no_rows() -> pl.DataFrame:
    return pl.DataFrame(
        schema={
            "seq": pl.Int64,
            "step": pl.Int32,
            "lane": pl.Int32,
            "part": pl.Int32,
            "place": pl.Int32,
            "kind": pl.String,
            "text": pl.String,
        }
    )


def _shaped(rows: pl.DataFrame, kind: Any, text: Any, **at: Any) -> pl.DataFrame:
    """The columns of `_no_rows`; ``at`` gives lane, part and place where they are not 0."""

    def number(name: str) -> pl.Expr:
        value = at.get(name, 0)
        expression = value if isinstance(value, pl.Expr) else pl.lit(value)
        return expression.fill_null(0).cast(pl.Int32).alias(name)

    return rows.select(
        "seq",
        pl.col("step").fill_null(-1),
        *(number(name) for name in ("lane", "part", "place")),
        kind.alias("kind"),
        text.alias("text"),
    )


def _spoken(partition: Partition, wanted: set[str]) -> pl.DataFrame:
    """Texts of steps: part 0 is reasoning, part 1 text; part 3 patches in a text."""
    columns = ["step", "source", "kind", "text", "prose", "reasoning", "is_copied_context"]
    steps = partition.read("steps", columns)
    talk = pl.col("kind").is_null() | pl.col("kind").is_in(["message", "llm_turn"])
    steps = steps.filter(talk & ~pl.col("is_copied_context").fill_null(False))
    agent = pl.col("source") == "agent"
    first = steps.filter(agent).group_by("seq").agg(pl.col("step").min().alias("first"))
    steps = steps.join(first, on="seq", how="left", maintain_order="left")
    before = pl.col("first").is_null() | (pl.col("step") < pl.col("first"))
    kind = (
        pl.when(agent).then(pl.lit("agent"))
        .when(pl.col("source") == "system").then(pl.lit("system"))
        .when((pl.col("source") == "user") & before).then(pl.lit("task"))
        .when(pl.col("source") == "user").then(pl.lit("user"))
        .otherwise(pl.lit("observations"))
    )  # fmt: skip
    text = pl.when(agent).then(pl.coalesce("prose", "text")).otherwise(pl.col("text"))
    parts = [_shaped(steps, kind, text, part=1)]
    if "agent" in wanted:
        parts.append(_shaped(steps.filter(agent), pl.lit("agent"), pl.col("reasoning")))
    if "patch" in wanted:
        parts.append(_patches(steps.filter(agent), part=3))
    return pl.concat(parts)


def _actions(partition: Partition, wanted: set[str]) -> pl.DataFrame:
    """Texts of calls: part 2 is the call, part 4 what it writes."""
    columns = ["step", "call", "requestor", "name", "arguments", "arguments_raw"]
    calls = partition.read("tool_calls", columns)
    calls = calls.filter(pl.col("requestor").fill_null("agent") == "agent")
    results = []
    arguments = calls["arguments"].to_list()
    if "actions" in wanted:
        raw = calls["arguments_raw"].to_list()
        texts = [
            action_text(name, given, else_)
            for name, given, else_ in zip(calls["name"].to_list(), arguments, raw, strict=True)
        ]
        text = pl.lit(pl.Series(texts, dtype=pl.String))
        results.append(_shaped(calls, pl.lit("actions"), text, part=2, place=pl.col("call")))
    if "patch" in wanted:
        written = pl.lit(pl.Series([written_text(given) for given in arguments], dtype=pl.String))
        results.append(_shaped(calls, pl.lit("patch"), written, part=4, place=pl.col("call")))
    return pl.concat(results)


def _observations(partition: Partition, wanted: set[str]) -> pl.DataFrame:
    """Texts of observations; each is a message of its own."""
    rows = partition.read("observations", ["step", "order", "text"])
    lane = pl.col("order").fill_null(0) + 1
    results = [_shaped(rows, pl.lit("observations"), pl.col("text"), lane=lane)]
    if "patch" in wanted:
        results.append(_patches(rows, lane=lane, part=1))
    return pl.concat(results)


def _patches(rows: pl.DataFrame, **at: Any) -> pl.DataFrame:
    """The lines that patches in the column ``text`` add."""
    held = rows.filter(pl.col("text").str.contains_any(["diff --git ", "*** Begin Patch"]))
    added = pl.Series([added_lines(text) for text in held["text"].to_list()], dtype=pl.String)
    return _shaped(held, pl.lit("patch"), pl.lit(added), **at)


# ---- calls --------------------------------------------------------------------------------------


def canonical_json(text: str | None) -> str | None:
    """JSON with sorted keys and without white space; what cannot be read stays as it is.

    It serves to compare arguments; they are never written like that.
    """
    if text is None:
        return None
    try:
        return _encode(_decode(text)).decode("utf-8")
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return text


def action_text(name: str | None, arguments: str | None, raw: str | None = None) -> str:
    r"""A call as text: the tool's name, and a line for each argument, in the order of the keys.

    Args:
        name: name of the tool.
        arguments: arguments as JSON.
        raw: arguments as written, when they are not valid JSON.

    Returns:
        Such as ``"edit\nnew: def f():\n    pass\npath: a.py"``. Texts stand there as they are,
        without quotes and escapes, so that what a call writes can be compared with a file.
    """
    value = _decoded(arguments)
    try:
        if isinstance(value, str):
            plain = value
        else:
            plain = raw or "" if value is msgspec.UNSET else "\n".join(_lines(value, ""))
    except RecursionError:
        plain = arguments or ""
    return f"{name or ''}\n{plain}" if plain else name or ""


def _decoded(text: str | None) -> Any:
    """The value of a JSON text; UNSET when there is none, the text itself when it is invalid."""
    if text is None:
        return msgspec.UNSET
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        return text


def _lines(value: Any, key: str) -> list[str]:
    """A line for each leaf; keys of objects in objects stand one after another."""
    if isinstance(value, str):
        return [key + value]
    if isinstance(value, dict):
        lines: list[str] = []
        for name in sorted(value):
            item = value[name]
            if isinstance(item, str) or type(item) is int:
                lines.append(f"{key}{name}: {item}")
            else:
                lines += _lines(item, f"{key}{name}: ")
        return lines
    if isinstance(value, list):
        return [line for item in value for line in _lines(item, key)]
    return [key + msgspec.json.encode(value).decode("utf-8")]


def written_text(arguments: str | None) -> str:
    """What a call writes into files, as far as the names of its arguments tell.

    Args:
        arguments: arguments as JSON.

    Returns:
        New texts of edits, contents of files and added lines of patches, joined by line ends;
        empty when the call writes nothing.
    """
    value = _decoded(arguments)
    if isinstance(value, str):
        return added_lines(value)
    try:
        return "\n".join(_written(value))
    except RecursionError:
        return ""


def _written(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _written(item)]
    if not isinstance(value, dict):
        return []
    names_file = any(key in _FILES for key in value)
    results: list[str] = []
    for key, item in value.items():
        if not isinstance(item, str):
            results += _written(item)
        elif any(mark in item for mark in _DIFFS):
            results.append(added_lines(item))
        elif key in _WRITTEN or (names_file and key in _WHOLE):
            results.append(item)
    return [text for text in results if text]


def added_lines(text: str) -> str:
    """The lines that a patch in a text adds, without their plus signs.

    Read are unified diffs (from ``@@`` to the first line that cannot belong to one) and the form
    ``*** Begin Patch``.
    """
    results: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(("@@", "*** Add File", "*** Update File")):
            inside = True
        elif line.startswith(("diff --git ", "*** End Patch")):
            inside = False
        elif inside and line.startswith("+++ "):
            continue
        elif inside and line.startswith("+"):
            results.append(line[1:])
        elif inside and line and line[0] not in " -\\":
            inside = False
    return "\n".join(results)


def check_kinds(kinds: Sequence[str]) -> None:
    """Check that at least one kind is named.

    Raises:
        ValueError: none is.
    """
    if not kinds:
        raise ValueError("views names no text; name some, such as agent and actions")
