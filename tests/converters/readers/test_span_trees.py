"""Trees of agents with planted texts, calls and results: each is there once, in every format."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from tests.fuzz.leaves import read_lines

Node = dict[str, Any]


class Tree:
    """A run with subagents, as spans that repeat the history in each call of a model."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.spans: list[Node] = []
        self.texts: list[str] = []
        self.calls: list[str] = []
        self.results: list[tuple[str, str]] = []
        self.tokens = 0
        self.agents = 0
        self.agent(None, "The task is big.", 0)

    def _span(self, kind: str, parent: str | None, **fields: Any) -> Node:
        number = len(self.spans) + 1
        span = {"kind": kind, "id": f"s{number}", "parent": parent, "start": number, **fields}
        self.spans.append(span)
        return span

    def agent(self, parent: str | None, task: str, depth: int) -> str:
        """Run an agent, and return what it says last."""
        self.agents += 1
        name = f"agent {self.agents}"
        span = self._span("agent", parent, name=name)
        history: list[Node] = [{"role": "user", "content": task}]
        self.texts.append(task)
        for turn in range(self.rng.randint(1, 4)):
            text = f"{name} says {turn}."
            calls = [] if turn == 3 else self._calls()
            answer: Node = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls
                                                                     else {})}  # fmt: skip
            tokens = self.rng.randint(1, 99)
            self._span("llm", span["id"], name="chat", prompt=list(history), answer=answer,
                       tokens=tokens)  # fmt: skip
            self.texts.append(text)
            self.tokens += tokens
            history.append(answer)
            for call in calls:
                result = self._tool(span["id"], call, depth)
                history.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            if not calls:
                break
        return text

    def _calls(self) -> list[Node]:
        made = []
        for _ in range(self.rng.randint(0, 2)):
            self.calls.append(f"c{len(self.calls)}")
            arguments = json.dumps({"place": self.calls[-1]})
            made.append({"id": self.calls[-1], "type": "function",
                         "function": {"name": "look", "arguments": arguments}})  # fmt: skip
        return made

    def _tool(self, parent: str, call: Node, depth: int) -> str:
        span = self._span("tool", parent, name="look", call=call)
        if depth < 2 and self.rng.random() < 0.4:
            result = self.agent(span["id"], f"Subtask of {call['id']}.", depth + 1)
        else:
            result = f"Seen by {call['id']}."
        span["result"] = result
        self.results.append((call["id"], result))
        return result


def otlp(tree: Tree) -> Any:
    operations = {"agent": "invoke_agent", "llm": "chat", "tool": "execute_tool"}

    def parts(message: Node) -> Node:
        if message["role"] == "tool":
            part = {"type": "tool_call_response", "id": message["tool_call_id"],
                    "response": message["content"]}  # fmt: skip
            return {"role": "tool", "parts": [part]}
        calls = [{"type": "tool_call", "id": it["id"], "name": it["function"]["name"],
                  "arguments": json.loads(it["function"]["arguments"])}
                 for it in message.get("tool_calls", [])]  # fmt: skip
        text = {"type": "text", "content": message["content"]}
        return {"role": message["role"], "parts": [text, *calls]}

    out = []
    for span in tree.spans:
        attributes: Node = {"gen_ai.operation.name": operations[span["kind"]]}
        if span["kind"] == "agent":
            attributes["gen_ai.agent.name"] = span["name"]
        elif span["kind"] == "llm":
            attributes |= {"gen_ai.input.messages": json.dumps(list(map(parts, span["prompt"]))),
                           "gen_ai.output.messages": json.dumps([parts(span["answer"])]),
                           "gen_ai.usage.input_tokens": span["tokens"]}  # fmt: skip
        else:
            attributes |= {"gen_ai.tool.name": "look", "gen_ai.tool.call.id": span["call"]["id"],
                           "gen_ai.tool.call.result": span["result"]}  # fmt: skip
        out.append({"name": span["name"], "trace_id": "t", "span_id": span["id"],
                    "parent_id": span["parent"], "start_time": 1790000000 + span["start"],
                    "attributes": attributes})  # fmt: skip
    return out


def openinference(tree: Tree) -> Any:
    def flat(place: str, messages: list[Node]) -> Node:
        out: Node = {}
        for number, message in enumerate(messages):
            start = f"llm.{place}_messages.{number}.message"
            for key in ("role", "content", "tool_call_id"):
                if key in message:
                    out[f"{start}.{key}"] = message[key]
            for index, call in enumerate(message.get("tool_calls", [])):
                inner = f"{start}.tool_calls.{index}.tool_call"
                out[f"{inner}.id"] = call["id"]
                for key, value in call["function"].items():
                    out[f"{inner}.function.{key}"] = value
        return out

    out = []
    for span in tree.spans:
        attributes: Node = {"openinference.span.kind": span["kind"].upper(), "session.id": "s"}
        if span["kind"] == "llm":
            attributes |= flat("input", span["prompt"]) | flat("output", [span["answer"]])
            attributes["llm.token_count.prompt"] = span["tokens"]
        elif span["kind"] == "tool":
            attributes |= {"tool.name": "look", "output.value": span["result"],
                           "input.value": span["call"]["function"]["arguments"]}  # fmt: skip
        out.append({"name": span["name"], "context": {"trace_id": "t", "span_id": span["id"]},
                    "parent_id": span["parent"], "start_time": 1790000000 + span["start"],
                    "attributes": attributes})  # fmt: skip
    return out


def langfuse(tree: Tree) -> Any:
    types = {"agent": "AGENT", "llm": "GENERATION", "tool": "TOOL"}
    rows = []
    for span in tree.spans:
        row = {"id": span["id"], "traceId": "t", "parentObservationId": span["parent"],
               "type": types[span["kind"]], "name": span["name"],
               "startTime": f"2026-10-07T10:{span['start'] // 60:02d}:{span['start'] % 60:02d}.000Z"
               }  # fmt: skip
        if span["kind"] == "llm":
            row |= {"input": span["prompt"], "output": span["answer"],
                    "usageDetails": {"input": span["tokens"]}}  # fmt: skip
        elif span["kind"] == "tool":
            attributes = {"gen_ai.tool.call.id": span["call"]["id"]}
            row |= {"input": span["call"]["function"]["arguments"], "output": span["result"],
                    "metadata": {"attributes": attributes}}  # fmt: skip
        rows.append(row)
    return {"id": "t", "name": "run", "timestamp": "2026-10-07T10:00:00.000Z", "observations": rows}


def langsmith(tree: Tree) -> Any:
    types = {"agent": "chain", "llm": "llm", "tool": "tool"}
    rows = []
    for span in tree.spans:
        row = {"id": span["id"], "trace_id": "s1", "parent_run_id": span["parent"],
               "run_type": types[span["kind"]], "name": span["name"],
               "start_time": 1790000000 + span["start"]}  # fmt: skip
        if span["kind"] == "llm":
            row |= {"inputs": {"messages": span["prompt"]},
                    "outputs": {"choices": [{"message": span["answer"]}]},
                    "prompt_tokens": span["tokens"]}  # fmt: skip
        elif span["kind"] == "tool":
            output = {"type": "tool", "content": span["result"], "tool_call_id": span["call"]["id"]}
            row |= {"inputs": json.loads(span["call"]["function"]["arguments"]),
                    "outputs": {"output": output}}  # fmt: skip
        rows.append(row)
    return rows


def langsmith_inside(tree: Tree) -> Any:
    rows = {row["id"]: row for row in langsmith(tree)}
    for row in rows.values():
        if row["parent_run_id"] is not None:
            rows[row["parent_run_id"]].setdefault("child_runs", []).append(row)
    return [row for row in rows.values() if row["parent_run_id"] is None]


def mlflow(tree: Tree) -> Any:
    types = {"agent": "AGENT", "llm": "CHAT_MODEL", "tool": "TOOL"}
    spans = []
    for span in tree.spans:
        values: Node = {"mlflow.spanType": types[span["kind"]]}
        if span["kind"] == "llm":
            values |= {"mlflow.spanInputs": {"messages": span["prompt"]},
                       "mlflow.spanOutputs": {"choices": [{"message": span["answer"]}]},
                       "mlflow.chat.tokenUsage": {"input_tokens": span["tokens"]}}  # fmt: skip
        elif span["kind"] == "tool":
            values |= {"mlflow.spanInputs": json.loads(span["call"]["function"]["arguments"]),
                       "mlflow.spanOutputs": span["result"]}  # fmt: skip
        spans.append({"trace_id": "t", "span_id": span["id"], "parent_span_id": span["parent"],
                      "name": span["name"], "start_time_unix_nano": 10**9 * (1790000000 +
                      span["start"]), "attributes": {key: json.dumps(value) for key, value in
                      values.items()}})  # fmt: skip
    return {"info": {"trace_id": "t"}, "data": {"spans": spans}}


RENDERED = [otlp, openinference, langfuse, langsmith, langsmith_inside, mlflow]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("render", RENDERED)
def test_what_was_planted_is_there_once(render, seed):
    tree = Tree(seed)
    record = render(tree)
    places = record if isinstance(record, list) else record.get("observations") or (
        record["data"]["spans"])  # fmt: skip
    random.Random(seed).shuffle(places)
    name = {openinference: "otlp"}.get(render, render.__name__.removesuffix("_inside"))
    rows = read_lines(name, json.dumps(record).encode()).rows
    steps = [row for row in rows["steps"] if row["kind"] != "event"]
    assert Counter(row["text"] for row in steps if row.get("text")) == Counter(tree.texts)
    assert sum(row.get("tokens_in") or 0 for row in steps) == tree.tokens
    assert Counter(row["call_id"] for row in rows["tool_calls"]) == Counter(tree.calls)
    results = [(row["call_id"], row["text"]) for row in rows["observations"]]
    assert Counter(results) == Counter(tree.results)
    assert all(row.get("call") is not None for row in rows["observations"])
    kinds = Counter(row.get("branch_kind") for row in rows["trajectories"])
    assert kinds["subagent"] == len(rows["links"]) == tree.agents - 1
    assert kinds["alternate"] == 0
