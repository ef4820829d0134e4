"""M3's ``infer_agent.json``: each setting is mapped, or left out with a reason."""

from __future__ import annotations

import pytest

from adp.rollouts.environment import ENVIRONMENTS
from adp.rollouts.readers.infer_agent import is_infer_agent, read_infer_agent
from adp.rollouts.readers.infer_provider import Provider
from adp.rollouts.spec import load, spec_text
from adp_schema.errors import UsageError

SHIPPED = {
    "path_to_env_vars": "./.env", "path_to_env_data": "books.json",
    "db_config": {"cert": "./es_cert", "host_name": "h", "index_name": "dev", "top_k": 1},
    "api_config": {"end_point": "http://127.0.0.1:8000"}, "horizon": 10,
    "env_subdomain_mode": "rest", "resume_instance": None, "path_to_prev_run_dir": None,
    "temperature": 0.0, "overseer_model_name_or_path": "big", "overseer_max_new_tokens": 4096,
    "scorer_model_name_or_path": "big", "scorer_max_new_tokens": 4096,
    "expert_model_name_or_path": "big", "expert_max_new_tokens": 4096,
    "agent_model_name_or_path": "small", "max_new_tokens": 512, "agent_template": "teacher_rits",
    "is_hf_agent": False, "path_to_hf_config": "infer_base.json",
    "expert_assist_mode": "ground_truth", "save_alternate_trace": True,
    "expert_assist_init_limit": 3, "expert_assist_recent_limit": -2,
    "expert_assist_random_epsilon": 0.25,
}  # fmt: skip
"""The keys of the file that M3 ships, with values of our own."""

URL = {"OPENAI_BASE_URL": "http://localhost:8000/v1"}
SERVER = {"name": "openai", "base_url": URL["OPENAI_BASE_URL"]}


SIGNED = Provider({**URL, "ES_USERNAME": "me", "ES_PASSWORD": "pw"})


def read(provider=None, **changes):
    return read_infer_agent({**SHIPPED, **changes}, provider or Provider(URL))


@pytest.mark.parametrize("mode", [None, "none", "ground_truth", "random", "informed"])
def test_each_setting_is_mapped_or_left_with_a_reason(mode):
    config = read(expert_assist_mode=mode)
    names = [item.name for item in (*config.mapped, *config.left)]
    assert sorted(names) == sorted(SHIPPED)
    assert all(item.why and item.why != "it is not known" for item in config.left)
    judge = {**SERVER, "model": "big", "temperature": 0.0, "max_tokens": 4096}
    asks = {} if mode == "ground_truth" else {"judge": judge}
    assert config.plain["env"] == {"horizon": 10, **asks}
    assert (config.plain["max_turns"], config.plain["data"]) == (10, "books.json")


def test_the_expert_alone_needs_no_server():
    assert read(Provider()).plain["policy"] == {"name": "expert"}
    plain = read(Provider(policy=True)).plain
    assert (plain["assist"], "policy" in plain) == ({"mode": "ground_truth"}, False)


def test_the_agent_alone_in_the_form_of_its_template():
    plain = read(expert_assist_mode=None, agent_template="student_granite3").plain
    assert plain["policy"] == {
        **SERVER, "model": "small", "wire_form": "m3_granite3", "max_tokens": 512,
        "temperature": 0.0,
    }  # fmt: skip
    assert "assist" not in plain
    assert "wire_form" not in read(expert_assist_mode=None, agent_template="llama3").plain["policy"]


def test_random_takes_epsilon_in_the_sense_of_the_code():
    plain = read(expert_assist_mode="random").plain["assist"]
    assert (plain["m3_epsilon"], plain["mode"]) == (0.25, "random")
    judge = {**SERVER, "model": "big", "temperature": 0.0, "max_tokens": 4096}
    assert [plain[name] for name in ("overseer", "witness", "rewriter")] == [judge] * 3


def test_informed_has_limits_and_alternates():
    plain = read(expert_assist_mode="informed", save_alternate_trace=False).plain["assist"]
    limits = {"init_limit": 3, "recent_limit": -2, "save_alternates": False, "mode": "informed"}
    assert {name: plain[name] for name in limits} == limits
    assert "m3_epsilon" not in plain
    # With a policy of the call and no server, the rules alone decide.
    config = read(Provider(policy=True), expert_assist_mode="informed")
    assert "overseer" not in config.plain["assist"]
    assert any("OPENAI_BASE_URL" in line for line in config.lines())


def test_the_older_name_of_the_mode_and_scenarios():
    given = {name: value for name, value in SHIPPED.items() if name != "expert_assist_mode"}
    given |= {"expert_mode": "informed", "env_scenario": "only_api-api_before_rag"}
    plain = read_infer_agent(given, Provider(URL)).plain
    assert plain["assist"]["mode"] == "informed"
    assert plain["env"]["availability"] == "only_api"
    assert plain["env"]["ordering"] == "api_before_rag"


@pytest.mark.parametrize(
    ("variables", "policy"),
    [
        ({**URL, "RITS_API_KEY": "k"}, {
            **SERVER, "api_key_env": "RITS_API_KEY", "headers": {"RITS_API_KEY": "$RITS_API_KEY"},
        }),
        ({**URL, "OPENAI_API_KEY": "k"}, {**SERVER, "api_key_env": "OPENAI_API_KEY"}),
        ({"LLM_PROVIDER": "local"}, {"name": "openai", "base_url": "http://localhost:11434/v1"}),
    ],
)  # fmt: skip
def test_who_serves(variables, policy):
    plain = read(Provider(variables), expert_assist_mode=None).plain["policy"]
    assert {name: plain[name] for name in plain if name in ("name", "base_url", "api_key_env",
                                                            "headers")} == policy  # fmt: skip


def test_a_model_in_process_with_its_adapter():
    hf = {"flash_attn": "fa2", "finetuning_type": "lora", "adapter_name_or_path": "ckpts/PEFT"}
    plain = read(
        Provider({}, hf), expert_assist_mode=None, is_hf_agent=True, temperature=0.7,
        agent_template="student_mistral",
    ).plain["policy"]  # fmt: skip
    assert plain["name"] == "transformers"
    assert (plain["model"], plain["adapter"]) == ("small", "ckpts/PEFT")
    assert (plain["temperature"], plain["wire_form"]) == (0.0, "m3_mistral")
    assert "attn_implementation" not in plain or plain["attn_implementation"]


@pytest.mark.parametrize(
    ("provider", "changes", "words"),
    [
        (Provider({"LLM_PROVIDER": "watsonx"}), {}, "gateway such as LiteLLM"),
        (Provider({"LLM_PROVIDER": "other"}), {}, "rits, local, hf, watsonx"),
        (Provider(), {}, "set OPENAI_BASE_URL"),
        (None, {"expert_assist_mode": "sometimes"}, "ground_truth, random, informed"),
        (None, {"expert_assist_mode": ["informed"]}, "ground_truth, random, informed"),
        (None, {"env_subdomain_mode": "all"}, "slot_filling"),
        (None, {"path_to_env_data": None}, "path_to_env_data"),
        (None, {"db_config": [1]}, "db_config: .* is no object"),
        (None, {"db_config": {"host_name": 3}}, "db_config.host_name: 3 is no text"),
        (SIGNED, {"db_config": {"host_name": "h:9200"}}, "index_name .* is missing"),
        (SIGNED, {"db_config": {"host_name": "https://me:pw@h", "index_name": "i"}}, "take it out"),
        (
            SIGNED,
            {"db_config": {"host_name": "h", "index_name": "i", "cert": "absent"}},
            "cert: absent is not there",
        ),
        (
            None,
            {"api_config": {"end_point": "http://h", "document": "absent.json"}},
            "document: absent.json is not there",
        ),
        (
            None,
            {"env_subdomain_mode": "selection", "api_config": {"tables": "absent"}},
            "tables: absent is not there",
        ),
        (
            None,
            {
                "env_subdomain_mode": "selection",
                "api_config": {"tables": "t"},
                "expert_assist_mode": "informed",
            },
            "knows the recorded calls alone",
        ),
    ],
)
def test_what_cannot_be_had_is_said(provider, changes, words):
    with pytest.raises(UsageError, match=words):
        read(provider, **{"expert_assist_mode": None, **changes})


def why(config, name):
    return next(item.why for item in config.left if item.name == name)


@pytest.mark.parametrize(
    ("provider", "db", "words"),
    [
        (SIGNED, None, "names no host"),
        (SIGNED, {}, "names no host"),
        (SIGNED, {"host_name": "", "index_name": "i"}, "names no host"),
        (Provider(URL), SHIPPED["db_config"], "ES_USERNAME and ES_PASSWORD are not both set"),
    ],
)
def test_without_a_data_base_documents_are_those_of_the_recording(provider, db, words):
    config = read(provider, db_config=db)
    assert "retrieve" not in config.plain["env"]
    assert words in why(config, "db_config")
    assert "recorded responses are given again" in why(config, "db_config")


def test_documents_come_from_the_data_base_that_is_named(tmp_path):
    (tmp_path / "es_cert").write_text("")
    provider = Provider(SIGNED.variables, find=lambda name: tmp_path / name)
    spec = read(provider).plain["env"]["retrieve"]
    assert spec == {
        "name": "retrieve_documents", "retriever": "elasticsearch", "retriever_url": "https://h",
        "retriever_user_env": "ES_USERNAME", "retriever_password_env": "ES_PASSWORD",
        "match": "elser", "index": "dev", "limit": 1, "retriever_cert": str(tmp_path / "es_cert"),
    }  # fmt: skip
    kind, settings = load(ENVIRONMENTS, spec_text(spec))
    assert (kind.name, settings.index, settings.limit) == ("retrieve_documents", "dev", 1)
    plain = read(SIGNED, db_config={**SHIPPED["db_config"], "host_name": "http://h:9200"}).plain
    assert "retriever_cert" not in plain["env"]["retrieve"]


def test_calls_go_to_the_server_whose_document_is_there(tmp_path):
    (tmp_path / "api.json").write_text("{}")
    provider = Provider(URL, find=lambda name: tmp_path / name)
    api = {"end_point": "http://127.0.0.1:8000", "document": "api.json"}
    spec = {"name": "openapi", "file": str(tmp_path / "api.json")}
    assert read(provider, api_config=api).plain["env"]["api"] == {
        **spec,
        "server": api["end_point"],
    }
    assert read(provider, api_config={"end_point": "api.json"}).plain["env"]["api"] == spec
    for api, words in (
        (SHIPPED["api_config"], "save its OpenAPI document"),
        ({"end_point": "127.0.0.1:8000"}, "neither an address"),
        (None, "names no server"),
    ):
        config = read(provider, api_config=api)
        assert "api" not in config.plain["env"]
        assert words in why(config, "api_config")


@pytest.mark.parametrize("style", ["slot_filling", "selection"])
def test_tools_over_tables(tmp_path, style):
    provider = Provider(SIGNED.variables, find=lambda name: tmp_path)
    api = {**SHIPPED["api_config"], "tables": "bird"}
    env = read(provider, expert_assist_mode=None, env_subdomain_mode=style, api_config=api).plain[
        "env"
    ]
    assert env["inner"] == {"name": "sql", "tables": str(tmp_path), "style": style}
    assert not {"api", "retrieve"} & set(env)  # m3 takes no others beside an environment inside
    config = read(env_subdomain_mode=style)
    assert "inner" not in config.plain["env"]
    assert "api_config.tables" in why(config, "env_subdomain_mode")


def test_a_judge_without_a_server_is_a_rule():
    for provider, changes, words in (
        (Provider(policy=True), {"expert_assist_mode": None}, "OPENAI_BASE_URL"),
        (None, {"scorer_model_name_or_path": None, "expert_assist_mode": None}, "names no model"),
        (None, {}, "the reference answers"),
    ):
        config = read(provider, **changes)
        assert "judge" not in config.plain["env"]
        assert words in why(config, "scorer_model_name_or_path")


def test_a_file_of_this_kind():
    assert is_infer_agent(SHIPPED)
    assert not is_infer_agent({"horizon": 3})
