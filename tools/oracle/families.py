"""Small models with the chat templates of well-known families, which TRL brings along."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from adp.rendering.tiny import tiny_tokenizer

FAMILIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "qwen2.5": ("qwen2_5.jinja", "<|im_end|>", ("<|endoftext|>",)),
    "qwen3": ("qwen3.jinja", "<|im_end|>", ("<|endoftext|>",)),
    "qwen3-instruct": ("qwen3_instruct_2507.jinja", "<|im_end|>", ("<|endoftext|>",)),
    "llama3.1": (
        "llama3_1.jinja",
        "<|eot_id|>",
        ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    ),
}
FAMILIES["llama3.1-base"] = (
    "llama3_1.jinja",
    "<|end_of_text|>",
    (*FAMILIES["llama3.1"][2], "<|end_of_text|>"),
)
"""Name -> file of the template, the tokenizer's end of a text, special tokens.

The base model's tokenizer ends a text with another token than the template a turn.
"""


def write_model(folder: Path, family: str) -> Path:
    """A folder with a tokenizer of the family, and a model of 75,000 parameters for it."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    file, end, special = FAMILIES[family]
    spec = find_spec("trl")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    templates = Path(spec.submodule_search_locations[0]) / "chat_templates"
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": list(special)})
    tokenizer.eos_token = end
    if "<|begin_of_text|>" in special:
        tokenizer.bos_token = "<|begin_of_text|>"
    tokenizer.chat_template = (templates / file).read_text(encoding="utf-8")
    tokenizer.save_pretrained(folder)
    config = Qwen3Config(
        vocab_size=len(tokenizer) + 16,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder
