"""Rewards of GRPO by name: of what a model writes, computed without a model.

Each reward is a function as TRL wants it: it gets all answers of a batch with the columns of their
rows, and gives a number for each; None where it does not apply, such as no reference answer.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from adp.core.code_files import CODE_NAME
from adp.rendering.answers import calls_of, library_parser
from adp.rendering.call_form import CallForm, WrittenCall, call_form
from adp.rendering.render import Renderer
from adp.trainers.config_methods import GrpoSection
from adp.trainers.reward_numbers import reward_numbers
from adp.trainers.reward_scores import (
    answer_score,
    calls_score,
    references,
    wanted_calls,
    without_reasoning,
)
from adp.trainers.rollouts.reward import ROLLOUT_REWARDS
from adp_schema.errors import MissingExtraError, UsageError, unknown_name

Reward = Callable[..., list[float | None]]
Reader = Callable[[str, str, Any], "list[WrittenCall] | None"]
"""From an answer, its prompt and the tools on offer to its calls; None when one is malformed."""

NAMES = ("answer", "calls", "calls_exact", "format", "json", "length")
"""Rewards that come with the package."""


def check_python(section: GrpoSection, allowed: bool) -> None:
    """Check that functions of the user's own are allowed, when there are some.

    Args:
        section: the section ``grpo``.
        allowed: whether --allow-python was given.

    Raises:
        UsageError: they are not.
    """
    names = [name for name in section.rewards if is_code(name) or _leads_to_code(name)]
    acting = section.environment
    if names and not allowed:
        known = ", ".join(sorted(ROLLOUT_REWARDS if acting is not None else NAMES))
        hint = f"; those with a name: {known}" if is_code(names[0]) else ""
        raise UsageError(
            f"the reward {names[0]} is Python code; add --allow-python when you trust it{hint}"
        )
    if acting is not None and CODE_NAME.match(acting.name) and not allowed:
        raise UsageError(
            f"the environment {acting.name} is Python code; add --allow-python when you trust it"
        )


def is_code(name: str) -> bool:
    """Whether a reward is a function of the user's own, ``module:function``."""
    first, colon, _ = name.partition(":")
    return bool(colon) and first not in ROLLOUT_REWARDS


def _leads_to_code(name: str) -> bool:
    """Whether the settings of a reward name code, such as a scorer in a file of the user's."""
    return bool(CODE_NAME.search(name.partition(":")[2]))


def check_weights(weights: Sequence[float] | None, names: Sequence[str]) -> None:
    """Check that each reward has a weight, where there are any.

    Raises:
        UsageError: not so, or a weight is no finite number.
    """
    if weights is not None and len(weights) != len(names):
        raise UsageError(
            f"grpo.reward_weights has {len(weights)} numbers for {len(names)} rewards; give one "
            "for each"
        )
    infinite = [weight for weight in weights or () if not math.isfinite(weight)]
    if infinite:
        raise UsageError(f"grpo.reward_weights has {infinite[0]}; give finite numbers")


def make_rewards(section: GrpoSection, renderer: Renderer, folder: Path) -> list[Reward]:
    """The rewards of a run.

    Args:
        section: the section ``grpo``.
        renderer: of the model, for the form of its calls.
        folder: where modules of the user's own are looked for first.

    Raises:
        UsageError: there is no such reward, or the template's calls cannot be read.
    """
    if not section.rewards:
        raise UsageError(
            f"grpo.rewards is empty; name some of {', '.join(NAMES)}, or module:function"
        )
    check_weights(section.reward_weights, section.rewards)
    return [_reward(name, section, renderer, folder) for name in section.rewards]


def _reward(name: str, section: GrpoSection, renderer: Renderer, folder: Path) -> Reward:
    if is_code(name):
        return _named(name, _checked(name, user_reward(name, folder)))
    decoder = _decoder(renderer)
    if name == "answer":
        return _named(name, _answer_reward(decoder))
    if name == "json":
        return _named(name, _json_reward(decoder))
    if name == "length":
        return _length(section)
    if name not in NAMES:
        if name.partition(":")[0] in ROLLOUT_REWARDS:
            raise UsageError(
                f"the reward {name} is of episodes; say where the model acts: --env, or "
                "grpo.environment"
            )
        raise UsageError(unknown_name("reward", name, NAMES))
    read = _reader(renderer, name)
    if name == "format":
        return _named(name, _format_reward(decoder, read))
    return _named(name, _calls_reward(decoder, read, exact=name == "calls_exact"))


def _checked(name: str, function: Reward) -> Reward:
    """A function of the user's own, whose numbers are checked."""

    def reward(**columns: Any) -> list[float | None]:
        count = len(columns["completion_ids"])
        return reward_numbers(name, lambda: function(**columns), count, "answers")

    return reward


def _named(name: str, reward: Reward) -> Reward:
    # TRL shows rewards by the name of their function.
    reward.__name__ = name
    return reward


def user_reward(name: str, folder: Path) -> Reward:
    """A function of the user's own.

    Args:
        name: ``module:function``.
        folder: where modules are looked for first.

    Raises:
        UsageError: it cannot be loaded, or is no function.
    """
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(folder))
    try:
        result = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the reward {name} cannot be loaded: {error}") from error
    finally:
        sys.path.remove(str(folder))
    if not callable(result):
        raise UsageError(f"the reward {name} is no function")
    reward: Reward = result
    return reward


# ---- what the model wrote ------------------------------------------------------------------


def _decoder(renderer: Renderer) -> Callable[[Sequence[int]], str]:
    """From ids to text with the special tokens that calls are written with, without the end."""
    tokenizer = renderer.tokenizer
    ends = {tokenizer.eos_token_id, tokenizer.pad_token_id}

    def decode(ids: Sequence[int]) -> str:
        kept = list(ids)
        while kept and kept[-1] in ends:
            kept.pop()
        return str(tokenizer.decode(kept, skip_special_tokens=False))

    return decode


def _reader(renderer: Renderer, name: str) -> Reader:
    form = call_form(renderer)
    if form is not None:
        return _form_reader(form)
    library = _library_reader(renderer)
    if library is None:
        raise UsageError(
            f"the reward {name} cannot read the calls of this chat template; use answer, json, "
            "length, or a function of your own (module:function)"
        )
    return library


def _form_reader(form: CallForm) -> Reader:
    def read(text: str, prompt: str, tools: Any) -> list[WrittenCall] | None:
        return form.read(text)

    return read


def _library_reader(renderer: Renderer) -> Reader | None:
    """The parser of transformers, for templates that TRL knows one for."""
    parse = library_parser(renderer)
    if parse is None:
        return None

    def read(text: str, prompt: str, tools: Any) -> list[WrittenCall] | None:
        result = parse(text, prompt, tools)
        try:
            return None if result is None else calls_of(result)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    return read


# ---- answers -------------------------------------------------------------------------------


def _answer_reward(decode: Callable[[Sequence[int]], str]) -> Reward:
    def reward(
        completion_ids: Sequence[Sequence[int]], answers: Sequence[str | None], **_: Any
    ) -> list[float | None]:
        return [
            answer_score(decode(ids), references(known))
            for ids, known in zip(completion_ids, answers, strict=True)
        ]

    return reward


# ---- calls ---------------------------------------------------------------------------------


def _calls_reward(decode: Callable[[Sequence[int]], str], read: Reader, *, exact: bool) -> Reward:
    def reward(
        prompts: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        expected_calls: Sequence[str | None],
        tools: Sequence[str | None],
        **_: Any,
    ) -> list[float | None]:
        results: list[float | None] = []
        rows = zip(prompts, completion_ids, expected_calls, tools, strict=True)
        for prompt, ids, expected, offered in rows:
            wanted = wanted_calls(expected)
            if wanted is None:
                results.append(None)
                continue
            calls = read(decode(ids), prompt, json.loads(offered) if offered else None)
            score = 0.0 if calls is None else calls_score(calls, wanted)
            results.append(float(score == 1.0) if exact else score)
        return results

    return reward


# ---- form ----------------------------------------------------------------------------------


def _format_reward(decode: Callable[[Sequence[int]], str], read: Reader) -> Reward:
    """1 when every call is whole and names a tool on offer, else 0."""

    def reward(
        prompts: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        tools: Sequence[str | None],
        **_: Any,
    ) -> list[float | None]:
        results: list[float | None] = []
        for prompt, ids, offered in zip(prompts, completion_ids, tools, strict=True):
            known = json.loads(offered) if offered else None
            calls = read(decode(ids), prompt, known)
            names = {tool["function"]["name"] for tool in known or []}
            good = calls is not None and all(not names or call.name in names for call in calls)
            results.append(float(good))
        return results

    return reward


def _json_reward(decode: Callable[[Sequence[int]], str]) -> Reward:
    """1 when all that is said is one JSON object or list, else 0."""

    def reward(completion_ids: Sequence[Sequence[int]], **_: Any) -> list[float | None]:
        return [float(_is_json(without_reasoning(decode(ids)))) for ids in completion_ids]

    return reward


def _is_json(text: str) -> bool:
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.removeprefix("```").removeprefix("json").removesuffix("```").strip()
    try:
        return isinstance(json.loads(bare), dict | list)
    except (ValueError, RecursionError):
        return False


def _length(section: GrpoSection) -> Reward:
    """TRL's punishment of answers that come near the limit (DAPO, eq. 13)."""
    try:
        from trl.rewards import get_soft_overlong_punishment
    except ImportError as error:
        raise MissingExtraError("trl", "train") from error
    buffer = min(section.length_buffer, section.max_completion_length)
    reward: Reward = get_soft_overlong_punishment(section.max_completion_length, buffer)
    return reward
