"""M3's episodes: scenarios, a horizon over all turns, and answers that are judged turn by turn.

An episode follows the turns of a task. At each step the agent calls one tool or gives the final
answer of the turn. What comes back, in this order:

1. At the last step of the horizon: the end, when it is the answer of the last turn; else the
   episode is cut, and a call is not carried out.
2. A turn that cannot be read, or that calls several tools: an error.
3. A call: its result, ``ToolCallSuccessful: ...`` or the name of the error.
4. An answer: the next question, or the end. The conversation then becomes the questions so far,
   each with its *golden* answer; what the agent did is left out.

The categories of the rewards are the labels of the steps, without braces. Where a tool that the
reference run needs is not on offer, the right answer is to say that there is none.

It runs on reference data, whose recorded responses are given again, or around any other
environment with tools (setting ``inner``). Source: m3-train-eval, ``envs``; what differs is told in
``docs/experts.md``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from adp.rollouts.answer_match import same_answer
from adp.rollouts.environment import CannotForkError, Environment, Start, Verdict
from adp.rollouts.environments import m3_live
from adp.rollouts.environments import m3_scenario as scenario
from adp.rollouts.environments.m3_replay import PARALLEL, in_m3_words, live, recorded, replaying
from adp.rollouts.environments.m3_scenario import M3Settings
from adp.rollouts.environments.m3_tasks import M3TaskConfig, config_of
from adp.rollouts.experts import labels as category
from adp.rollouts.experts.history import call_key
from adp.rollouts.experts.reference_run import GoldStep, GoldTurn, gold_of
from adp.rollouts.tool_environment import by_name, unreadable
from adp.rollouts.tools import FunctionTool, carry_out
from adp.rollouts.turns import Call, ErrorType, Message, Outcome, Result, Tool, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory

MAX_STEPS = "Max Steps Reached!"

Judge = Callable[[str, str, str], bool | None]
"""Question, right answer, given answer -> whether it is right; None: it cannot be said."""


class M3Environment:
    """M3's episodes.

    Args:
        settings: scenario, horizon and the rest.
        inner: an environment whose tools are called; None: recorded responses, unless the settings
            name one.
        judge: whether an answer is right; None: the model of the settings, or without one the rule
            of `adp.rollouts.answer_match`.

    Attributes:
        blocking: as the environment inside has it.
        task: task of the episode.
        labels: labels of the last step.
    """

    def __init__(
        self,
        settings: M3Settings | None = None,
        *,
        inner: Environment | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.settings = settings or M3Settings()
        self._inner = inner = inner if inner is not None else m3_live.inner_of(self.settings)
        self._judge = judge
        self._model = m3_live.judge_of(self.settings) if judge is None else None
        self._api = m3_live.api_of(self.settings)
        self._retriever = m3_live.documents_of(self.settings, inner)
        self._documents: Mapping[str, FunctionTool] = {}
        worlds = (inner, self._api, self._retriever)
        self.blocking = self._model is not None or any(
            getattr(world, "blocking", False) for world in worlds
        )
        self.task: Task | None = None
        self.labels: tuple[str, ...] = ()
        self._live: frozenset[str] = frozenset()
        self._turn = self._steps = 0
        self._verdicts: list[bool | None] = []
        self._judgements: tuple[Mapping[str, Any], ...] = ()
        self._gold: tuple[GoldTurn, ...] = ()
        self._known: Mapping[str, FunctionTool] = {}
        self._answers: list[tuple[str, str]] = []

    # ---- the beginning ---------------------------------------------------------------------

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode with the first question.

        Raises:
            UsageError: there is no task, or it has no question or no tools.
        """
        start = self._inner.reset(task, seed=seed) if self._inner is not None else Start(())
        self._config = config_of(task) if task is not None else M3TaskConfig()
        self.task = task
        self._gold = gold_of(task)
        self._turn = self._steps = 0
        self._verdicts, self._answers, self.labels, self._judgements = [], [], (), ()
        self._availability = scenario.chosen_availability(
            self.settings.availability or self._config.availability
        )
        self._question = self._first_question(start)
        if self._api is not None:
            self._api.reset(task, seed=seed)
        if self._inner is None:
            self._known = self._replayed()
        usage = self._usage()
        policy, self._fallback = scenario.answer_policy(seed, self._config.cutoff)
        system_texts = [str(m["content"]) for m in start.messages if m.get("role") == "system"]
        asked = [m for m in start.messages if m.get("role") != "system"]
        system = "\n\n".join([*system_texts, scenario.system_text(usage, policy)])
        policies = {
            "policy_tool_availability": self._availability,
            "policy_tool_usage": usage,
            "policy_final_answer": policy,
        }
        name = "-".join(filter(None, (self._availability, self.settings.ordering)))
        messages = ({"role": "system", "content": system}, *(asked or [_user(self._question)]))
        return Start(messages, {**start.info, "scenario": name}, policies)

    def _first_question(self, start: Start) -> str:
        query = self._gold[0].query if self._gold else None
        asked = [m["content"] for m in start.messages if m.get("role") == "user"]
        question = (str(asked[-1]) if asked else None) or query
        question = question or (self.task.instruction if self.task is not None else None)
        if not question:
            raise UsageError("the environment m3 needs a task with a question; give --tasks")
        return question

    def _usage(self) -> str:
        given = self.settings.usage if self.settings.usage is not None else self._config.usage
        order = scenario.ORDERINGS.get(self.settings.ordering or "")
        return " ".join(filter(None, (given, order)))

    def _replayed(self) -> Mapping[str, FunctionTool]:
        """The tools of the task, each with its recorded responses."""
        tools: list[Tool] = list(self._config.tools)
        if not tools:
            raise UsageError(
                f"task '{self.task and self.task.task_id}' does not tell its tools; take the tasks "
                "of --env m3:store=STORE, or name an environment with --env m3:inner=..."
            )
        if self._retriever is not None:
            known = self._retriever.functions
            self._documents = m3_live.with_collections(known, self._config.collections)
            tools = [tool for tool in tools if tool["function"]["name"] not in self._documents]
            tools += [tool.schema for tool in self._documents.values()]
        if not any(tool["function"]["name"] in self.settings.retrievers for tool in tools):
            tools.append(scenario.retrieve_tool(self._config.collections))
        self._responses = recorded(self._gold)
        self._shown = tuple(tools)
        replayed = by_name([replaying(tool, self._responses) for tool in tools])
        others = {} if self._api is None else self._api.functions
        self._live = frozenset(replayed) & frozenset(others)
        answered = {
            name: live(tool, others[name]) if name in self._live else tool
            for name, tool in replayed.items()
        }
        return {**answered, **self._documents}

    # ---- tools -----------------------------------------------------------------------------

    def tools(self) -> Sequence[Tool]:
        """The tools on offer in this scenario."""
        every = self._inner.tools() if self._inner is not None else self._shown
        return [tool for tool in every if self._on_offer(str(tool["function"]["name"]))]

    def offered(self) -> Sequence[FunctionTool] | None:
        """The tools as functions, where they are."""
        if self._inner is not None:
            method = getattr(self._inner, "offered", None)
            return method() if callable(method) else None
        return [tool for name, tool in self._known.items() if self._on_offer(name)]

    def _on_offer(self, name: str) -> bool:
        return scenario.is_available(name, self._availability, self.settings.retrievers)

    # ---- steps -----------------------------------------------------------------------------

    def step(self, turn: Turn) -> Outcome:
        """Carry out a turn by the rules above."""
        self._steps += 1
        outcome = self._step(turn)
        self.labels = outcome.labels
        return outcome

    def _step(self, turn: Turn) -> Outcome:
        final = turn.malformed is None and not turn.calls
        if final:
            return self._answer(turn)
        if self._steps >= self.settings.horizon:
            return self._cut(turn)
        if turn.malformed is not None:
            # M3 counts a call without a name or arguments as a bad one, not as unreadable.
            bad = (category.BAD_TOOL_CALL,) if turn.malformed.startswith("MissingKey") else ()
            return self._labelled(Outcome(results=(unreadable(turn),), labels=bad))
        if len(turn.calls) > 1:
            return self._parallel(turn)
        return self._labelled(self._carry_out(turn.calls[0]))

    def _cut(self, turn: Turn) -> Outcome:
        """The horizon is reached by something else than the last answer."""
        results = [_instruction(MAX_STEPS, call, ErrorType.LIMIT) for call in turn.calls]
        if turn.malformed is not None:
            results = [Result(MAX_STEPS, error=ErrorType.PARSING)]
        labels = tuple(filter(None, (category.category(Outcome(tuple(results))),)))
        return Outcome(tuple(results), labels=labels, truncated=True, stop_reason="horizon")

    def _parallel(self, turn: Turn) -> Outcome:
        text = f"{PARALLEL}: call one tool at a time; none of these calls was carried out"
        results = tuple(_instruction(text, call, ErrorType.PARSING) for call in turn.calls)
        return Outcome(results, labels=(category.PARSING_ERROR,))

    def _carry_out(self, call: Call) -> Outcome:
        if self.settings.enforce and not self._on_offer(call.name):
            reason = f"Error: the tool '{call.name}' is not on offer"
            return Outcome((_instruction(reason, call, ErrorType.UNKNOWN_TOOL),))
        if self._inner is None:
            # Some recorded calls do not fit the schema of their tool; they were answered all the
            # same, so what is recorded comes first.
            known = self._responses.get(call_key(call))
            if known is not None and call.name not in self._live | self._documents.keys():
                return Outcome((Result(known, call_id=call.call_id, name=call.name),))
            if call.name in self._live:  # the tool that answers checks the arguments
                tool = replace(self._known[call.name], parameters={"type": "object"})
                return Outcome((carry_out(call, {call.name: tool}),))
            return Outcome((carry_out(call, self._known),))
        step = self._inner.step(Turn(calls=(call,)))
        return replace(step, terminated=False, context=None, answer=None)

    def _labelled(self, outcome: Outcome) -> Outcome:
        labels = (*outcome.labels, *category.added(outcome))
        results = outcome.results
        if self.settings.results == "m3":
            results = tuple(map(in_m3_words, results))
        return replace(outcome, results=results, labels=labels)

    # ---- answers ---------------------------------------------------------------------------

    def _answer(self, turn: Turn) -> Outcome:
        """The answer of a turn: the next question, or the end."""
        gold = self._gold[self._turn] if self._turn < len(self._gold) else None
        inside = self._inner.step(turn) if self._inner is not None else None
        right = self._is_right(turn, gold)
        self._verdicts.append(right)
        self._answers.append((self._question, self._golden(gold, turn)))
        labels = inside.labels if inside is not None else ()
        if right is not None:
            labels = (*labels, category.MATCH if right else category.NO_MATCH)
        done = Outcome(labels=labels, terminated=True, stop_reason="answer", answer=turn.text)
        follows = self._next_question(inside)
        if follows is None:
            return done
        if self._steps >= self.settings.horizon:
            return replace(done, terminated=False, truncated=True, stop_reason="horizon")
        self._turn += 1
        self._question = follows
        return Outcome(
            messages=(follows,), labels=labels, answer=turn.text, context=self._context()
        )

    def _next_question(self, inside: Outcome | None) -> str | None:
        if inside is not None:
            return "\n\n".join(inside.messages) if not inside.terminated else None
        behind = self._gold[self._turn + 1 :]
        return (behind[0].query or "") if behind else None

    def _context(self) -> tuple[Message, ...] | None:
        """The questions so far, each with its golden answer."""
        if not self.settings.collapse:
            return None
        return tuple(
            message
            for asked, answer in self._answers
            for message in (_user(asked), {"role": "assistant", "content": answer})
        )

    def _is_right(self, turn: Turn, gold: GoldTurn | None) -> bool | None:
        if self._must_refuse(gold):
            return scenario.is_refusal(turn.text)
        if self._inner is not None:
            success = self._inner.score(Trajectory(final_answer=turn.text)).success
            if success is not None:
                return success
        if gold is None or gold.answer is None:
            return None
        if scenario.is_refusal(gold.answer):
            return scenario.is_refusal(turn.text)
        if self._judge is not None:
            return self._judge(self._question, gold.answer, turn.text)
        if self._model is not None:
            right, judgement = self._model.ask(self._question, gold.answer, turn.text)
            self._judgements = (*self._judgements, judgement)
            return right
        return same_answer(turn.text, gold.answer)

    def _golden(self, gold: GoldTurn | None, turn: Turn) -> str:
        """The answer that stands for a turn afterwards."""
        if self._must_refuse(gold):
            return self._fallback
        if gold is None or gold.answer is None:
            return turn.text
        if gold.truncated and gold.raw_answer is not None:
            return gold.raw_answer
        return gold.answer

    def _must_refuse(self, gold: GoldTurn | None) -> bool:
        """Whether the reference run needs a tool that is not on offer."""
        if not self.settings.refusals or gold is None:
            return False
        return any(not self._on_offer(call.name) for step in gold.steps for call in step.turn.calls)

    def gold_turns(self) -> tuple[GoldTurn, ...]:
        """The reference run in this scenario, for experts: it gives up where it has to."""
        return tuple(
            replace(turn, steps=(GoldStep(Turn(text=self._fallback)),), answer=self._fallback)
            if self._must_refuse(turn)
            else turn
            for turn in self._gold
        )

    @property
    def expert_turn(self) -> Callable[[], Turn] | None:
        """What the environment inside would do next; None when it does not know."""
        method = getattr(self._inner, "expert_turn", None)
        if not callable(method):
            return None
        gold = self._gold[self._turn] if self._turn < len(self._gold) else None
        return (lambda: Turn(text=self._fallback)) if self._must_refuse(gold) else method

    # ---- the end ---------------------------------------------------------------------------

    def score(self, trajectory: Trajectory) -> Verdict:
        """Success is M3's: the last step is an answer that is right.

        Rewards: ``turns_right``, the share of the turns that were answered rightly. Nothing is
        scored when no judge could say.
        """
        total = max(len(self._gold), 1)
        last = self._verdicts[-1] if self._verdicts else None
        answered = category.MATCH in self.labels or category.NO_MATCH in self.labels
        evidence = {"judgements": list(self._judgements)} if self._judgements else {}
        if self._verdicts and None in self._verdicts:
            return Verdict(judge={"reason": "an answer could not be judged", **evidence})
        success = bool(last) and answered
        gold = self._gold[self._turn] if self._turn < len(self._gold) else None
        expected = self._fallback if self._must_refuse(gold) else gold and gold.answer
        return Verdict(
            success=success,
            reward=float(success),
            rewards={"turns_right": sum(map(bool, self._verdicts)) / total},
            judge={"expected": expected, "found": trajectory.final_answer, **evidence},
        )

    def fork(self) -> Self:
        """An independent copy: what changes is copied, what does not is shared.

        Raises:
            CannotForkError: the environment inside cannot be copied.
        """
        other = copy.copy(self)
        other._verdicts = list(self._verdicts)
        other._answers = list(self._answers)
        if self._model is not None:
            other._model = m3_live.judge_of(self.settings)  # a fork closes its own connection
        if self._inner is not None:
            fork = self._inner.fork()
            if fork is self._inner:
                raise CannotForkError("the environment inside gave itself as its copy")
            other._inner = fork
        if self._api is not None:
            other._api = self._api.fork()
            other._known = other._replayed()
        return other

    def close(self) -> None:
        """Close the environment inside, and the connection to the judge."""
        if self._model is not None:
            self._model.close()
        if self._inner is not None:
            self._inner.close()


def _instruction(text: str, call: Call, error: ErrorType) -> Result:
    return Result(text, call_id=call.call_id, name=call.name, error=error)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}
