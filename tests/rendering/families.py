"""Chat templates of many families, and small tokenizers of the kinds that these have.

TRL brings the templates of many families with it; they are read from the installed package. Those
of ``tests/chat_templates`` are written in the manner of families that TRL does not have. A folder
named by ``ADP_CHAT_TEMPLATES`` adds more.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer

OWN_TEMPLATES = Path(__file__).parents[1] / "chat_templates"

BOS, EOS, PAD = "<s>", "</s>", "<pad>"

MARKS = re.compile(r"<[|\uff5c][^<>\s]+?[|\uff5c]>|</?[a-z_|]+>|\[/?[A-Z_]{3,}\]|\[\|[a-z]+\|\]")
"""What looks like a special token in the text of a template."""

WORDS = """
the a of to and in is it that for on with as are be at or by not from have you can will what which
where how who find look search open read write edit run test file line code error name value result
call tool function argument string number object list type city weather temperature answer question
user assistant system message text path query model developer ipython available available_tools
{"name": "search", "arguments": {"query": "weather in Paris", "limit": 10}, "parameters": {}}
I will look it up. The answer is 42. Let me check the file first. Something went wrong, try again.
"""


@dataclass(frozen=True)
class Ends:
    """How a template ends a turn of the assistant: the first of these tokens after its words.

    Attributes:
        text: of a message without calls; empty when nothing follows the words.
        calls: of a message with calls; None for the same as `text`.
        open_: whether the template leaves the last turn open, and the next message begins with the
            token: then a row ends with it.
    """

    text: tuple[str, ...]
    calls: tuple[str, ...] | None = None
    open_: bool = False

    def left(self, calls: bool) -> str:
        """What a row ends with that the template does not write there."""
        return (self.calls or self.text if calls else self.text)[0] if self.open_ else ""

    def after(self, text: str, place: int, calls: bool) -> int:
        """The end of a turn whose words end at a place; -1 when it is not known."""
        if self is UNKNOWN:
            return -1
        wanted = self.calls if calls and self.calls is not None else self.text
        results = [
            text.find(word, place) + len(word) for word in wanted if text.find(word, place) >= 0
        ]
        return min(results) if results else place


CHATML = Ends(("<|im_end|>",))
DEEPSEEK = Ends(("<\uff5cend▁of▁sentence\uff5c>",))
GEMMA4 = Ends(("<turn|>",), ("<turn|>", "<|tool_response>"))
COHERE = Ends(("<|END_OF_TURN_TOKEN|>",))

UNKNOWN = Ends(("?",))
"""Of templates that nothing is known of."""

ENDS = {
    "cohere": COHERE,
    "cohere2": COHERE,
    "deepseek_r1_distill": DEEPSEEK,
    "deepseekv3": DEEPSEEK,
    "gemma": Ends(("<end_of_turn>",)),
    "gemma3": Ends(("<end_of_turn>",)),
    "gemma4": GEMMA4,
    **dict.fromkeys(["gemma4_v2", "gemma4_v3", "gemma4_v4", "gemma4_v5"], GEMMA4),
    "diffusion_gemma": GEMMA4,
    "glm4moe": Ends(("<|user|>",), ("<|observation|>",), open_=True),
    "gptoss": Ends(("<|return|>", "<|end|>"), ("<|call|>",)),
    "granite": Ends(("<|end_of_text|>",)),
    **dict.fromkeys(["lfm2_2_5", "lfm2_2_5_v2", "lfm2_2_5_vl"], Ends(("<|im_end|>\n",))),
    "llama3": Ends(("<|eot_id|>",)),
    "llama3_1": Ends(("<|eot_id|>",)),
    "llama3_2": Ends(("<|eot_id|>",)),
    "mistral": Ends((EOS,)),
    "mistral_tekken": Ends((EOS,)),
    "muse_glimmer": Ends(("<|eot|>", "<|eom|>")),
    "phi3": Ends(("<|end|>",)),
    "phi3_5": Ends(("<|end|>",)),
}
"""Template -> how it ends a turn; those that are not here have ``<|im_end|>``."""


def trl_folder() -> Path | None:
    """The folder of TRL's chat templates; None when TRL is not installed. Does not import it."""
    spec = find_spec("trl")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "chat_templates"


@functools.cache
def files() -> dict[str, Path]:
    """Template name -> file."""
    folders = [trl_folder(), OWN_TEMPLATES]
    more = os.environ.get("ADP_CHAT_TEMPLATES")
    if more:
        folders.append(Path(more))
    return {
        path.stem: path
        for folder in folders
        if folder is not None
        for path in sorted(folder.glob("*.jinja"))
    }


def ends(name: str) -> Ends:
    """How a template ends a turn."""
    if name in more_names():
        return UNKNOWN
    return ENDS.get(name, CHATML)


def more_names() -> list[str]:
    """Names of the templates that ``ADP_CHAT_TEMPLATES`` adds."""
    more = os.environ.get("ADP_CHAT_TEMPLATES")
    return sorted(path.stem for path in Path(more).glob("*.jinja")) if more else []


@functools.cache
def template(name: str) -> str:
    """The text of a template."""
    return files()[name].read_text(encoding="utf-8")


def specials(text: str) -> list[str]:
    """The special tokens that a template writes."""
    fromkeys = dict.fromkeys([PAD, BOS, EOS, "<unk>", *MARKS.findall(text)])
    return [word for word in fromkeys if "function-name" not in word and "args-json" not in word]


KINDS = ("bytes", "bytes_nfc", "metaspace_first", "metaspace_always", "sentencepiece")
"""Kinds of tokenizers: byte-level BPE, the same after NFC, and three in SentencePiece's manner."""


@functools.cache
def tokenizer(name: str, kind: str) -> Any:
    """A small tokenizer of a kind, with a template and its special tokens."""
    return tokenizer_of(template(name), kind)


def tokenizer_of(text: str, kind: str = "bytes") -> Any:
    """The same with the text of a template."""
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerFast

    backend = _backend(kind)
    backend.add_special_tokens([AddedToken(word, normalized=False) for word in specials(text)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        chat_template=text,
        clean_up_tokenization_spaces=False,
    )


def _backend(kind: str) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_str(_trained(kind))


@functools.cache
def _trained(kind: str) -> str:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    byte_names = [f"<0x{number:02X}>" for number in range(256)]
    if kind.startswith("bytes"):
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        alphabet, names = sorted(pre_tokenizers.ByteLevel.alphabet()), ["<unk>"]
        if kind == "bytes_nfc":
            backend.normalizer = normalizers.NFC()
    else:
        backend = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        alphabet, names = [], ["<unk>", *byte_names]
        scheme = "always" if kind == "metaspace_always" else "first"
        if kind == "sentencepiece":
            space = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
            backend.normalizer = normalizers.Sequence(space)
        else:
            backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
        backend.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        )
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=names, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(WORDS.splitlines(), trainer)
    text: str = backend.to_str()
    return text


def renderer(name: str, kind: str = "bytes", options: RenderOptions | None = None) -> Renderer:
    """A renderer with a template and a tokenizer of a kind."""
    if options is None:
        return _renderer(name, kind)
    return Renderer(tokenizer(name, kind), options)


@functools.cache
def _renderer(name: str, kind: str) -> Renderer:
    return Renderer(tokenizer(name, kind))
