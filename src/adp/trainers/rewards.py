"""Rewards of GRPO by name: of what a model writes, computed without a model.

Each reward is a function as TRL wants it: it gets all answers of a batch with the columns of their
rows, and gives a number for each; None where it does not apply, such as no reference answer.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from adp.core.render.render import Renderer
from adp.trainers.call_form import CallForm, Written, call_form
from adp.trainers.config_methods import GrpoSection
from adp_schema.errors import MissingExtraError, UsageError, unknown_name

Reward = Callable[..., list[float | None]]
Reader = Callable[[str, str, Any], "list[Written] | None"]
"""From an answer, its prompt and the tools on offer to its calls; None when one is malformed."""

NAMES = ("answer", "calls", "calls_exact", "format", "json", "length")
"""Rewards that come with the package."""

_THOUGHT_END = "</think>"
_TAGGED = re.compile(r"<(answer|FINAL)>(.*?)</\1>", re.DOTALL)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NUMBER = re.compile(r"^[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?$")


def check_python(section: GrpoSection, allowed: bool) -> None:
    """Check that functions of the user's own are allowed, when there are some.

    Args:
        section: the section ``grpo``.
        allowed: whether --allow-python was given.

    Raises:
        UsageError: they are not.
    """
    own = [name for name in section.rewards if ":" in name]
    if own and not allowed:
        raise UsageError(
            f"the reward {own[0]} is Python code; add --allow-python when you trust it"
        )


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
    if section.reward_weights is not None and len(section.reward_weights) != len(section.rewards):
        raise UsageError(
            f"grpo.reward_weights has {len(section.reward_weights)} numbers for "
            f"{len(section.rewards)} rewards; give one for each"
        )
    return [_reward(name, section, renderer, folder) for name in section.rewards]


def _reward(name: str, section: GrpoSection, renderer: Renderer, folder: Path) -> Reward:
    if ":" in name:
        return _own(name, folder)
    decode = _decoder(renderer)
    if name == "answer":
        return _named(name, _answer_reward(decode))
    if name == "json":
        return _named(name, _json_reward(decode))
    if name == "length":
        return _length(section)
    if name not in NAMES:
        raise UsageError(unknown_name("reward", name, NAMES))
    read = _reader(renderer, name)
    if name == "format":
        return _named(name, _format_reward(decode, read))
    return _named(name, _calls_reward(decode, read, exact=name == "calls_exact"))


def _named(name: str, reward: Reward) -> Reward:
    # TRL shows rewards by the name of their function.
    reward.__name__ = name
    return reward


def _own(name: str, folder: Path) -> Reward:
    """A function of the user's own; looked for beside the configuration, too."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(folder))
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the reward {name} cannot be loaded: {error}") from error
    finally:
        sys.path.remove(str(folder))
    if not callable(found):
        raise UsageError(f"the reward {name} is no function")
    reward: Reward = found
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
    def read(text: str, prompt: str, tools: Any) -> list[Written] | None:
        return form.read(text)

    return read


def _library_reader(renderer: Renderer) -> Reader | None:
    """The parser of transformers, for templates that TRL knows one for."""
    try:
        from trl.chat_template_utils import add_response_schema
    except ImportError as error:
        raise MissingExtraError("trl", "train") from error
    tokenizer = renderer.tokenizer
    if getattr(tokenizer, "response_template", None) is None:
        try:
            add_response_schema(tokenizer)
        except ValueError:
            return None

    def read(text: str, prompt: str, tools: Any) -> list[Written] | None:
        try:
            parsed = tokenizer.parse_response(text, prefix=prompt, tools=tools or None)
            calls = [call.get("function", call) for call in parsed.get("tool_calls") or []]
            return [Written(str(call["name"]), dict(call.get("arguments") or {})) for call in calls]
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    return read


def _said(text: str) -> str:
    """What is said, without the reasoning before it."""
    return text[text.rfind(_THOUGHT_END) + len(_THOUGHT_END) :] if _THOUGHT_END in text else text


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


def references(answers: str | None) -> list[str]:
    """The reference answers of a task, as texts.

    Args:
        answers: JSON of the column ``answers``.
    """
    if answers is None:
        return []
    value = json.loads(answers)
    values = value if isinstance(value, list) else [value]
    return [
        text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        for text in values
        if text is not None
    ]


def answer_score(text: str, known: Sequence[str]) -> float | None:
    """1 when the final answer is one of the reference answers, else 0.

    The final answer is what stands last between ``<answer>`` or ``<FINAL>`` tags, and in it what
    stands in the last ``\\boxed{}``; without these all that is said. Case, articles, punctuation
    and white space do not count, and numbers are compared as numbers.

    Args:
        text: what the model wrote.
        known: the reference answers; without one there is no score.
    """
    if not known:
        return None
    said = _said(text)
    tagged = _TAGGED.findall(said)
    said = tagged[-1][1] if tagged else said
    boxed = _boxed(said)
    given = boxed if boxed is not None else said
    return float(any(_equal(given, answer) for answer in known))


def _boxed(text: str) -> str | None:
    """What stands in the last ``\\boxed{}``, braces matched."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    begin = start + len("\\boxed{")
    depth = 1
    for index in range(begin, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return text[begin:index]
    return None


def _equal(one: str, other: str) -> bool:
    first, second = _number(one), _number(other)
    if first is not None and second is not None:
        return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-12)
    plain = _plain(one)
    return plain == _plain(other) and (bool(plain) or one.strip() == other.strip())


def _number(text: str) -> float | None:
    bare = text.strip().rstrip(".").replace("$", "").rstrip("%")
    return float(bare.replace(",", "")) if _NUMBER.match(bare.lower()) else None


def _plain(text: str) -> str:
    letters = "".join(c if c.isalnum() or c.isspace() else " " for c in text.casefold())
    return " ".join(_ARTICLES.sub(" ", letters).split())


# ---- calls ---------------------------------------------------------------------------------


def _calls_reward(decode: Callable[[Sequence[int]], str], read: Reader, *, exact: bool) -> Reward:
    def reward(
        prompts: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        expected_calls: Sequence[str | None],
        tools: Sequence[str | None],
        **_: Any,
    ) -> list[float | None]:
        found: list[float | None] = []
        rows = zip(prompts, completion_ids, expected_calls, tools, strict=True)
        for prompt, ids, expected, offered in rows:
            wanted = wanted_calls(expected)
            if wanted is None:
                found.append(None)
                continue
            calls = read(decode(ids), prompt, json.loads(offered) if offered else None)
            score = 0.0 if calls is None else calls_score(calls, wanted)
            found.append(float(score == 1.0) if exact else score)
        return found

    return reward


def wanted_calls(expected: str | None) -> list[Written] | None:
    """The calls that are expected.

    Args:
        expected: JSON of a list of objects with ``name`` and ``arguments``; null: unknown.
    """
    if expected is None:
        return None
    value = json.loads(expected)
    found = []
    for item in value if isinstance(value, list) else [value]:
        inner = item.get("function", item) if isinstance(item, dict) else None
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            return None
        arguments = inner.get("arguments", inner.get("parameters"))
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return None
        found.append(Written(inner["name"], arguments if isinstance(arguments, dict) else {}))
    return found


def calls_score(calls: Sequence[Written], wanted: Sequence[Written]) -> float:
    """How much of the expected calls was made: from 0 to 1, in any order.

    A call with the right name scores a third, another third times the F1 of its argument names,
    and the last third times the share of arguments with equal values. Each call is paired with at
    most one expected call, the best pairs first. The sum is divided by the number of calls that
    were made or expected, whichever is larger; no call where none is expected scores 1.

    Args:
        calls: the calls that were made.
        wanted: the calls that are expected.
    """
    if not calls and not wanted:
        return 1.0
    scored = sorted(
        (
            (-_pair_score(call, other), i, j)
            for i, call in enumerate(calls)
            for j, other in enumerate(wanted)
        ),
    )
    total, used_calls, used_wanted = 0.0, set(), set()
    for score, i, j in scored:
        if i not in used_calls and j not in used_wanted:
            used_calls.add(i)
            used_wanted.add(j)
            total -= score
    return total / max(len(calls), len(wanted))


def _pair_score(call: Written, wanted: Written) -> float:
    if call.name != wanted.name:
        return 0.0
    own, other = set(call.arguments), set(wanted.arguments)
    if not own and not other:
        return 1.0
    common = own & other
    names = 2 * len(common) / (len(own) + len(other))
    equal = sum(_same(call.arguments[key], wanted.arguments[key]) for key in common)
    values = equal / len(own | other)
    return 1.0 if names == values == 1 else (1 + names + values) / 3


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


# ---- form ----------------------------------------------------------------------------------


def _format_reward(decode: Callable[[Sequence[int]], str], read: Reader) -> Reward:
    """1 when every call is whole and names a tool on offer, else 0."""

    def reward(
        prompts: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        tools: Sequence[str | None],
        **_: Any,
    ) -> list[float | None]:
        found: list[float | None] = []
        for prompt, ids, offered in zip(prompts, completion_ids, tools, strict=True):
            known = json.loads(offered) if offered else None
            calls = read(decode(ids), prompt, known)
            names = {tool["function"]["name"] for tool in known or []}
            good = calls is not None and all(not names or call.name in names for call in calls)
            found.append(float(good))
        return found

    return reward


def _json_reward(decode: Callable[[Sequence[int]], str]) -> Reward:
    """1 when all that is said is one JSON object or list, else 0."""

    def reward(completion_ids: Sequence[Sequence[int]], **_: Any) -> list[float | None]:
        return [float(_is_json(_said(decode(ids)))) for ids in completion_ids]

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
