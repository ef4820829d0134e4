"""Pushing a model to a local Hub: private, once, with its card and without paths of the machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adp.cli.main import main
from adp.trainers.method import TrainingPlan
from adp.trainers.run import Trained
from adp.workflows.push_model import check_push, push_model
from adp_schema.errors import HubError, InputError, UsageError
from tests.hub.server import LocalHub

WEIGHTS = b"weights" * 1000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What a training leaves, made by hand."""
    out = tmp_path / "out"
    (out / "adapter").mkdir(parents=True)
    (out / "checkpoints").mkdir()
    base = tmp_path / "models" / "base-7b"
    base.mkdir(parents=True)
    adapter = {"base_model_name_or_path": str(base), "r": 4}
    (out / "adapter" / "adapter_config.json").write_text(json.dumps(adapter))
    (out / "adapter" / "adapter_model.safetensors").write_bytes(WEIGHTS)
    (out / "adapter" / "training_args.bin").write_bytes(b"pickle")
    (out / "adapter" / "README.md").write_text("---\nlibrary_name: peft\n---\n\n# An adapter\n")
    return out


def test_a_model_is_pushed_privately_with_its_card(
    fake_hub: LocalHub, run: Path, tmp_path: Path
) -> None:
    pushed = push_model(run, "me/agent")
    files = fake_hub.repos.files("models/me/agent")
    assert set(files) == {"README.md", "adapter_config.json", "adapter_model.safetensors"}
    assert files["adapter_model.safetensors"] == WEIGHTS
    assert json.loads(files["adapter_config.json"]) == {
        "base_model_name_or_path": "base-7b", "r": 4,
    }  # fmt: skip
    assert fake_hub.repos.repos["models/me/agent"].private
    assert (pushed.private, pushed.files) == (True, 3)
    assert pushed.url == f"{fake_hub.url}/me/agent"
    assert str(tmp_path) not in b"".join(files.values()).decode(errors="ignore")
    # The folder itself stays as it is: the base is found again from there.
    kept = json.loads((run / "adapter" / "adapter_config.json").read_text())
    assert kept["base_model_name_or_path"].startswith(str(tmp_path))


def test_a_second_push_sends_nothing_again(fake_hub: LocalHub, run: Path) -> None:
    first = push_model(run, "me/agent")
    second = push_model(run, "me/agent")
    assert second.commit == first.commit
    assert len(fake_hub.repos.repos["models/me/agent"].history()) == 1
    (run / "adapter" / "README.md").write_text("---\nlibrary_name: peft\n---\n\n# Better\n")
    push_model(run, "me/agent")
    assert len(fake_hub.repos.repos["models/me/agent"].history()) == 2
    assert max(fake_hub.repos.stored.values()) == 1


@pytest.mark.parametrize("fault", ["429", "503", "reset"])
@pytest.mark.parametrize("place", ["/commit/", "/preupload/", "/repos/create", "lfs/objects/batch"])
def test_faults_are_waited_out(fake_hub: LocalHub, run: Path, fault: str, place: str) -> None:
    fake_hub.faults.add(f"POST .*{place}", fault)
    push_model(run, "me/agent")
    assert fake_hub.repos.files("models/me/agent")["adapter_model.safetensors"] == WEIGHTS
    assert len(fake_hub.repos.repos["models/me/agent"].history()) == 1


def test_a_public_repository_is_pushed_to_only_when_asked(fake_hub: LocalHub, run: Path) -> None:
    pushed = push_model(run, "me/agent", public=True)
    assert not fake_hub.repos.repos["models/me/agent"].private
    assert not pushed.private
    with pytest.raises(UsageError, match="public already"):
        push_model(run, "me/agent")
    with pytest.raises(UsageError, match="public already"):
        check_push("me/agent")
    check_push("me/agent", public=True)


def test_what_cannot_be_pushed_is_said(
    fake_hub: LocalHub, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="OWNER/NAME"):
        check_push("agent")
    with pytest.raises(HubError, match="may not write to other/agent"):
        check_push("other/agent")
    (run / "adapter" / "README.md").unlink()
    with pytest.raises(InputError, match=r"has no README\.md"):
        push_model(run, "me/agent")
    with pytest.raises(InputError, match="holds no model"):
        push_model(run / "checkpoints", "me/agent")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="not logged in"):
        check_push("me/agent")
    assert not fake_hub.repos.repos


def test_the_command_says_where_it_is(
    fake_hub: LocalHub, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["push-model", str(run), "me/agent"]) == 0
    assert f"{fake_hub.url}/me/agent (private)" in "".join(capsys.readouterr().out.split("\n"))
    assert main(["push-model", str(run), "me/agent", "--json"]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert value["repo_id"] == "me/agent"


@pytest.mark.train
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|transformers|peft|trl|accelerate)")
def test_a_training_pushes_what_it_made(
    fake_hub: LocalHub, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from tests.trainers.small_runs import write_runs

    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    store = write_runs(tmp_path / "store")
    out = str(tmp_path / "out")
    short = ["--set=training.max_steps=1", "--set=training.use_cpu=true", "--set=data.workers=1"]
    words = ["train", "sft", store.root, "--model", "tiny", "-o", out, *short]
    assert main([*words, "--push", "other/agent"]) == 9
    assert not Path(out).exists()
    fake_hub.faults.add("POST .*/commit/", "403")
    assert main([*words, "--push", "me/agent"]) == 9
    assert f"adp push-model {out} me/agent" in "".join(capsys.readouterr().err.split("\n"))
    assert main(["push-model", out, "me/agent"]) == 0
    files = fake_hub.repos.files("models/me/agent")
    assert {"README.md", "adapter_config.json", "adapter_model.safetensors"} <= set(files)
    assert str(tmp_path).encode() not in b"".join(files.values())


@pytest.mark.parametrize("rank", [0, 1])
def test_of_several_machines_the_first_pushes(
    fake_hub: LocalHub, run: Path, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(*words: Any) -> Trained:
        """What `train` gives on this machine; the result is in a folder that all see."""
        return Trained(TrainingPlan(), {} if rank == 0 else None)

    monkeypatch.setattr("adp.cli.train.train", trained)
    machines = {"processes": 2, "num_machines": 2, "machine_rank": rank}
    settings = ["--set=launch.main_process_ip=10.0.0.1"]
    settings += [f"--set=launch.{name}={value}" for name, value in machines.items()]
    words = ["train", "sft", "store", "--model", "tiny", "-o", str(run), "--push", "me/agent"]
    assert main([*words, *settings]) == 0
    assert ("models/me/agent" in fake_hub.repos.repos) == (rank == 0)
    if rank:
        assert not fake_hub.calls
