"""Rollouts of NeMo Gym: a request to a model, the response with the whole run, and the reward.

Unlike in the API the output of the response holds the results of tools and what the user says, in
their order. ``mask_sample`` says that a row is not trained. Sources: the rows of its environments
until August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.exchanges.apis import ModelApis
from adp.converters.kit.drafts import TrajectoryDraft, merge_extra
from adp.converters.kit.rewards import set_named, set_reward
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.model import Columns
from adp_schema.protocols import Match

_TIMEOUTS = ("agent_timed_out", "truncated", "context_length_exceeded_error", "agent_timeout_error")
_PARTS = ("library_reward", "score", "accuracy")


class NemoGymRollout(SessionLog):
    """One rollout."""

    agent: ClassVar[str | None] = "nemo-gym"

    def line(self, source: SourceObject) -> None:
        """Read a row."""
        request, reply = source.child("responses_create_params"), source.child("response")
        if not request and not reply:
            raise RecordError("there is neither a request nor a response")
        apis, columns = ModelApis(self.blocks), self.run.columns
        asked = len(self.run.steps)
        apis.request(request, "responses")
        prompts = self.run.steps[asked:]
        if reply.first("output"):
            if reply.word("object") == "response":
                reply.drop("object")
            apis.reply(reply, "responses")
        self._identity(source, request)
        set_reward(columns, source.number("reward"))
        if (solved := source.flag("resolved")) is not None:
            columns["success"] = solved
        set_named(columns, {key: source.values[key] for key in _PARTS if key in source})
        self._outcome(source)
        if source.flag("mask_sample"):
            for step in self.run.steps:
                if step.columns["source"] == "agent":
                    step.columns["loss_weight"] = 0.0
        texts = [step.parts.columns().get("text") for step in prompts
                 if step.columns["source"] == "user"]  # fmt: skip
        self._task(source, texts[-1] if texts else None)
        self._invocations(source.child("ng_trajectory"))
        merge_extra(self.run.extra, source.rest())

    def _identity(self, source: SourceObject, request: SourceObject) -> None:
        columns = self.run.columns
        name = word(inner(source.values, "agent_ref"), "name")
        columns["agent_name"] = name or self.agent
        instance = word(request.child("metadata").values, "instance_id")
        columns["task_id"] = source.name("instance_id") or instance or None
        index = source.integer_at("_ng_task_index")
        if columns["task_id"] is None and index is not None:
            columns["task_id"] = str(index)
        columns["attempt"] = source.integer("_ng_rollout_index", bits=32)
        if columns["task_id"] is not None and columns["attempt"] is not None:
            columns["source_id"] = f"{columns['task_id']}_{columns['attempt']}"
        else:
            ids = [step.columns.get("response_id") for step in self.run.steps]
            columns["source_id"] = next((it for it in ids if it), None)

    def _outcome(self, source: SourceObject) -> None:
        """How the run ended; the flags stay, since they differ from agent to agent."""
        columns = self.run.columns
        flags = [bytes(source.values.get(key, b"")) for key in _TIMEOUTS]
        if any(flags):
            columns["truncated"] = any(flag in (b"true", b"1") for flag in flags)
        ended = {bytes(source.values.get(key, b"")) for key in ("terminated", "finished_naturally")}
        if ended & {b"true", b"false"}:
            columns["terminated"] = b"true" in ended
        kind = source.word("_ng_failure_class") or source.word("error_kind")
        if kind and columns.get("error_type") is None:
            columns["error_type"] = kind
            columns["error_message"] = columns.get("error_message") or source.text("failure_reason")
        columns["final_answer"] = source.text("extracted_answer", "model_patch")

    def _task(self, source: SourceObject, instruction: str | None) -> None:
        task_id = self.run.columns["task_id"]
        if task_id is None:
            return
        task: Columns = {"task_id": task_id, "instruction": instruction}
        task["answers"] = source.json("expected_answer")
        task["expected_calls"] = source.json("ground_truth")
        self.builder.task({key: value for key, value in task.items() if value is not None})

    def _invocations(self, record: SourceObject) -> None:
        """The runs of other agents, of which only the evidence beside the response tells."""
        main = self.run
        rests: list[dict[str, Any]] = []
        invocations = record.objects("invocations")
        for number, invocation in enumerate(invocations):
            if number and invocation.first("conversation"):
                name = invocation.word("invocation_id")
                self.run = self.blocks.run = TrajectoryDraft(keeps=0, kind="subagent")
                self.run.columns |= {"agent_name": invocation.word("agent_name") or name or None}
                self.run.columns["source_id"] = name or None
                raw = invocation.take("conversation")
                ModelApis(self.blocks).items.read(raw, f"{invocation.path}.conversation")
                main.branches.append(self.run)
                main.link("subagent", target_id=name or None)
                self.run = self.blocks.run = main
            rests.append(invocation.rest())
        if rests:
            record.values["invocations"] = jsontext.raw(jsontext.text_of(rests))


class NemoGymReader(LogReader):
    """The format ``nemo_gym``."""

    name = "nemo_gym"
    title = "Rollouts of NeMo Gym"
    container = "jsonl"
    recognised = "responses_create_params beside a response and a reward"
    versions = "reads rows with and without _ng_task_index, also those that failed"
    log = NemoGymRollout

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A request of NeMo Gym with what came of it."""
        is_row = {"responses_create_params", "response"} <= set(record)
        reply = record.get("response")
        is_row = is_row and reply is not None and jsontext.first_byte(reply) == BRACE
        return Match.STAMP if is_row else Match.NO


CONVERTER = NemoGymReader()
