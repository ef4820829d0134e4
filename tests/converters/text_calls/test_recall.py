"""Real files: each has the dialect that a person sees in it, and its texts come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from adp.converters.export import export
from adp.converters.files.limits import ConvertLimits
from adp.converters.inputs import collect
from adp.converters.plan import choose
from adp.converters.run import ConvertOptions, convert
from adp.stores.shards import open_finished
from tests.samples import ROOT

EXPECTED = {
    "adp_v1/agenttuning_alfworld/sample_raw.json": ("sharegpt", "alfworld"),
    "adp_v1/agenttuning_db/sample_raw.json": ("sharegpt", "agentinstruct_db"),
    "adp_v1/agenttuning_os/sample_raw.json": ("sharegpt", "agentinstruct_os"),
    "adp_v1/agenttuning_webshop/sample_raw.json": ("sharegpt", "webshop"),
    "adp_v1/code_feedback/sample_raw.json": ("openai_chat", ""),
    "adp_v1/codeactinstruct/sample_raw.json": ("sharegpt", "codeact"),
    "adp_v1/mini-coder/sample_raw.json": ("openai_chat", "mini_swe"),
    "adp_v1/orca_agentinstruct/sample_raw.json": ("sharegpt", ""),
    "adp_v1/swe-smith/sample_raw.json": ("openai_chat", "function_xml"),
    "adp_v1/toucan_1_5m/sample_raw.json": ("openai_chat", ""),
    "datasets/agentinstruct_alfworld/sample_raw.agenttuning_alfworld.head2.json": (
        "sharegpt",
        "alfworld",
    ),
    "datasets/agentinstruct_db/sample_raw.agenttuning_db.head2.json": (
        "sharegpt",
        "agentinstruct_db",
    ),
    "datasets/agentinstruct_os/sample_raw.agenttuning_os.head2.json": (
        "sharegpt",
        "agentinstruct_os",
    ),
    "datasets/eto/sample_raw.eto.head3.json": ("sharegpt", "webshop"),
    "datasets/fireact/gpt_format.hotpotqa.head8.jsonl": ("openai_chat", "react"),
    "datasets/fireact/gpt_format.multitask_multimethod.head8.jsonl": ("openai_chat", "react"),
    "datasets/glaive_sharegpt_demo/glaive_toolcall_en_demo.head6.json": ("sharegpt", ""),
    "datasets/swe_smith_trajectories/sample_raw.swe-smith.head2.json": (
        "openai_chat",
        "function_xml",
    ),
    "datasets/toolbench/derived.toolllama_dfs_shape.json": ("sharegpt", "react"),
    "datasets/toolbench/real.toolllama_G123_dfs_train.row1_conversations.json": (
        "sharegpt",
        "react",
    ),
    "datasets_new/adp_agenttuning_alfworld_336/sample_raw.rows40+60.json": (
        "sharegpt",
        "alfworld",
    ),
    "datasets_new/adp_codeactinstruct_older/sample_raw.json": ("sharegpt", "codeact"),
    "datasets_new/adp_swe_smith_older/sample_raw.json": ("openai_chat", "function_xml"),
    "datasets_new/adp_upstream_litecoder/excerpt.json": ("sharegpt", "terminus"),
    "datasets_new/fc_sft_fixtures/toolace_sample.jsonl": ("sharegpt", "toolace"),
    "datasets_new/fireact_more/hotpotqa_multimethod.rows300+60.jsonl": ("openai_chat", "react"),
    "datasets_new/hh_rlhf/test.rows0+15.jsonl": ("preference", ""),
    "datasets_new/llamafactory_pref/dpo_en_demo.rows0+30.json": ("sharegpt", ""),
    "datasets_new/llamafactory_pref/kto_en_demo.rows0+30.json": ("preference", ""),
    "datasets_new/openai_dpo_orca/validation.rows0+40.jsonl": ("preference", ""),
    "datasets_new/openai_ft_tools/stock_toolcall_training.jsonl": ("openai_chat", ""),
    "datasets_new/swe_smith_ft_xml/ft_xml_example.jsonl": ("openai_chat", "function_xml"),
    "datasets_new/tinker_conversations/conversations.jsonl": ("openai_chat", ""),
    "datasets_new/webdancer/sample_traj.rows0+24.jsonl": ("openai_chat", "hermes"),
    "datasets_new/zava_retail_sft/sft_test.rows0+18.jsonl": ("openai_chat", ""),
}
"""File -> format of chats that it is read as, and the dialect that is found; "" for none."""


def sample(name: str) -> Path:
    """A file of the samples; without them the test is skipped."""
    if not (ROOT / name).is_file():
        pytest.skip(f"{name} is not in ../shared/data")
    return ROOT / name


@pytest.mark.parametrize("name", EXPECTED)
def test_the_dialect_is_found(name: str) -> None:
    shape, expected = EXPECTED[name]
    planned = choose(collect([str(sample(name))]), shape, None, ConvertLimits())
    assert [file.dialect for file in planned] == [expected]


@pytest.mark.parametrize("name", EXPECTED)
def test_texts_come_back_as_without_a_dialect(name: str, tmp_path: Path) -> None:
    """What is written to the format of the source is the same, with a dialect and without."""
    path, (shape, dialect) = sample(name), EXPECTED[name]
    written: dict[str, bytes] = {}
    parsed: dict[str, dict[str, int]] = {}
    for way in (None, "none"):
        store, out = tmp_path / f"store-{way}", tmp_path / f"out-{way}"
        convert([str(path)], str(store), options=ConvertOptions(
            format=shape, dialect=way, workers=1))  # fmt: skip
        opened = open_finished(str(store))
        export(opened, shape, str(out))
        files = [file for file in sorted(out.rglob("*")) if file.is_file()]
        written[str(way)] = b"".join(file.read_bytes() for file in files)
        parsed[str(way)] = opened.manifest.parsed
    assert written["None"] == written["none"]
    assert not parsed["none"]
    assert {key.split(":")[0] for key in parsed["None"]} == ({dialect} if dialect else set())
