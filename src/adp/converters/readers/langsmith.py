"""Traces of LangSmith: runs a line, trees of runs, and batches ``{post, patch}``.

Where the outputs of the root hold messages, as those of LangGraph do, they are the trajectory;
otherwise it is put together from the runs of models, whose prompts repeat the history. Inputs and
outputs that say what the steps say are left out; all else of a run is kept. Sources: the reference
of the API; what the SDKs for Python and JavaScript send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from adp.converters.kit.conversations import (
    Conversation,
    KnownValues,
    items_of,
    longest,
    raw_leaves,
)
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, emit, merge_extra
from adp.converters.kit.langchain_messages import is_message, read_message
from adp.converters.kit.model_apis import ModelApis, reply_kind, request_kind, take_tools
from adp.converters.kit.run_tree import head_columns, is_answer, take_run_times, traces, walk
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_MODELS = frozenset({"llm", "chat_model"})


class Traces(SessionLog):
    """The traces of a record."""

    def read(self) -> None:
        """Read each trace as a trajectory."""
        for runs in traces(self.record.data, self.losses):
            self.run = self.blocks.run = TrajectoryDraft()
            self.apis = ModelApis(self.blocks)
            self.known_values = KnownValues()
            self._trace(runs)
            if not self.run.steps and self.run.columns.get("source_id") is None:
                raise RecordError("the trace holds no message", runs[0].path)
            emit(self.run, self.builder)

    def _trace(self, runs: list[SourceObject]) -> None:
        names = {run.word("id") for run in runs}
        root = next((run for run in runs if run.word("parent_run_id") not in names), runs[0])
        self.taken: list[SourceObject] = []
        head_columns(root, self.run.columns)
        models = [run for run in runs if run.word("run_type") in _MODELS]
        talks: list[Conversation] = []
        if root not in models and self._messages(root):
            talks = [Conversation(self.run, prompt=[b"root"])]
            models = self._unmatched(models)
        self._conversations(models, talks)
        self._tools([run for run in runs if run.word("run_type") == "tool"])
        left = [self._rest(run) for run in runs if run is not root and run not in self.taken]
        if left:
            self.run.extra["runs"] = left
        if root not in self.taken:
            self.run.extra.update(self._rest(root))

    # ---- a root with messages --------------------------------------------------------------

    def _messages(self, root: SourceObject) -> bool:
        """Read the messages that the root gave, after those of its inputs that they leave out."""
        outputs = self._first(root, "outputs")
        if not outputs:
            return False
        present = raw_leaves(root.values.get("outputs"))
        for raw in self._first(root, "inputs"):
            content = SourceObject(raw, "$", self.losses).values.get("content")
            leaves = raw_leaves(content if content is not None else raw)
            if not leaves - {"user", "human"} <= present:
                self._add(raw, f"{root.path}.inputs")
        for number, raw in enumerate(outputs):
            self._add(raw, f"{root.path}.outputs.messages[{number}]")
        return True

    def _first(self, run: SourceObject, key: str) -> list[Raw]:
        """The first list of messages in the inputs or the outputs of a run."""
        for raw in walk(run.values.get(key)):
            items: list[Raw] = jsontext.decode_array(raw)
            if all(is_message(item, self.losses) for item in items):
                return items
        return []

    def _add(self, raw: Raw, path: str) -> StepDraft | None:
        self.known_values.add(raw)
        return read_message(self.apis.chat, raw, path)

    def _unmatched(self, models: list[SourceObject]) -> list[SourceObject]:
        """Join runs of models to turns, by the id of the message or by what it says.

        Returns:
            The runs that answered with something else: those of agents inside the graph.
        """
        turns = [step for step in self.run.steps if step.columns["source"] == "agent"]
        left = []
        for run in models:
            name, leaves = run.word("id"), raw_leaves(run.values.get("outputs"))
            turn = next((it for it in turns if is_answer(it, name, leaves)), None)
            if turn is not None:
                turns.remove(turn)
                self._turn(run, turn)
            elif leaves and not run.word("error"):
                left.append(run)
        return left

    # ---- runs of models --------------------------------------------------------------------

    def _conversations(self, models: list[SourceObject], talks: list[Conversation]) -> None:
        """Each prompt goes on with a conversation, or begins one: a branch, but for the first."""
        main = self.run
        for run in models:
            messages = self._first(run, "inputs")
            talk, known = longest(talks, messages)
            if talk is None:
                draft = main if not talks else TrajectoryDraft(keeps=0, kind="subagent")
                if talks:
                    main.branches.append(draft)
                talk = Conversation(draft)
                talks.append(talk)
            self.run = self.blocks.run = talk.value
            self._prompt(run, messages, known)
            talk.hear(messages)
            step = self._answer(run)
            talk.answered = step is not None
            if step is not None:
                self._turn(run, step)
        self.run = self.blocks.run = main

    def _prompt(self, run: SourceObject, messages: list[Raw], known: int) -> None:
        inputs = run.child("inputs")
        take_tools(inputs, self.run.columns)
        options = run.child("extra").child("invocation_params")
        take_tools(options, self.run.columns)
        for number, raw in enumerate(messages[known:], known):
            self._add(raw, f"{inputs.path}.messages[{number}]")
        if not messages and request_kind(inputs.values) in ("responses", "gemini"):
            self.apis.request(inputs, request_kind(inputs.values))
        for raw in [] if messages else inputs.items("prompts"):
            self.blocks.content(raw, self.run.step("user"), inputs.path)

    def _answer(self, run: SourceObject) -> StepDraft | None:
        """A reply of an API, a generation, or a message."""
        outputs = run.child("outputs")
        kind = reply_kind(outputs.values)
        if kind:
            return self.apis.reply(outputs, kind)
        raw = outputs.values.get("generations")
        while raw is not None and jsontext.first_byte(raw) == BRACKET:
            raw = next(iter(jsontext.decode_array(raw)), None)
        generation = SourceObject(raw, outputs.path, self.losses)
        for source, key in ((generation, "message"), (outputs, "message"), (outputs, "output")):
            message = source.values.get(key)
            if message is not None and is_message(message, self.losses):
                return self._add(message, f"{source.path}.{key}")
        lists = self._first(run, "outputs")
        steps = [self._add(it, f"{outputs.path}.messages") for it in lists]
        if steps:
            return steps[-1]
        text = generation.word("text") or outputs.word("output")
        if not text:
            return None
        step = self.run.step("agent", "llm_turn")
        step.parts.text(self.builder.text(text))
        self.known_values.add(jsontext.text_of({"text": text, "output": text}).encode())
        return step

    def _turn(self, run: SourceObject, step: StepDraft) -> None:
        """Times, model and tokens of a run of a model."""
        self.taken.append(run)
        take_run_times(run, step.columns)
        extra = run.child("extra")
        names = (extra.child("metadata").word("ls_model_name"),
                 extra.child("invocation_params").word("model"),
                 extra.child("invocation_params").word("model_name"))  # fmt: skip
        model = step.columns.get("model") or next(filter(None, names), None)
        step.columns["model"] = model
        if model is not None:
            self.run.columns["agent_model"] = model
        for key, column in (("prompt_tokens", "tokens_in"), ("completion_tokens", "tokens_out")):
            if step.columns.get(column) is None and run.integer_at(key) is not None:
                step.columns[column] = run.integer_at(key)
        cost = SourceObject(jsontext.text_of(run.values).encode(), "$", self.losses)
        if step.columns.get("cost_usd") is None:
            step.columns["cost_usd"] = cost.number("total_cost", "cost")
        merge_extra(step.extra, {"run": self._rest(run)})

    def _tools(self, runs: list[SourceObject]) -> None:
        """Join the runs of tools to calls: by the id in their result, or by name and order."""
        drafts = [self.run, *self.run.branches]
        calls = [call for draft in drafts for step in draft.steps for call in step.calls]
        for run in runs:
            leaves = raw_leaves(run.values.get("outputs")) | raw_leaves(run.values.get("inputs"))
            same = (it for it in calls if it.columns.get("call_id") in leaves)
            named = (it for it in calls if it.columns.get("name") == run.word("name"))
            call = next(same, None) or next(named, None)
            if call is None:
                continue
            calls.remove(call)
            self.taken.append(run)
            take_run_times(run, call.columns)
            call.extra["run"] = self._rest(run)

    def _rest(self, run: SourceObject) -> dict[str, Any]:
        """A run without inputs and outputs that the steps tell, too."""
        rest = run.rest()
        for key in ("inputs", "outputs"):
            if key in rest:
                present = self.known_values.rest(jsontext.text_of(rest.pop(key)).encode())
                rest |= {} if present is None else {key: Raw(present)}
        return {
            key: jsontext.raw(jsontext.one_line(it)) if isinstance(it, Raw) else it
            for key, it in rest.items()
        }


class LangSmith(LogReader):
    """The format ``langsmith``."""

    name = "langsmith"
    title = "Runs and traces of LangSmith"
    recognised = "a run_type with a dotted order, a trace or children, or a batch of posts"
    versions = "reads runs a line, trees, lists, and batches of updates"
    log = Traces

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A run, or a batch of runs."""
        keys = set(record)
        if word(record, "run_type") and keys & {"dotted_order", "trace_id", "child_runs", "inputs"}:
            return Match.STAMP
        for key in ("post", "patch", "runs"):
            items = items_of(record.get(key))
            if items and jsontext.first_byte(items[0]) == BRACE:
                run = jsontext.decode_object(items[0])
                if "dotted_order" in run or "run_type" in run:
                    return Match.STAMP
        return Match.NO


CONVERTER = LangSmith()
