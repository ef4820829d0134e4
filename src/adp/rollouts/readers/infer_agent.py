"""M3's ``infer_agent.json``: agent, experts and environment of a run, in our terms.

Names: m3-train-eval, ``config_files`` and ``run.py``. Which server stands behind a model is not in
the file: M3 asks the environment variable ``LLM_PROVIDER`` (rits, local, hf, watsonx). ``rits`` is
an OpenAI-compatible endpoint whose addresses are IBM's own, so here ``OPENAI_BASE_URL`` says where.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from adp.core.config_mapping import Convert, MappedConfig, Target, translate
from adp.rendering.m3_forms import OF_M3
from adp.rollouts.readers.infer_live import live_rules
from adp.rollouts.readers.infer_provider import Provider
from adp_schema.errors import UsageError

KEYS = frozenset({"path_to_env_data", "agent_model_name_or_path", "expert_assist_mode"})
"""Keys of which a file of this kind has some."""

MODES = ("ground_truth", "random", "informed")
_NO_HELP = "no server is known for it; set OPENAI_BASE_URL, or the rules alone decide"
_NOT_ASKED = "nobody asks it in this mode"


def is_infer_agent(given: Mapping[str, Any]) -> bool:
    """Whether a file is one of these."""
    return bool(KEYS & set(given)) and "horizon" in given


def read_infer_agent(given: Mapping[str, Any], provider: Provider) -> MappedConfig:
    """Read the settings.

    Args:
        given: keys and values of the file.
        provider: what M3 takes from elsewhere.

    Returns:
        ``plain`` has ``env`` (settings of the environment m3), ``policy``, ``assist`` (settings of
        the expert, with its mode; absent without one), ``data``, ``max_turns`` and perhaps
        ``resume`` and ``previous``.

    Raises:
        UsageError: a value is none that M3 knows, or a model cannot be had; says what to do.
    """
    given = {("expert_assist_mode" if k == "expert_mode" else k): v for k, v in given.items()}
    mode = given.get("expert_assist_mode")
    if mode == "ground_truth_non_live":
        mode = "ground_truth"
    if mode not in (None, "none", *MODES):
        raise UsageError(f"expert_assist_mode: {mode} is none of null, {', '.join(MODES)}")
    if not isinstance(given.get("path_to_env_data"), str):
        raise UsageError("path_to_env_data names the file of reference data; it is missing")
    horizon = given.get("horizon")
    if not isinstance(horizon, int) or isinstance(horizon, bool) or horizon < 1:
        raise UsageError(f"horizon: {horizon!r} is no number of steps, 1 or more")
    rules = {**_RULES_ALL, **live_rules(given, mode, provider), **_agent(given, mode, provider)}
    return translate("M3", given, rules)


def _scenario(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``both_api_rag-api_before_rag``: availability, then ordering."""
    if not value:
        return {}
    availability, _, ordering = str(value).partition("-")
    results = {"env.availability": availability, "env.ordering": ordering}
    return {path: word for path, word in results.items() if word}


_RULES_ALL: dict[str, Target] = {
    "path_to_env_vars": Target("", "its variables are set, where the environment lacks them"),
    "path_to_env_data": Target("data"),
    "env_scenario": Target("", "", _scenario),
    "horizon": Target(
        "", "steps over all turns",
        lambda value, given: {"env.horizon": value, "max_turns": value},
    ),
    "resume_instance": Target(
        "", "", lambda value, given: {} if value is None else {"resume": value},
        off="a run that was stopped goes on with the same call anyway",
    ),
    "path_to_prev_run_dir": Target(
        "", "its outcomes are counted",
        lambda value, given: {"previous": value}
        if value and given.get("resume_instance") is not None else {},
        off="it goes with resume_instance",
    ),
    "include_thoughts": Target("", "the wire forms of M3 have a thought in each turn"),
}  # fmt: skip


def _agent(given: Mapping[str, Any], mode: str | None, provider: Provider) -> dict[str, Target]:
    """Rules that follow from who acts."""
    rules: dict[str, Target] = {
        "path_to_hf_config": Target("", "it is for is_hf_agent"),
        "is_hf_agent": Target("", "models stand behind a server"),
        **_assist(given, mode, provider),
    }
    names = ("agent_model_name_or_path", "max_new_tokens", "agent_template", "temperature")
    if mode == "ground_truth":
        only = "the expert alone acts, as the reference run does"
        alone = {"assist.mode": mode} if provider.policy else {"policy.name": "expert"}
        return {
            **rules,
            "expert_assist_mode": Target("", "", lambda v, g: alone),
            **{name: Target("", only) for name in names},
        }
    if provider.policy:
        reason = "the call names a policy of its own"
        return {**rules, **{name: Target("", reason) for name in names}}
    template = given.get("agent_template")
    form = {} if str(template) not in OF_M3 else {"policy.wire_form": OF_M3[str(template)]}
    rules |= {
        "agent_template": Target(
            "", "policy.system_file takes the words of M3", lambda v, g: form,
            off="it is none of M3's own; the model's chat template is used",
        ),
        "max_new_tokens": Target("policy.max_tokens"),
        "temperature": Target("policy.temperature"),
    }  # fmt: skip
    if given.get("is_hf_agent") or provider.kind == "hf":
        return rules | _in_process(provider)
    return rules | _served(provider)


def _served(provider: Provider) -> dict[str, Target]:
    server = provider.server()
    if provider.kind == "watsonx":
        raise UsageError(
            "LLM_PROVIDER watsonx is not an OpenAI-compatible API: it wants a token of IBM Cloud "
            "that lasts an hour, a project and a body of its own; put a gateway such as LiteLLM "
            "before it, set LLM_PROVIDER=rits and OPENAI_BASE_URL, or give --policy"
        )
    if provider.kind not in ("rits", "local"):
        raise UsageError(
            f"LLM_PROVIDER {provider.kind} is none that M3 knows: rits, local, hf, watsonx"
        )
    if server is None:
        raise UsageError(
            "the servers of M3's provider rits are IBM's own; set OPENAI_BASE_URL to an "
            "OpenAI-compatible one, such as http://HOST:8000/v1, or give --policy"
        )

    def model(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
        settings = {f"policy.{name}": entry for name, entry in server.items()}
        return {"policy.name": "openai", "policy.model": value, **settings}

    return {"agent_model_name_or_path": Target("", "", model)}


def _in_process(provider: Provider) -> dict[str, Target]:
    """A model in this process, which M3 always lets write its likeliest tokens."""
    hf = provider.hf
    adapter = hf.get("adapter_name_or_path")
    settings: dict[str, Any] = {} if not adapter else {"policy.adapter": adapter}
    if hf.get("flash_attn") == "fa2" and find_spec("flash_attn") is not None:
        settings["policy.attn_implementation"] = "flash_attention_2"
    greedy = "M3 lets a model in process write its likeliest tokens"

    def model(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"policy.name": "transformers", "policy.model": value}

    return {
        "agent_model_name_or_path": Target("", "", model),
        "temperature": Target("", greedy, lambda v, g: {"policy.temperature": 0.0}),
        "is_hf_agent": Target("", "", lambda v, g: {"policy.name": "transformers"} if v else {}),
        "path_to_hf_config": Target(
            "",
            "",
            lambda v, g: settings,
            off="it names nothing that can be had here",
        ),
    }


def _assist(given: Mapping[str, Any], mode: str | None, provider: Provider) -> dict[str, Target]:
    """Rules of the expert: its limits, and whom it may ask."""
    keys = (
        *("save_alternate_trace", "expert_assist_init_limit", "expert_assist_recent_limit"),
        *("expert_assist_random_epsilon", "overseer_model_name_or_path"),
        *("overseer_max_new_tokens", "expert_model_name_or_path", "expert_max_new_tokens"),
    )
    if mode not in ("random", "informed"):
        return {
            "expert_assist_mode": Target("", "the agent acts alone"),
            **{name: Target("", _NOT_ASKED) for name in keys},
        }
    epsilon = Target("", "it is for the mode random")
    if mode == "random":
        epsilon = Target("assist.m3_epsilon", "how likely the agent acts, as in M3's code")
    return {
        "expert_assist_mode": Target("assist.mode"),
        "save_alternate_trace": Target("assist.save_alternates"),
        "expert_assist_init_limit": Target("assist.init_limit"),
        "expert_assist_recent_limit": Target("assist.recent_limit"),
        "expert_assist_random_epsilon": epsilon,
        **_judge("overseer", ("overseer",), given, provider),
        **_judge("expert", ("witness", "rewriter"), given, provider),
    }


def _judge(
    key: str, judges: tuple[str, ...], given: Mapping[str, Any], provider: Provider
) -> dict[str, Target]:
    tokens = given.get(f"{key}_max_new_tokens")

    def model(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
        spec = provider.model(value, given.get("temperature"), tokens)
        return {f"assist.{judge}": spec for judge in judges} if spec else {}

    convert: Convert = model
    return {
        f"{key}_model_name_or_path": Target("", "", convert, off=_NO_HELP),
        f"{key}_max_new_tokens": Target("", f"it is part of {judges[0]}"),
    }
