"""The tables of fields: every field of every format is kept, or said to be lost."""

import json

import pytest

from adp.converters.registry import BUILTIN, formats
from tools.tables.field_table import (
    EXTRA,
    LOST,
    NATIVE,
    STRUCTURE,
    VERDICTS,
    SilentLossError,
    field_rows,
)

KNOWN = {name: formats.get(name) for name in BUILTIN}


@pytest.fixture(scope="module")
def tables():
    return {name: {row.path: row for row in field_rows(name)} for name in KNOWN}


class Altered:
    """A converter with a fault planted: what it writes, or reads, goes through a function."""

    def __init__(self, converter, *, written=lambda record: record, seen=lambda data: data):
        self.converter, self.written, self.seen = converter, written, seen

    def __getattr__(self, name):
        return getattr(self.converter, name)

    def read(self, record, builder, losses):
        record.data = self.seen(record.data)
        self.converter.read(record, builder, losses)

    def write(self, trajectory, losses):
        return self.written(self.converter.write(trajectory, losses))


@pytest.mark.slow  # `make check` makes the same tables
@pytest.mark.parametrize("name", KNOWN)
def test_no_field_is_lost_in_silence(name, tables):
    rows = tables[name].values()
    assert len(rows) > 50
    for row in rows:
        assert set(row.verdict.split(", ")) <= set(VERDICTS)
        assert set(row.targets) == set(KNOWN) - {name}
        # Whatever a format's own reader knows, it keeps.
        assert LOST not in row.verdict, row.path
        assert row.columns or row.verdict == STRUCTURE


@pytest.mark.slow  # `make check` makes the same tables
@pytest.mark.parametrize(
    ("name", "path", "verdict", "column"),
    [
        ("adp_v1", "$.content[api_action].kwargs.argument", NATIVE, "tool_calls.arguments"),
        ("adp_v1", "$.content[web_observation].html", NATIVE, "observations.html"),
        ("adp_v1", "$.available_apis[0]", EXTRA, "trajectories.extra.available_apis"),
        ("openai_chat", "$.messages[assistant].reasoning_content", NATIVE, "steps.reasoning"),
        ("openai_chat", "$.messages[assistant].refusal", EXTRA, "steps.extra.refusal"),
        ("openai_chat", "$.messages[developer].role", EXTRA, "steps.extra.role"),
    ],
)
def test_fields_are_found_where_they_are_kept(tables, name, path, verdict, column):
    row = tables[name][path]
    assert (row.verdict, row.columns) == (verdict, [column])


@pytest.mark.slow  # `make check` makes the same tables
@pytest.mark.parametrize(
    ("name", "path", "target", "verdict"),
    [
        ("adp_v1", "$.content[api_action].function", "openai_chat", NATIVE),
        ("adp_v1", "$.content[code_action].content", "openai_chat", "to tool_calls.arguments"),
        ("adp_v1", "$.content[web_observation].url", "openai_chat", LOST),
        ("openai_chat", "$.messages[tool].tool_call_id", "adp_v1", NATIVE),
        ("openai_chat", "$.model", "adp_v1", LOST),
    ],
)
def test_fields_in_other_formats(tables, name, path, target, verdict):
    assert tables[name][path].targets[target] == verdict


def drop_reasoning(record):
    for message in record["messages"]:
        message.pop("reasoning_content", None)
    return record


def test_a_writer_that_drops_a_field_is_caught():
    planted = {**KNOWN, "openai_chat": Altered(KNOWN["openai_chat"], written=drop_reasoning)}
    with pytest.raises(SilentLossError, match=r"lost in the openai_chat.*\.reasoning"):
        field_rows("adp_v1", planted)


def test_a_reader_that_drops_a_field_is_caught():
    def forget(data):
        record = json.loads(data)
        for message in record["messages"] if isinstance(record["messages"], list) else []:
            message.pop("refusal", None)
        return json.dumps(record).encode()

    planted = {**KNOWN, "openai_chat": Altered(KNOWN["openai_chat"], seen=forget)}
    with pytest.raises(SilentLossError, match=r"refusal is lost in the store"):
        field_rows("openai_chat", planted)


def test_a_reported_loss_is_no_silent_one():
    class Honest(Altered):
        def write(self, trajectory, losses):
            for index, step in enumerate(trajectory.steps):
                if step.reasoning is not None:
                    losses.add(f"$.steps[{index}].reasoning", "dropped on purpose")
            return drop_reasoning(self.converter.write(trajectory, losses))

    rows = field_rows("adp_v1", {**KNOWN, "openai_chat": Honest(KNOWN["openai_chat"])})
    verdicts = {row.path: row.targets["openai_chat"] for row in rows}
    assert verdicts["$.content[api_action].reasoning_content"] == LOST
