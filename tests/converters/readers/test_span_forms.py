"""The same spans in the forms in which collectors, services and databases give them."""

from __future__ import annotations

import json

import pytest

from adp.workflows.doctor import diagnose
from tests.converters.readers.samples_store import example

RAIN = [
    ("user", "Is it dry in Ghent?"),
    ("agent", None),
    ("agent", "Yes, it is dry."),
]


@pytest.mark.parametrize("file", ["jaeger.json", "clickhouse.jsonl"])
def test_spans_of_jaeger_and_clickhouse(file):
    rows = example("otlp", file) if file.endswith("json") else lines_of(file)
    spoken = [(it["source"], it.get("text")) for it in rows["steps"] if it["kind"] != "event"]
    assert spoken == RAIN
    (call,) = rows["tool_calls"]
    assert (call["name"], json.loads(call["arguments"])) == ("get_rain", {"city": "Ghent"})
    (result,) = rows["observations"]
    assert (result["text"], result["call"]) == ("no rain", call["call"])
    assert sum(step.get("tokens_in", 0) for step in rows["steps"]) == 32
    turns = [step for step in rows["steps"] if step["kind"] == "llm_turn"]
    assert all(step["timestamp"].year == 2026 for step in turns)
    assert all(step["duration_ms"] is not None for step in turns)


def lines_of(file):
    """A file of lines is one record."""
    from adp.converters.framing import lines_as_array
    from tests.fuzz.leaves import read_lines
    from tests.fuzz.readers import EXAMPLES

    data = lines_as_array((EXAMPLES / "otlp" / file).read_bytes())
    rows = read_lines("otlp", data).rows
    return {
        table: [{key: value for key, value in row.items() if value is not None} for row in items]
        for table, items in rows.items()
    }


def span(number, **more):
    text = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"q{number}"}]}])
    answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}])
    pairs = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": text,
             "gen_ai.output.messages": answer}  # fmt: skip
    attributes = [{"key": key, "value": {"stringValue": it}} for key, it in pairs.items()]
    return {"traceId": "ab" * 16, "spanId": f"{number:016x}", "name": "chat m",
            "startTimeUnixNano": str(1767225600000000000 + number),
            "attributes": attributes, **more}  # fmt: skip


SPANS = [span(1), span(2)]
SCOPES = [{"scope": {"name": "s"}, "spans": SPANS}]
FORMS = {
    "resources": [{"resource": {}, "scopeSpans": SCOPES}],
    "one resource": {"resource": {}, "scopeSpans": SCOPES},
    "trace": {"trace": {"resourceSpans": [{"resource": {}, "scopeSpans": SCOPES}]}},
    "snake": {"resource_spans": [{"scope_spans": [{"spans": SPANS}]}]},
    "spans": {"spans": SPANS},
    "list": SPANS,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_otlp(form, tmp_path):
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(FORMS[form]), encoding="utf-8")
    (file,) = diagnose([str(path)]).files
    assert (file.format, file.rejected, file.trajectories) == ("otlp", 0, 2)  # q2 repeats no q1
    assert file.steps == 4


def test_a_resource_without_spans_or_models_is_left_alone(tmp_path):
    path = tmp_path / "logs.json"
    path.write_text(json.dumps({"resource": {}, "scopeLogs": [{"logRecords": []}]}))
    with pytest.raises(Exception, match="no format recognises it"):
        diagnose([str(path)])
