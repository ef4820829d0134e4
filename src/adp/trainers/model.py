"""Loading models, and building the one called ``tiny``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from adp.trainers.config import TINY, Dtype, TinySection, TrainConfig
from adp_schema.errors import InputError

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig, PreTrainedModel, PreTrainedTokenizerBase


def build_tiny(folder: Path, section: TinySection) -> None:
    """Write a small model with random weights, and its tokenizer, as a folder to load from.

    The same section gives the same weights.

    Args:
        folder: where to.
        section: the shape.
    """
    from adp.rendering.tiny import tiny_model, tiny_tokenizer

    tiny_model(section.model_dump()).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)


def load_tokenizer(config: TrainConfig, folder: Path | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a run.

    Args:
        config: the run.
        folder: where ``base/`` with the model ``tiny`` lies.

    Raises:
        InputError: there is none.
    """
    from transformers import AutoTokenizer

    model = config.model
    name = model.tokenizer_name_or_path or _place(config, folder)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            name, revision=model.model_revision, trust_remote_code=model.trust_remote_code
        )
    except (OSError, ValueError) as error:
        raise InputError(_unloadable("tokenizer", name, error)) from None
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(
    config: TrainConfig, folder: Path | None = None, *, scores: bool = False
) -> PreTrainedModel:
    """The base model of a run, without an adapter.

    TRL loads a model by its name in float32, whatever it is stored in; here ``model.dtype``
    decides. With ZeRO-3, TRL's configuration has to be made before.

    Args:
        config: the run.
        folder: where ``base/`` with the model ``tiny`` lies.
        scores: with a new head that gives a number in place of the one that gives words.

    Raises:
        InputError: there is no such model, or it cannot be loaded.
    """
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    kind: Any = AutoModelForSequenceClassification if scores else AutoModelForCausalLM
    model = config.model
    name = _place(config, folder)
    given: dict[str, Any] = {
        "dtype": _dtype(dtype_of(config)),
        "revision": model.model_revision,
        "trust_remote_code": model.trust_remote_code,
        "attn_implementation": model.attn_implementation,
        "quantization_config": quantization(config),
        "device_map": model.device_map,
        "num_labels": 1 if scores else None,
    }
    try:
        loaded: PreTrainedModel = kind.from_pretrained(
            name, **{key: value for key, value in given.items() if value is not None}
        )
    except (OSError, ValueError, ImportError) as error:
        raise InputError(_unloadable("model", name, error)) from None
    loaded.config.use_cache = False
    return loaded


def dtype_of(config: TrainConfig) -> Dtype:
    """Type of the weights, with its default.

    Full fine-tuning in 16 bits without the copy in 32 bits that ZeRO keeps loses steps that are
    smaller than the weight's last bit.
    """
    if config.model.dtype is not None:
        return config.model.dtype
    full = config.lora is None and config.model.adapter_name_or_path is None
    return "float32" if full and not config.launch.zero else "auto"


def quantization(config: TrainConfig) -> BitsAndBytesConfig | None:
    """Configuration of the quantisation; None without."""
    model = config.model
    if not (model.load_in_4bit or model.load_in_8bit):
        return None
    from transformers import BitsAndBytesConfig

    if model.load_in_8bit:
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=model.bnb_4bit_quant_type,
        bnb_4bit_compute_dtype=_dtype(model.bnb_4bit_compute_dtype),
        bnb_4bit_use_double_quant=model.use_bnb_nested_quant,
    )


def context_length(config: TrainConfig) -> int | None:
    """Tokens that the model was made for; None when it does not say."""
    if config.is_tiny:
        return config.model.tiny.max_position_embeddings
    from transformers import AutoConfig

    try:
        result = AutoConfig.from_pretrained(
            config.model.model_name_or_path,
            revision=config.model.model_revision,
            trust_remote_code=config.model.trust_remote_code,
        )
    except (OSError, ValueError):
        return None  # loading the model will say what is wrong
    length = getattr(result, "max_position_embeddings", None)
    return length if isinstance(length, int) and length > 0 else None


def _dtype(name: Dtype) -> Any:
    import torch

    return "auto" if name == "auto" else getattr(torch, name)


def _place(config: TrainConfig, folder: Path | None) -> str:
    """What to load the base model from."""
    name = config.model.model_name_or_path
    if name != TINY:
        return name
    assert folder is not None, "the model tiny is loaded from the folder of the run"
    return str(folder / "base")


def _unloadable(what: str, name: str, error: Exception) -> str:
    message = next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))
    return (
        f"the {what} {name} cannot be loaded: {message.rstrip('.')}; name a folder with a model, a "
        "name on the Hub, or tiny"
    )
