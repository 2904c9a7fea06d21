"""What the choices of the form are called."""

from typing import Final

from planner.dtypes import AS_STORED, KV_FORMATS, SCHEMES, Family, Scheme
from planner.present import format as fmt
from planner.present.plan.workload import OPTIMIZER_TITLES

Options = tuple[tuple[object, str], ...]

TASKS: Final[Options] = (("training", "Train"), ("inference", "Run"))
OPTIMIZERS: Final[Options] = tuple(OPTIMIZER_TITLES.items())
TRAINING_COMPUTE: Final[Options] = (
    ("amp-bf16", "BF16 autocast"),
    ("amp-fp16", "FP16 autocast"),
    ("bf16", "BF16 throughout"),
    ("fp16", "FP16 throughout"),
    ("fp8", "FP8, linear layers"),
    ("tf32", "TF32"),
    ("fp32", "FP32"),
)
INFERENCE_COMPUTE: Final[Options] = (("bf16", "BF16"), ("fp16", "FP16"), ("fp32", "FP32"))
TRAINING_WEIGHTS: Final = {"fp32": "FP32", "bf16": "BF16", "fp16": "FP16"}
CHECKPOINTING: Final[Options] = (
    ("none", "None"),
    ("selective", "Selective, cheap operations"),
    ("full", "Full, every layer"),
)
YES_OR_NO: Final[Options] = ((False, "No"), (True, "Yes"))
ATTENTION: Final[Options] = (
    ("sdpa", "SDPA (PyTorch)"),
    ("flash", "FlashAttention"),
    ("eager", "Eager (matrices)"),
)
PROMPT_LOGITS: Final[Options] = (("last", "For the last token"), ("all", "For every token"))
_FAMILIES: Final[dict[Family, str]] = {
    "plain": "plain format",
    "bitsandbytes": "bitsandbytes",
    "integer": "GPTQ and AWQ",
    "float8": "8-bit float",
    "float4": "4-bit float",
    "gguf": "GGUF",
    "gguf-file": "GGUF",
}


def scheme_title(name: str) -> str:
    """Return what a weight format is called, such as `NF4, double quantisation`."""
    return "the formats of its files" if name == AS_STORED else SCHEMES[name].title


def scheme_detail(scheme: Scheme) -> str:
    """Return the family of a weight format and its size: `bitsandbytes · 4.13 bits a weight`."""
    return f"{_FAMILIES[scheme.family]} · {fmt.plain(scheme.bits_per_weight)} bits a weight"


def kv_cache_options() -> Options:
    """Return the cache formats; those with a number in their name are llama.cpp's."""
    return tuple(
        (name, f"{name.upper()}, {fmt.plain(float(bits))} bits" if "_" in name else name.upper())
        for name, bits in KV_FORMATS.items()
    )


def words_of(options: Options, value: object) -> str:
    """Return what `value` is called among `options`."""
    return next(words for known, words in options if known == value)
