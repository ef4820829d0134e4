"""Making a loose record strict: ``harbor`` for Harbor's models, ``upstream`` for the ADP project's.

Both have fixed keys at every level. A key that a level does not have moves into the ``extra`` of
that level; what cannot be said at all is reported.
"""

from __future__ import annotations

from typing import Any

from adp.converters.atif import keys as k
from adp.converters.atif.early_observations import is_early
from adp.converters.atif.parts import Places, parts_of
from adp.converters.atif.values import (
    is_null,
    is_number,
    is_numbers,
    is_text,
    is_time,
    items_of,
    plain,
    whole_number,
)
from adp.converters.json_objects import members
from adp_schema import jsontext
from adp_schema.losses import Losses

VERSION, AUDIO_VERSION = "ATIF-v1.7", "ATIF-v1.8"

_AGENT_ONLY = {
    k.HARBOR: ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"),
    k.UPSTREAM: ("reasoning_effort", "reasoning_content", "tool_calls"),
}
_NAMES = {k.HARBOR: (k.UNKNOWN, k.UNKNOWN), k.UPSTREAM: ("atif", k.UNKNOWN)}

Item = dict[str, Any]


def make_strict(record: Item, flavour: str, losses: Losses, early: int = 0) -> Item:
    """Bring a record into a flavour.

    Args:
        record: a loose record, as `write.Writer` makes it.
        flavour: ``harbor`` or ``upstream``.
        losses: takes what the flavour cannot say.
        early: number of steps before the first one of the trajectory.
    """
    return _Strict(flavour, losses, early).trajectory(record, "$")


class _Strict:
    def __init__(self, flavour: str, losses: Losses, early: int) -> None:
        self.flavour = flavour
        self.harbor = flavour == k.HARBOR
        self.losses = losses
        self.early = early
        self.audio = False
        self.made = 0

    def trajectory(self, record: Item, path: str) -> Item:
        """A trajectory with its agent, steps and embedded trajectories."""
        out, extra = self._split(record, k.TRAJECTORY)
        for key in ("session_id", "trajectory_id", "notes", "continued_trajectory_ref"):
            self._only_text(out, extra, key)
        out["agent"] = self._agent(out.get("agent"))
        steps = out.get("steps") or []
        out["steps"] = [self._step(step, n, path) for n, step in enumerate(steps)]
        if not steps:
            self.losses.add(f"{path}.steps", "ATIF needs a step; an empty one is written")
            out["steps"] = [{"step_id": 1, "source": "system", "message": ""}]
        self._final_metrics(out, extra)
        if "subagent_trajectories" in out:
            out["subagent_trajectories"] = self._embedded(out["subagent_trajectories"], path)
        out["schema_version"] = AUDIO_VERSION if self.audio and self.harbor else VERSION
        if not self.harbor and "trajectory_id" in out:
            out.setdefault("session_id", out["trajectory_id"])
        return _ordered(out, extra, k.TRAJECTORY)

    def _split(self, value: Any, order: tuple[str, ...]) -> tuple[Item, Item]:
        """The values under known keys, and the ``extra`` with all other keys."""
        full = dict(members(value) or {})
        given = full.pop("extra", None)
        child = members(given)
        extra = dict(child or {})
        if child is None and not is_null(given):
            extra["value"] = given
        out: Item = {}
        for key, item in full.items():
            if key in order and not is_null(item):
                out[key] = item
            elif key not in order:
                extra[key if key not in extra else f"{key}_"] = item
        return out, extra

    def _only_text(self, out: Item, extra: Item, *names: str) -> None:
        """Values that must be texts: any other moves into ``extra``."""
        for name in names:
            if name in out and not is_text(out[name]):
                extra[name] = out.pop(name)

    def _agent(self, value: Any) -> Item:
        out, extra = self._split(value, k.AGENT)
        self._only_text(out, extra, "name", "version", "model_name")
        name, version = _NAMES[self.flavour]
        out.setdefault("name", name)
        out.setdefault("version", version)
        if "tool_definitions" in out:
            listed = items_of(out["tool_definitions"])
            if listed is None or any(members(item) is None for item in listed):
                extra["tool_definitions"] = out.pop("tool_definitions")
        return _ordered(out, extra, k.AGENT)

    def _embedded(self, branches: Any, path: str) -> list[Item]:
        """Embedded trajectories; each needs an id of its own."""
        out: list[Item] = []
        seen: set[str] = set()
        for index, branch in enumerate(branches):
            place = f"{path}.branches[{index}]"
            child = _Strict(self.flavour, self.losses, int(is_early(branch)))
            record = child.trajectory(branch, place)
            self.audio = self.audio or child.audio
            name = plain(record.get("trajectory_id", record.get("session_id"))) or "subagent"
            unique, number = name, 1
            while unique in seen:
                number += 1
                unique = f"{name}#{number}"
            if unique != name:
                self.losses.add(f"{place}.source_id", "another trajectory has this id")
            seen.add(unique)
            record["trajectory_id"] = jsontext.string(unique)
            out.append(_ordered(record, {}, k.TRAJECTORY))
        return out

    # ---- steps -----------------------------------------------------------------------------

    def _step(self, value: Any, index: int, path: str) -> Item:
        out, extra = self._split(value, k.STEP)
        place = f"{path}.steps[{index - self.early}]"
        if index < self.early:
            place = f"{path}.early_observations"
        if "step_id" in out and plain(out["step_id"]) != index + 1:
            extra["step_id"] = out["step_id"]
        out["step_id"] = index + 1
        source = plain(out.get("source"))
        if source not in ("system", "user", "agent"):
            extra["source"], source = out.get("source"), "system"
            out["source"] = source
        self._only_text(out, extra, "timestamp", "model_name", "reasoning_content")
        if self.harbor and not is_time(plain(out.get("timestamp"))):
            extra["timestamp"] = out.pop("timestamp")
        self._effort(out, extra)
        places = Places(place, "message", extra)
        out["message"] = self._parts(out.get("message", ""), places)
        if out["message"] is None:
            extra["message"], out["message"] = members(value)["message"], ""  # type: ignore[index]
        self._only_agent(out, extra, source, place)
        ids = self._calls(out, place)
        self._observation(out, extra, ids, place)
        self._metrics(out, extra)
        self._scalars(out, extra)
        return _ordered(out, extra, k.STEP)

    def _effort(self, out: Item, extra: Item) -> None:
        value = out.get("reasoning_effort")
        if value is None or is_text(value):
            return
        if not is_number(value):
            extra["reasoning_effort"] = out.pop("reasoning_effort")
        elif not self.harbor:
            out["reasoning_effort"] = bytes(jsontext.encode(value)).decode("ascii")

    def _only_agent(self, out: Item, extra: Item, source: Any, place: str) -> None:
        """What only a step of the agent may have."""
        if source == "agent":
            if self.harbor and plain(out.get("llm_call_count")) == 0:
                for name in ("metrics", "reasoning_content"):
                    if name in out:
                        extra[name] = out.pop(name)
            return
        for name in _AGENT_ONLY[self.flavour]:
            if name in out:
                extra[name] = out.pop(name)
                if name == "reasoning_content":
                    reason = "only the agent may reason; it is kept in extra.reasoning_content"
                    self.losses.add(f"{place}.reasoning", reason)
                if name == "tool_calls":
                    for n in range(len(extra[name])):
                        reason = "only the agent may call; the call is kept in extra.tool_calls"
                        for column in ("name", "arguments", "arguments_raw", "call_id", "extra"):
                            self.losses.add(f"{place}.calls[{n}].{column}", reason)

    def _scalars(self, out: Item, extra: Item) -> None:
        if "is_copied_context" in out and not isinstance(plain(out["is_copied_context"]), bool):
            extra["is_copied_context"] = out.pop("is_copied_context")
        if "llm_call_count" in out:
            count = whole_number(out["llm_call_count"])
            if count is None or count < 0:
                extra["llm_call_count"] = out.pop("llm_call_count")
            else:
                out["llm_call_count"] = count

    def _metrics(self, step: Item, above: Item) -> None:
        """Token counts, cost, ids and log probabilities."""
        if "metrics" not in step:
            return
        if members(step["metrics"]) is None:
            above["metrics"] = step.pop("metrics")
            return
        out, extra = self._split(step["metrics"], k.METRICS)
        for name in k.TOKEN_COLUMNS:
            if name in out:
                count = whole_number(out[name])
                if count is None:
                    extra[name] = out.pop(name)
                else:
                    out[name] = count
        first, second = ("cost_usd", "cost") if self.harbor else ("cost", "cost_usd")
        if second in out:
            if first in out:
                extra[second] = out.pop(second)
            else:
                out[first] = out.pop(second)
        if first in out and not is_number(out[first]):
            extra[first] = out.pop(first)
        for name in (*k.ID_COLUMNS, "logprobs"):
            if name in out and not is_numbers(out[name], integers=name != "logprobs"):
                extra[name] = out.pop(name)
        step["metrics"] = _ordered(out, extra, k.METRICS)

    def _final_metrics(self, out: Item, above: Item) -> None:
        if "final_metrics" not in out:
            return
        if members(out["final_metrics"]) is None:
            above["final_metrics"] = out.pop("final_metrics")
        elif self.harbor:
            child, extra = self._split(out["final_metrics"], k.FINAL_METRICS)
            for name in list(child):
                count = whole_number(child[name]) if name != "total_cost_usd" else None
                if count is not None:
                    child[name] = count
                elif name != "total_cost_usd" or not is_number(child[name]):
                    extra[name] = child.pop(name)
            out["final_metrics"] = _ordered(child, extra, k.FINAL_METRICS)

    # ---- calls and results -----------------------------------------------------------------

    def _calls(self, step: Item, place: str) -> set[Any]:
        """Calls with an id, a name and an object of arguments. Returns the ids."""
        ids: set[Any] = set()
        if "tool_calls" not in step:
            return ids
        calls: list[Item] = []
        for n, call in enumerate(items_of(step["tool_calls"]) or []):
            out, extra = self._split(call, k.CALL)
            self._only_text(out, extra, "tool_call_id", "function_name")
            if "tool_call_id" not in out:
                self.made += 1
                out["tool_call_id"] = f"call_made_{self.made}"
            out.setdefault("function_name", "")
            out["arguments"] = self._arguments(out.get("arguments"), f"{place}.calls[{n}]")
            ids.add(plain(out["tool_call_id"]))
            calls.append(_ordered(out, extra, k.CALL))
        step["tool_calls"] = calls
        return ids

    def _arguments(self, value: Any, place: str) -> Any:
        if value is None:
            return {}
        text = plain(value) if is_text(value) else None
        if text is not None and text.strip().startswith("{") and jsontext.is_valid(text):
            return jsontext.raw(text.strip())
        if text is None and members(value) is not None:
            return value
        reason = "it is not a JSON object and is written under the key arguments"
        self.losses.add(f"{place}.arguments", reason)
        self.losses.add(f"{place}.arguments_raw", reason)
        return {"arguments": value}

    def _observation(self, step: Item, above: Item, ids: set[Any], place: str) -> None:
        if "observation" not in step:
            return
        if members(step["observation"]) is None:
            above["observation"] = step.pop("observation")
            return
        out, extra = self._split(step["observation"], k.OBSERVATION)
        results = items_of(out.get("results")) or []
        out["results"] = [
            self._result(
                result,
                ids,
                f"{place}.observations[{n}]" if "early" not in place else f"{place}[{n}]",
            )
            for n, result in enumerate(results)
        ]
        if extra and self.harbor:
            above["observation_extra"], extra = extra, {}
        step["observation"] = _ordered(out, extra, k.OBSERVATION)

    def _result(self, value: Any, ids: set[Any], place: str) -> Item:
        out, extra = self._split(value, k.RESULT)
        self._only_text(out, extra, "source_call_id")
        if self.harbor and "source_call_id" in out and plain(out["source_call_id"]) not in ids:
            extra["source_call_id"] = out.pop("source_call_id")
            reason = "no call of its step has this id; it is kept in extra.source_call_id"
            self.losses.add(f"{place}.call_id", reason)
            self.losses.add(f"{place}.native_call_id", reason)
        if "content" in out:
            content = self._parts(out["content"], Places(place, "content", extra))
            if content is None:
                extra["content"] = out.pop("content")
            else:
                out["content"] = content
        elif not self.harbor:
            out["content"] = ""
        if "subagent_trajectory_ref" in out:
            self._refs(out, extra)
        return _ordered(out, extra, k.RESULT)

    def _refs(self, out: Item, extra: Item) -> None:
        """References to subagents; Harbor wants a path or the trajectory's own id."""
        refs = items_of(out["subagent_trajectory_ref"])
        if refs is None or any(members(ref) is None for ref in refs):
            extra["subagent_trajectory_ref"] = out.pop("subagent_trajectory_ref")
        elif self.harbor:
            written = [self._ref(ref) for ref in refs]
            out["subagent_trajectory_ref"] = [ref for ref in written if ref is not None]
            if None in written:
                extra["subagent_trajectory_ref"] = refs

    def _ref(self, value: Any) -> Item | None:
        out, extra = self._split(value, k.REF)
        self._only_text(out, extra, "trajectory_id", "trajectory_path", "session_id")
        if "trajectory_id" not in out and "trajectory_path" not in out:
            if "session_id" not in out:
                return None
            out["trajectory_id"] = out["session_id"]
        return _ordered(out, extra, k.REF)

    def _parts(self, value: Any, places: Places) -> Any:
        if is_text(value):
            return value
        listed = items_of(value)
        if listed is None:
            return None
        written, audio = parts_of(listed, places, self.losses, strict=self.harbor)
        self.audio = self.audio or audio
        return written


def _ordered(out: Item, extra: Item, order: tuple[str, ...]) -> Item:
    """The keys in the usual order, and ``extra`` when there is something in it."""
    if extra:
        out["extra"] = extra
    return {key: out[key] for key in order if key in out}
