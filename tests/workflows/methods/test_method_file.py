"""Files of methods: the shipped ones say what SAGE's registry says, bad ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from adp.cli.main import main
from adp.curation.check_plan import check_plan
from adp.curation.recipe_file import read_recipe
from adp.trainers.config_file import read_config
from adp.workflows.methods import method_names, read_method, shipped_methods
from adp_schema.errors import InputError, UsageError

REGISTRY = {
    "A_baseline": {"epochs": 1},
    "B1_coreset_loss": {"loss_topk": 1000},
    "B2_coreset_diversity": {"diversity": 1000},
    "B3_coreset_hybrid": {"hybrid": 1000},
    "B4_coreset_random": {"random": 1000},
    "C_continual": {"replay": (2048, 0.25)},
    "D_combined": {"hybrid": 1500, "replay": (2048, 0.2)},
    "E_fireact": {"filter": (0.5, True, 10), "epochs": 2},
    "F_fireact_coreset": {"filter": (0.5, True, 10), "hybrid": 1000, "epochs": 2},
    "G_dora": {"dora": True},
    "H_lora_plus": {"ratio": 16.0},
    "I_dora_coreset": {"dora": True, "hybrid": 1000},
    "J_loraplus_continual": {"ratio": 16.0, "replay": (2048, 0.25)},
    "F_agenttuning": {"mix": "weighted", "epochs": 2},
    "F2_agenttuning_curriculum": {"mix": "curriculum", "epochs": 3},
    "F3_agenttuning_coreset": {"mix": "weighted", "hybrid": 1000, "epochs": 2},
}
"""What SAGE's MethodRegistry says of its 16 methods; the size of F_fireact_coreset and of the last
one is that of the other coresets."""
UNDOCUMENTED = {"B4_coreset_random", "F_fireact_coreset", "I_dora_coreset", "J_loraplus_continual",
                "F2_agenttuning_curriculum", "F3_agenttuning_coreset"}  # fmt: skip


def registered(name: str) -> dict[str, object]:
    """What a shipped method comes to, in the words of the registry."""
    method = read_method(name)
    config, _ = read_config(method.training)
    result: dict[str, object] = {}
    for op in method.ops:
        (kind, options), *_ = op.items()
        if kind == "coreset":
            result[options["method"]] = options["size"]
        elif kind == "replay":
            result["replay"] = (options["size"], options["ratio"])
        elif kind == "filter":
            result["filter"] = tuple(
                options[key] for key in ("min_reward", "require_success", "max_steps")
            )
        else:
            result["mix"] = options["method"]
    epochs = config.training.num_train_epochs
    assert config.lora is not None
    result |= {"dora": True} if config.lora.use_dora else {}
    ratio = config.lora.loraplus_lr_ratio
    result |= {"ratio": ratio} if ratio else {}
    result |= {"epochs": epochs} if epochs > 1 or not result else {}
    assert config.training.learning_rate == 2e-5
    return result


def test_the_shipped_methods_are_those_of_the_registry():
    assert set(shipped_methods("code")) == set(REGISTRY)
    assert set(shipped_methods("doc")) == set(REGISTRY) - UNDOCUMENTED
    assert len(shipped_methods("quick")) == 4
    assert {name: registered(name) for name in REGISTRY} == REGISTRY


@pytest.mark.parametrize("name", shipped_methods())
def test_every_recipe_can_be_carried_out(name):
    method = read_method(name)
    inputs = {"data": "data"}
    if method.replays:
        inputs["buffer"] = {"store": "none", "reserve": True, "optional": True}
    check_plan(read_recipe({"recipe": 1, "inputs": inputs, **method.recipe}), allow_python=False)


def test_a_variable_changes_what_it_stands_for(tmp_path: Path):
    assert read_method("D_combined", {"size": 7, "other": 1}).ops[0]["coreset"]["size"] == 7
    path = tmp_path / "mine.yaml"
    path.write_text("method: 1\nvariables: {n: 3}\nparts: '${n}'\ntraining: {method: dpo}\n")
    method = read_method(path)
    assert (method.name, method.parts, method.trains, method.ops) == ("mine", 3, "dpo", [])
    assert method_names(["quick", str(path), "quick_A_baseline"]) == [
        *shipped_methods("quick"), str(path)]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no method"),
        ("- 1\n", "is no method"),
        ("recipe: {}\n", "write method: 1"),
        ("method: 2\n", "method"),
        ("method: 1\nrecip: {}\n", "recipe"),
        ("method: 1\nparts: 0\n", "parts"),
        ("method: 1\nparts: .nan\n", "parts"),
        ("method: 1\nparts: 1000000\n", "parts"),
        ("method: 1\nvariables: [1]\n", "variables"),
        ("method: 1\nrecipe: {ops: ['${size}']}\n", "size"),
        ("method: 1\nrecipe: {inputs: {a: b}}\n", "leave inputs out"),
        ("method: 1\nname: a/b\n", "letters, digits"),
        ("method: 1\nname: [1\n", "YAML"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(text, words, tmp_path: Path):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=words) as error:
        read_method(path)
    assert "bad" in str(error.value) or "name" in text


def test_what_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="cannot read"):
        read_method(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00a: \xc3")
    with pytest.raises(InputError, match="cannot read"):
        read_method(tmp_path / "bytes.yaml")
    with pytest.raises(UsageError, match="did you mean B3_coreset_hybrid"):
        read_method("B3_coreset_hybrids")
    with pytest.raises(UsageError, match="set of methods"):
        shipped_methods("docs")


def test_the_command_lists_and_shows(capsys):
    assert main(["methods", "--set", "doc", "--json"]) == 0
    assert capsys.readouterr().out.count('"about"') == 10
    assert main(["methods", "G_dora"]) == 0
    assert "use_dora: true" in capsys.readouterr().out
    assert main(["methods", "none"]) == 2
