"""Models whose folders attack whoever loads them: code beside the weights, hostile templates."""

from __future__ import annotations

import json

import pytest

from adp.cli.main import main
from tests.reliability import jobs

pytestmark = pytest.mark.train

CODE = """
from pathlib import Path
Path({marker!r}).write_text("the code of the model ran")
from transformers import PreTrainedTokenizerFast, LlamaConfig, LlamaForCausalLM
class EvilTokenizer(PreTrainedTokenizerFast): pass
class EvilConfig(LlamaConfig): model_type = "evil"
class EvilModel(LlamaForCausalLM): config_class = EvilConfig
"""

TEMPLATES = {
    "attributes": "{{ messages.__class__.__mro__[1].__subclasses__() }}",
    "globals": "{{ raise_exception.__globals__['__builtins__']['open']('MARKER', 'w') }}",
    "format": "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}",
    "attribute filter": "{{ (messages|attr('__class__')).__mro__ }}",
    "include": "{% include '/etc/passwd' %}",
    "import": "{% import 'os' as os %}{{ os.system('touch MARKER') }}",
    "long loop": "{% for a in range(999999999) %}x{% endfor %}",
    "change": "{{ messages.clear() }}",
    "no template": "{% for m in messages %}",
    "raise": "{{ raise_exception('no') }}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return jobs.make_inputs(tmp_path_factory.mktemp("inputs"), 0.05)


@pytest.fixture
def model(tmp_path):
    from adp.rendering.tiny import tiny_model, tiny_tokenizer

    folder = tmp_path / "model"
    tiny_model().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def edit(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["tokenizer", "model", "both"])
def test_code_beside_a_model_is_not_run(part, model, inputs, tmp_path):
    marker = tmp_path / "marker"
    (model / "evil.py").write_text(CODE.format(marker=str(marker)))
    if part != "model":
        edit(
            model / "tokenizer_config.json",
            tokenizer_class="EvilTokenizer",
            auto_map={"AutoTokenizer": [None, "evil.EvilTokenizer"]},
        )
    if part != "tokenizer":
        edit(
            model / "config.json",
            model_type="evil",
            auto_map={"AutoConfig": "evil.EvilConfig", "AutoModelForCausalLM": "evil.EvilModel"},
        )
    calls = [
        ["tokens", inputs.store, "--model", model],
        ["show", inputs.store, "r1", "--mask", "--model", model],
        ["train", "sft", "--config", inputs.train, "-o", tmp_path / "out",
         "--set", f"model.model_name_or_path={model}", "--set", "training.max_steps=1"],
        ["collect", "--env", "toolworld", "--policy", f"transformers:model={model},max_tokens=4",
         "--tasks", "test:1", "--max-turns", "1", "-o", tmp_path / "collected"],
    ]  # fmt: skip
    for words in calls:
        ran = jobs.call(words, HF_HUB_OFFLINE="1")
        assert not marker.exists(), words
        assert "Traceback" not in ran.stderr
        assert ran.returncode != 70, ran.stderr[-2000:]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_hostile_template_reads_and_runs_nothing(
    name, model, inputs, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    marker = tmp_path / "marker"
    template = TEMPLATES[name].replace("MARKER", str(marker))
    (model / "chat_template.jinja").write_text(template)
    code = main(["tokens", str(inputs.store), "--model", str(model)])
    out, err = capsys.readouterr()
    assert not marker.exists()
    assert code not in (0, 70)
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("error: ")]) == 1, err
    assert "root:" not in out + err
