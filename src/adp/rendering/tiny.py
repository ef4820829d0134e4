"""A small model that is built on the spot, for trials and tests: the model name ``tiny``.

Its weights are random. Its tokenizer is a byte-level BPE over a few hundred pieces, so it
holds every text, and its chat template is in the ChatML manner, with tools, parallel calls and
reasoning.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from adp_schema.errors import MissingExtraError

NAME = "tiny"

VOCABULARY = 640
"""Tokens, the special ones included."""

SHAPE: Mapping[str, Any] = {
    "architecture": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
    "seed": 0,
}
"""Shape of the model, unless another one is asked for."""

SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>")
MARKS_END = ("</think>", "<tools>", "</tools>")

TEMPLATE = """\
{%- set system = messages[0].content if messages and messages[0].role == 'system' else '' %}
{%- if system or tools %}
    {{- '<|im_start|>system\\n' + system }}
    {%- if tools %}
        {{- '\\n\\n' if system else '' }}
        {{- 'Tools that you may call, one JSON schema a line:\\n<tools>' }}
        {%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
        {{- '\\n</tools>\\nA call is written as <tool_call>{\\"name\\": ..., ' }}
        {{- '\\"arguments\\": {...}}</tool_call>.' }}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content %}
            {{- '<think>' + message.reasoning_content + '</think>\\n' }}
        {%- endif %}
        {{- message.content or '' }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n' if message.content or not loop.first else '' }}
            {{- '<tool_call>{\\"name\\": ' + (call.function.name | tojson) }}
            {{- ', \\"arguments\\": ' }}
            {{- call.function.arguments if call.function.arguments is string
                else call.function.arguments | tojson }}
            {{- '}</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>tool\\n<tool_response>' + message.content }}
        {{- '</tool_response><|im_end|>\\n' }}
    {%- elif message.role == 'user' or not loop.first %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""

_WORDS = """
the a an of to in is it that for on with as are this be at or by not from have you can will what
which when where how who find look search open read write edit run test file line code error name
value result call tool function argument string number object list type city weather temperature
answer question user assistant system message text path query data table column select from where
yes no true false null none first last next step done ok please thanks need want make use get set
return print import class def if else while import self python bash command output input exit
{"name": "search", "arguments": {"query": "weather in Paris", "limit": 10}}
{"city": "Paris", "unit": "celsius"} {"path": "src/main.py", "line": 12}
I will look it up. The answer is 42. Let me check the file first. Something went wrong, try again.
"""


def tiny_tokenizer() -> Any:
    """Build the tokenizer.

    Returns:
        A ``PreTrainedTokenizerFast`` with a chat template; the same one every time.

    Raises:
        MissingExtraError: transformers is not installed.
    """
    try:
        from tokenizers import Tokenizer
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise MissingExtraError("transformers", "train") from error
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_backend()),
        pad_token=SPECIAL[0],
        eos_token=SPECIAL[2],
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def tiny_model(shape: Mapping[str, Any] | None = None) -> Any:
    """Build the model with random weights.

    Args:
        shape: keys of `SHAPE` with other values; the architecture is ``qwen3`` or ``llama``.

    Returns:
        A ``PreTrainedModel``; the same weights every time.

    Raises:
        MissingExtraError: torch or transformers is not installed.
    """
    try:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM
    except ImportError as error:
        raise MissingExtraError("torch", "train") from error
    tokenizer = tiny_tokenizer()
    given = {**SHAPE, **(shape or {})}
    architecture, seed = given.pop("architecture"), given.pop("seed")
    given["vocab_size"] = len(tokenizer)
    given["pad_token_id"] = tokenizer.pad_token_id
    given["eos_token_id"] = tokenizer.eos_token_id
    given["bos_token_id"] = tokenizer.bos_token_id
    given["head_dim"] = given["hidden_size"] // given["num_attention_heads"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if architecture == "qwen3":
            return Qwen3ForCausalLM(Qwen3Config(**given))
        return LlamaForCausalLM(LlamaConfig(**given))


@functools.cache
def _backend() -> str:
    """The tokenizer as JSON text. Making it takes a tenth of a second."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    marks = [AddedToken(mark, normalized=False) for mark in MARKS + MARKS_END]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(marks),
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(_WORDS.splitlines(), trainer)
    backend.add_tokens(marks)
    text: str = backend.to_str()
    return text
