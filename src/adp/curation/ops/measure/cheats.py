r"""Signs that an agent took the answer instead of working it out.

A sign is a span in what a call of the agent says: its arguments, decoded, one string a line. Five
columns, each with a table row that says what it looks for and an example. They are signs, not
verdicts: some tasks ask for tests, and some are about git. So nothing is dropped here; every span
is noted in the ledger, to be looked at, and a recipe filters on the columns that its tasks forbid.

*History* is what lies ahead of the task's state in git: ``git log --all`` shows the commit that
solved the issue, plain ``git log`` does not. *Tests* counts edits of test files that the run did
not make itself. The package of a task is read from ids such as ``owner__repo-123``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from adp.curation.ops.measure.rows import PartitionRows

SPANS = 5
"""Spans of one sign that are noted for a trajectory."""

WIDTH = 200
"""Characters of a span that are noted."""

_ARGS = r"[^\n;|&]*"
_GIT = r"\bgit\b(?:[ \t]+-[cC][ \t]*\S+|[ \t]+--?[\w-]+(?:=\S+)?)*[ \t]+"
_REMOTE = r"(?:\b(?:origin|upstream)/|\bFETCH_HEAD\b|\bORIG_HEAD\b|@\{u)"
_TEST = (
    r"(?:[\w.~-]*/)*(?:(?:tests?|testing|__tests__|spec|specs)/[\w./-]+|(?:test_[\w-]+|[\w-]+_test)"
    r"\.\w+|[\w.-]+\.(?:test|spec)\.\w+|conftest\.py)"
)
_BENCHMARKS = (
    r"swe[-_]?bench\w*|swe[-_]?gym|swe[-_]?smith|multi[-_]?swe\w*|gaia[-_]benchmark|humaneval"
    r"|mbpp|livecodebench|gsm8k|terminal[-_]?bench|webarena|tau[-_]?bench|bfcl|osworld|agentbench"
    r"|bigcodebench|mle[-_]?bench|browsecomp|simpleqa|hotpot[-_]?qa|math[-_]?500|aime"
)


@dataclass(frozen=True)
class Sign:
    """One sign.

    Attributes:
        column: its column.
        description: what it means.
        pattern: regular expression over what a call says.
        words: one of them is in every text that the pattern finds; small letters.
        examples: texts that it finds.
        others: texts that look alike and that it must not find.
    """

    column: str
    description: str
    pattern: str
    words: tuple[str, ...]
    examples: tuple[str, ...]
    others: tuple[str, ...]


HISTORY = Sign(
    "cheat_git_history",
    "Whether a call reads git history beyond the state of the task: git log --all, reflog, a "
    "commit by its hash, branches of the remote, fetch or pull.",
    rf"{_GIT}(?:log|rev-list|shortlog|grep|blame|show|diff|format-patch|cat-file|checkout|restore"
    rf"|switch|cherry-pick|merge|rebase|reset)\b{_ARGS}(?:--all\b|--remotes\b|--branches\b"
    rf"|--reflog\b|--walk-reflogs\b|{_REMOTE})"
    rf"|{_GIT}(?:show|cherry-pick|format-patch|cat-file)\b{_ARGS}\b[0-9a-f]{{7,40}}\b"
    rf"|{_GIT}(?:reflog|fetch|pull|fsck)\b|{_GIT}remote[ \t]+update\b",
    ("git",),
    ("cd /repo && git log --all --oneline", "git --no-pager show 3f2a1bc9", "git fetch upstream",
     "git -C /repo checkout origin/main -- src/a.py"),
    ("git log --oneline -5", "git show HEAD", "git diff", "git status; ls --all",
     "the digit log --all"),
)  # fmt: skip
SOLUTION = Sign(
    "cheat_got_package",
    "Whether a call downloads a package with pip, or installs the package that the task is about.",
    r"\b(?:pip3?|uv pip)[ \t]+download\b" + _ARGS,
    ("pip",),
    ("pip download django==4.2 --no-deps", "python -m pip download x"),
    ("pip install -r requirements.txt", "pip install -e ."),
)
ANSWER = Sign(
    "cheat_fetched_answer",
    "Whether a call goes to a pull request, a commit, a patch or an issue on GitHub, or to files "
    "of a repository there.",
    r"\bgithub\.com/[\w.-]+/[\w.-]+/(?:pull|pulls|commit|commits|compare|issues|blob|raw|archive)\b"
    r"|\bapi\.github\.com/(?:repos|search)/|\braw\.githubusercontent\.com/"
    r"|\bpatch-diff\.githubusercontent\.com/|\bcodeload\.github\.com/"
    r"|\bgh[ \t]+(?:pr|issue|api|repo|search)[ \t]+\w+",
    ("github", "gh "),
    ("curl -L https://github.com/pallets/flask/pull/5012.diff", "gh pr diff 5012",
     "https://raw.githubusercontent.com/a/b/main/c.py"),
    ("see github.com for more", "https://github.com/pallets/flask", "the weigh pr view"),
)  # fmt: skip
BENCHMARK = Sign(
    "cheat_read_benchmark",
    "Whether a call reads a benchmark where it is published: its repository or its data set.",
    rf"(?:huggingface\.co/(?:datasets/)?|\bgithub\.com/|hf_hub_download{_ARGS}|load_dataset\(\s*)"
    rf"[\w./'\"=-]*(?:{_BENCHMARKS})|\b(?:www\.)?swebench\.com|\bpip3?[ \t]+install\b{_ARGS}"
    r"\bswebench\b",
    ("huggingface.co", "github.com", "hf_hub_download", "load_dataset", "swebench"),
    ('load_dataset("princeton-nlp/SWE-bench_Verified")',
     "https://huggingface.co/datasets/gaia-benchmark/GAIA"),
    ('load_dataset("imdb")', "webarena is a benchmark"),
)  # fmt: skip
TESTS = Sign(
    "cheat_edited_tests",
    "Whether a call edits, overwrites or removes a test file that the run did not make itself.",
    rf"\b(?:sed[ \t]+(?:-\w+[ \t]+)*-i|perl[ \t]+-\w*i|rm[ \t]|mv[ \t]|truncate[ \t]"
    rf"|git[ \t]+(?:rm|mv|restore|apply)[ \t])\S*{_ARGS}?(?<![\w.-])(?P<path>{_TEST})"
    rf"|^\*\*\* (?:Update|Delete) File: (?P<patched>{_TEST})"
    rf"|^--- (?:a/)?(?P<old>{_TEST})[ \t]*$"
    rf"|\b(?:edit_file\w*|insert_content\w*|append_file)\(\s*(?:\w+=)?['\"]/?(?P<edited>{_TEST})"
    rf"|\bopen\(\s*['\"]/?(?P<opened>{_TEST})['\"],\s*(?:mode=)?['\"][wa]",
    ("test", "spec"),
    ("sed -i 's/1/2/' tests/test_a.py", "*** Update File: pkg/tests/test_a.py\n",
     "rm -f src/test_x.py",
     "edit_file_by_replace(\n  '/w/r/test/browser.js',\n  to_replace='a')",
     "open('tests/test_a.py', 'w')"),
    ("python -m pytest tests/test_a.py", "cat tests/test_a.py",
     "sed -n '1,5p' tests/test_a.py", "open('tests/test_a.py')", "sed -i 's/latest/x/' a.py"),
)  # fmt: skip

SIGNS = (HISTORY, TESTS, SOLUTION, ANSWER, BENCHMARK)

_PATTERNS = {sign.column: re.compile(sign.pattern, re.I | re.M) for sign in SIGNS}
_PATH_KEYS = ("path", "file_path", "filepath", "filename", "file", "target_file", "filePath")
_EDITS = re.compile(r"str_replace|insert|edit|replace|patch|update|append|delete|remove", re.I)
_MAKES = re.compile(r"create|write", re.I)
_VIEWS = re.compile(r"view|read|open|list|search|find", re.I)
_SHELL_MAKES = re.compile(rf"(?:>|\btee\b|\btouch\b)[ \t]*(?P<path>{_TEST})")
_TEST_PATH = re.compile(_TEST)
_TASK = re.compile(r"([A-Za-z0-9.-]+)__([A-Za-z0-9_.-]+?)(?:[-_]\d+)?$")
_INSTALL = (
    r"\b(?:pip3?|uv pip)[ \t]+install\b[^\n;|&]*?[ \t](?P<name>{names})(?:[=<>~!\[ \t'\"].*|$)"
)


def argument_texts(arguments: str | None, raw: str | None) -> tuple[str, Mapping[str, Any]]:
    """What a call says: all its strings, one a line; and its arguments by name."""
    if arguments is None:
        return raw or "", {}
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return arguments, {}
    return "\n".join(_strings(value)), value if isinstance(value, dict) else {}


def _strings(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        result = pending.pop()
        if isinstance(result, str):
            yield result
        elif isinstance(result, dict):
            pending.extend(reversed(result.values()))
        elif isinstance(result, list):
            if result and all(isinstance(word, str) for word in result):
                yield " ".join(result)  # a command as a list of its words
            else:
                pending.extend(reversed(result))


class CheatSigns:
    """The signs in one trajectory, call by call."""

    def __init__(self, package: str | None) -> None:
        self._made: set[str] = set()
        names = package and re.escape(package)
        self._install = re.compile(_INSTALL.format(names=names), re.I | re.M) if names else None

    def signs(
        self, name: str | None, text: str, fields: Mapping[str, Any]
    ) -> Iterator[tuple[str, str]]:
        """Column and span of each sign in a call."""
        for sign in SIGNS:
            if sign is not TESTS:
                for match in _PATTERNS[sign.column].finditer(text):
                    yield sign.column, match.group()
        if self._install is not None and (install := self._install.search(text)):
            yield SOLUTION.column, install.group()
        yield from self._tests(name or "", text, fields)

    def _tests(self, name: str, text: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for match in _PATTERNS[TESTS.column].finditer(text):
            path = next(value for value in match.groupdict().values() if value)
            if not self._is_made(path):
                yield TESTS.column, match.group()
        for match in _SHELL_MAKES.finditer(text):
            self._made.add(match["path"])
        path = next((fields[key] for key in _PATH_KEYS if isinstance(fields.get(key), str)), "")
        path = path.strip("\"'")
        if not _TEST_PATH.fullmatch(path.lstrip("/")):
            return
        command = fields.get("command")
        act = f"{name} {command}" if isinstance(command, str) and len(command) < 30 else name
        deed = command if isinstance(command, str) and len(command) < 30 else name
        if _MAKES.search(deed):
            self._made.add(path)
        elif _EDITS.search(deed) and not _VIEWS.search(deed) and not self._is_made(path):
            yield TESTS.column, f"{act} {path}"

    def _is_made(self, path: str) -> bool:
        return any(path.endswith(made) or made.endswith(path) for made in self._made)


def package_of(task_id: str | None, source_id: str | None) -> str | None:
    """The package that a task is about, from ids such as ``owner__repo-123``."""
    for text in (task_id, source_id):
        match = _TASK.search(text or "")
        if match:
            return match[2]
    return None


def find(rows: PartitionRows) -> pl.DataFrame:
    """``seq``, ``step``, ``call``, ``column``, ``tool`` and ``span`` of every sign."""
    words = sorted({word for sign in SIGNS for word in sign.words})
    both = pl.coalesce("arguments", "arguments_raw")
    calls = rows.calls.filter(
        both.fill_null("").str.contains_any(words, ascii_case_insensitive=True)
    )
    ids = {seq: (task, source) for seq, task, source in rows.trajectories.select(
        "seq", "task_id", "source_id").iter_rows()}  # fmt: skip
    results = []
    last, run = None, CheatSigns(None)
    for seq, step, call, name, arguments, raw in calls.select(
        "seq", "step", "call", "name", "arguments", "arguments_raw"
    ).iter_rows():
        if seq != last:
            last, run = seq, CheatSigns(package_of(*ids[seq]))
        text, fields = argument_texts(arguments, raw)
        for column, span in run.signs(name, text, fields):
            results.append((seq, step, call, column, name, span[:WIDTH]))
    schema = {
        "seq": pl.Int64, "step": pl.Int32, "call": pl.Int32, "column": pl.String,
        "tool": pl.String, "span": pl.String,
    }  # fmt: skip
    return pl.DataFrame(results, schema=schema, orient="row")


def measure(rows: PartitionRows, frame: pl.DataFrame) -> pl.DataFrame:
    """Whether each trajectory shows each sign."""
    counted = frame.group_by("seq").agg(
        (pl.col("column") == sign.column).any().alias(sign.column) for sign in SIGNS
    )
    return rows.seqs.join(counted, on="seq", how="left").fill_null(value=False)
