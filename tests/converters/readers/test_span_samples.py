"""Real files of spans against a plain walk over their raw JSON, by dialect; see `real_files`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adp.converters.framing import lines_as_array
from tests.converters.readers.real_files import FOLDERS, Rows, real
from tests.fuzz.leaves import lost, read_lines

Json = Any


def load(path: Path) -> Json:
    """A document, or the lines of a file as a list."""
    text = path.read_text("utf-8")
    lines = [line for line in text.splitlines() if line]
    return [json.loads(line) for line in lines] if path.suffix == ".jsonl" else json.loads(text)


def files(*names: str) -> list[Path]:
    """The files with these names; none where there are no samples."""
    return [
        path for folder in FOLDERS for name in names for path in sorted(Path(folder).glob(name))
    ]


def parsed(value: Json) -> Json:
    """JSON that stands in strings, however often."""
    while isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    return value


def plain(value: dict[str, Json]) -> Json:
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [plain(item) for item in inner.get("values", [])]
    return int(inner) if kind == "intValue" else inner


def attributes(path: Path) -> list[dict[str, Json]]:
    """Name -> value of the attributes of each span."""
    data = load(path)
    if isinstance(data, list) and "spanContext" in data[0]:
        return [span["attributes"] for span in data]
    return [
        {item["key"]: plain(item["value"]) for item in span["attributes"]}
        for document in (data if isinstance(data, list) else [data])
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


class Store(Rows):
    """What became of a file."""

    def __init__(self, path: Path, folder: Path) -> None:
        super().__init__([path], folder / "store")
        assert self.manifest.counts.used == self.manifest.counts.records == 1

    def texts(self, source: str) -> list[str]:
        sql = f"SELECT text FROM steps WHERE source = '{source}' AND text IS NOT NULL"
        return sorted(row["text"] for row in self.all(f"{sql} AND kind <> 'event'"))

    def calls(self) -> list[tuple[str | None, str, Json]]:
        sql = "SELECT call_id, name, arguments FROM tool_calls"
        rows = [(row["call_id"], row["name"], parsed(row["arguments"])) for row in self.all(sql)]
        return sorted(rows, key=repr)

    def results(self) -> list[str]:
        sql = "SELECT text FROM observations WHERE call IS NOT NULL"
        return sorted(row["text"] or "" for row in self.all(sql))

    def tokens(self) -> tuple[int, int]:
        return self.total("tokens_in"), self.total("tokens_out")


# ---- OTLP --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", real("formats/otel_genai/pydantic_ai_*_otlp.json"))
def test_genai(path, tmp_path):
    """The messages of all calls of the model, each once; its instructions are the system prompt."""
    store = Store(path, tmp_path)
    chats = [it for it in attributes(path) if it.get("gen_ai.operation.name") == "chat"]
    messages = {
        json.dumps({"role": item["role"], "parts": item["parts"]}): item
        for chat in chats
        for key in ("gen_ai.input.messages", "gen_ai.output.messages")
        for item in json.loads(chat[key])
    }
    parts = [(it["role"], part) for it in messages.values() for part in it["parts"]]
    for role, source in (("system", "system"), ("user", "user"), ("assistant", "agent")):
        texts = [part["content"] for who, part in parts if who == role and part["type"] == "text"]
        assert store.texts(source) == sorted(texts)
    calls = [(it["id"], it["name"], parsed(it["arguments"])) for _, it in parts
             if it["type"] == "tool_call"]  # fmt: skip
    assert store.calls() == sorted(calls, key=repr)
    results = [it.get("result", it.get("response")) for _, it in parts
               if it["type"] == "tool_call_response"]  # fmt: skip
    assert store.results() == sorted(results)
    assert store.count("steps", "kind = 'llm_turn'") == len(chats)
    assert store.tokens() == tuple(
        sum(it[f"gen_ai.usage.{side}_tokens"] for it in chats) for side in ("input", "output")
    )


@pytest.mark.parametrize("path", real("formats/openinference/*.json"))
def test_openinference(path, tmp_path):
    store = Store(path, tmp_path)
    spans = attributes(path)
    turns = [it for it in spans if it["openinference.span.kind"] == "LLM"]
    tools = [it for it in spans if it["openinference.span.kind"] == "TOOL"]
    spoken: dict[str, set[str]] = {
        "system": set(),
        "user": set(),
        "assistant": set(),
        "tool": set(),
    }
    calls = set()
    for turn in turns:
        for key, value in turn.items():
            if key.endswith("message.role"):
                spoken[value].add(turn.get(key.replace("message.role", "message.content"), ""))
            if key.endswith("tool_call.function.name"):
                start = key.removesuffix("function.name")
                arguments = turn[f"{start}function.arguments"]
                calls.add((turn.get(f"{start}id"), value, arguments))
    for role, source in (("system", "system"), ("user", "user"), ("assistant", "agent")):
        assert store.texts(source) == sorted(spoken[role] - {""})
    assert [name for _, name, _ in store.calls()] == sorted(name for _, name, _ in calls)
    assert store.results() == sorted(spoken["tool"])
    assert len(tools) == store.count("observations")
    assert store.count("steps", "kind = 'llm_turn'") == len(turns)
    assert store.tokens() == tuple(
        sum(it[f"llm.token_count.{side}"] for it in turns) for side in ("prompt", "completion")
    )


@pytest.mark.parametrize("path", real("formats/vercel_ai_sdk_otel/*.json"))
def test_vercel(path, tmp_path):
    """Every span of this file is a trace of its own, so each tells all that it knows."""
    store = Store(path, tmp_path)
    spans = attributes(path)
    answers = [it.get("ai.response.text", it.get("ai.response.object")) for it in spans]
    spoken: dict[str, list[str]] = {"user": [], "assistant": [it for it in answers if it]}
    for span in spans:
        for key in {"ai.prompt.messages", "ai.prompt"} & set(span):
            prompt = json.loads(span[key])
            if isinstance(prompt, dict) and "messages" not in prompt:
                prompt = [{"role": "user", "content": prompt["prompt"]}]
            for item in prompt if isinstance(prompt, list) else prompt["messages"]:
                spoken.setdefault(item["role"], []).extend(content(item["content"]))
    assert store.texts("user") == sorted(spoken["user"])
    assert store.texts("agent") == sorted(spoken["assistant"])
    assert store.count("tool_calls") == sum("ai.response.toolCalls" in it for it in spans)
    turns = [it for it in spans if it.get("ai.response.finishReason")]
    assert store.count("steps", "kind = 'llm_turn'") == len(turns)
    sides = (("inputTokens", "promptTokens"), ("outputTokens", "completionTokens"))
    assert store.tokens() == tuple(
        sum(next(it[f"ai.usage.{name}"] for name in names if f"ai.usage.{name}" in it)
            for it in turns) for names in sides
    )  # fmt: skip


@pytest.mark.parametrize("path", real("formats_new/vscode_copilot_otel/*.jsonl"))
def test_visual_studio(path, tmp_path):
    """Calls and results, and no turn of the model: completeness says so."""
    store = Store(path, tmp_path)
    tools = [it for it in attributes(path) if it["gen_ai.operation.name"] == "execute_tool"]
    calls = [(it["gen_ai.tool.call.id"], it["gen_ai.tool.name"],
              parsed(it["gen_ai.tool.call.arguments"])) for it in tools]  # fmt: skip
    assert store.calls() == sorted(calls, key=repr)
    assert store.results() == sorted(it["gen_ai.tool.call.result"] for it in tools)
    assert store.value("SELECT DISTINCT contents FROM completeness") == "missing"


# ---- Langfuse ----------------------------------------------------------------------------------


def content(value: Json) -> Iterator[str]:
    """The texts of the content of a message."""
    value = parsed(value) if isinstance(value, str) and value[:2] == "[{" else value
    if isinstance(value, str):
        yield value
    for item in value if isinstance(value, list) else []:
        yield from content(item)
    if isinstance(value, dict) and value.get("type") != "tool_use":
        for key in ("text", "content", "thinking"):
            yield from content(value.get(key))


def message_texts(value: Json) -> Iterator[str]:
    """The texts of all messages in a request or a response, whatever its dialect."""
    value = parsed(value)
    for item in value if isinstance(value, list) else []:
        yield from message_texts(item)
    if not isinstance(value, dict):
        return
    if "role" in value or value.get("type") in ("human", "ai", "system", "tool"):
        yield from content(value.get("parts", value.get("content")))
        return
    for key, item in value.items():
        if key == "instructions" and isinstance(item, str):
            yield item
        elif isinstance(item, dict | list):
            yield from message_texts(item)


@pytest.mark.parametrize("path", real("formats/langfuse/*.json"))
def test_langfuse(path, tmp_path):
    store = Store(path, tmp_path)
    observations = load(path)["observations"]
    turns = [it for it in observations if it["type"] == "GENERATION"]
    expected = {text for it in turns for key in ("input", "output")
                for text in message_texts(it[key])} - {""}  # fmt: skip
    sql = "SELECT text, reasoning FROM steps WHERE kind <> 'event'"
    ours = {text for row in store.all(sql) for text in row.values() if text}
    results = {text for row in store.all("SELECT text, visible_text FROM observations")
               for text in row.values() if text}  # fmt: skip
    assert expected <= ours | results
    outputs = "\n".join(json.dumps(it["output"], ensure_ascii=False) for it in observations)
    assert all(json.dumps(text, ensure_ascii=False)[1:40] in outputs for text in ours - expected)
    natives = {row["native_id"] for row in store.all("SELECT native_id FROM steps")}
    assert {it["id"] for it in turns} <= natives
    assert store.total("tokens_in") == sum(
        (it["usageDetails"] or {}).get("input", 0) for it in turns
    )
    tools = sum(it["type"] == "TOOL" for it in observations)
    assert store.count("observations", "call IS NOT NULL") >= tools


@pytest.mark.parametrize("path", real("formats_new/langfuse/*.trace.json"))
def test_langfuse_says_what_its_chatml_says(path, tmp_path):
    """The expected messages of each call of a model, as Langfuse's adapters make them."""
    store = Store(path, tmp_path)
    oracle = load(path.with_name(path.name.replace(".trace.", ".chatml.")))
    trace = load(path)
    turns = [it for it in trace["observations"] if it["type"] == "GENERATION"]
    messages = [
        message for it in turns for side in oracle[it["id"]].values()
        for message in side.get("data", [])
    ]  # fmt: skip
    texts = {it["content"] for it in messages if isinstance(it.get("content"), str)}
    texts = {text for text in texts if text and '"function"' not in text[:20]}  # Koog's calls
    ours = {row["text"] for row in store.all("SELECT text FROM steps WHERE kind <> 'event'")}
    seen = store.all("SELECT coalesce(visible_text, text) AS text FROM observations")
    outputs = [parsed(it["output"]) for it in turns]
    texts |= {it["instructions"] for it in outputs if isinstance(it, dict) and "instructions" in it}
    assert (ours | {row["text"] for row in seen}) - {None, ""} == texts
    calls = {(it["id"] or None, it["name"], json.dumps(parsed(it["arguments"]))) for message in
             messages for it in message.get("tool_calls", [])}  # fmt: skip
    stored = [(ident, name, json.dumps(arguments)) for ident, name, arguments in store.calls()]
    assert calls <= set(stored)
    assert not calls or len(stored) == len(set(stored))
    natives = {row["native_id"] for row in store.all("SELECT native_id FROM steps")}
    assert {it["id"] for it in turns} <= natives


# ---- MLflow and LangSmith ----------------------------------------------------------------------


@pytest.mark.parametrize("path", real("formats/mlflow/*.json"))
def test_mlflow(path, tmp_path):
    store = Store(path, tmp_path)
    spans = [{key: parsed(value) for key, value in it["attributes"].items()}
             for it in load(path)["data"]["spans"]]  # fmt: skip
    models = [it for it in spans if it["mlflow.spanType"] in ("LLM", "CHAT_MODEL")]
    tools = [it for it in spans if it["mlflow.spanType"] == "TOOL"]
    texts = {text for it in models for key in ("mlflow.spanInputs", "mlflow.spanOutputs")
             for text in message_texts(it[key])} - {""}  # fmt: skip
    spoken = {row["text"] for row in store.all("SELECT text FROM steps WHERE kind <> 'event'")}
    assert texts == (spoken - {None}) | ({*store.results()} & texts)
    assert store.count("observations", "call IS NOT NULL") == len(tools)
    assert store.count("steps", "kind = 'llm_turn'") == len(models)
    assert store.total("tokens_in") == sum(
        it.get("mlflow.chat.tokenUsage", {}).get("input_tokens", 0) for it in models
    )


@pytest.mark.parametrize(
    "path", real("formats/langsmith/*wrap*.json", "formats_new/langsmith/*.json")
)
def test_langsmith(path, tmp_path):
    store = Store(path, tmp_path)
    batch = load(path)
    runs = {run["id"]: run for run in batch["post"]}
    patches = batch.get("patch", [])
    outputs = [run["outputs"] for run in patches if run.get("outputs")]
    answers = {
        choice["message"].get("content") for it in outputs for choice in it.get("choices", [])
    }
    assert store.texts("agent") == sorted(filter(None, answers))
    users = {item["content"] for run in runs.values() for item in run["inputs"]["messages"]
             if item["role"] == "user"}  # fmt: skip
    assert store.texts("user") == sorted(users)
    assert store.count("steps", "kind = 'llm_turn'") == len(runs)
    usages = [it["usage_metadata"] for it in outputs if it.get("usage_metadata")]
    assert store.tokens() == tuple(
        sum(it[f"{side}_tokens"] for it in usages) for side in ("input", "output")
    )


ALL = {
    "otlp": ("formats/otel_genai/pydantic*.json", "formats/openinference/*.json",
             "formats/vercel_ai_sdk_otel/*.json", "formats_new/vscode_copilot_otel/*.jsonl"),
    "langfuse": ("formats/langfuse/*.json", "formats_new/langfuse/*.trace.json"),
    "langsmith": ("formats/langsmith/*wrap*.json", "formats_new/langsmith/*.json"),
    "mlflow": ("formats/mlflow/*.json",),
}  # fmt: skip


NONE = pytest.param("", None, marks=pytest.mark.skip(reason="no files: set ADP_FORMAT_SAMPLES"))


@pytest.mark.parametrize(
    ("name", "path"), [(name, it) for name in ALL for it in files(*ALL[name])] or [NONE]
)
def test_every_value_of_a_real_file_is_in_the_rows(name, path):
    data = path.read_bytes()
    record = lines_as_array(data) if path.suffix == ".jsonl" else data
    assert lost(record, read_lines(name, record)) == []
