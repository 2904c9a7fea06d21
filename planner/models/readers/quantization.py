"""In which number format a checkpoint is stored, from its configuration."""

from collections.abc import Callable, Mapping
from typing import Final

from planner.dtypes import SCHEMES
from planner.models.readers.fields import Fields

_DTYPES: Final = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
}


def stored_dtype(fields: Fields) -> str | None:
    """Return the format of the checkpoint's tensors, or nothing where it is not stated."""
    if not fields.has("torch_dtype", "dtype"):
        return None
    stated = fields.text("torch_dtype", "dtype").removeprefix("torch.")
    known = _DTYPES.get(stated)
    if known is None and stated != "auto":
        fields.note(f"the stored format {stated[:40]!r} is not known and was ignored")
    return known


def quantization_scheme(fields: Fields) -> str | None:
    """Return the scheme that the checkpoint's weights are stored in, or nothing where it is not quantised or not known.

    **Source**: the quantisation configurations of transformers, `utils/quantization_config.py`.
    """
    settings = fields.nested("quantization_config")
    if settings is None:
        return None
    method = settings.text("quant_method", default="bitsandbytes" if settings.has("load_in_4bit") else "unknown")
    scheme = _METHODS[method](settings) if method in _METHODS else None
    if scheme is None:
        fields.note(f"the checkpoint's quantisation ({method[:40]}) is not known; its weights count as not quantised")
    return scheme


def _bitsandbytes(settings: Fields) -> str | None:
    if settings.flag("load_in_8bit", "_load_in_8bit", default=False):
        return "int8"
    if settings.text("bnb_4bit_quant_type", default="fp4") != "nf4":
        return None
    return "nf4-dq" if settings.flag("bnb_4bit_use_double_quant", default=False) else "nf4"


def _grouped(family: str) -> Callable[[Fields], str | None]:
    def read(settings: Fields) -> str | None:
        bits = settings.integer("bits", "w_bit", default=4, high=16)
        group = settings.integer("group_size", "q_group_size", default=128, low=-1)
        return _known(f"{family}{bits}-{group}")

    return read


def _float8(settings: Fields) -> str | None:
    blocks = settings.integers("weight_block_size")
    return "fp8" if blocks is None else _known(f"fp8-block{blocks[0]}") if len(set(blocks)) == 1 else None


def _known(scheme: str) -> str | None:
    return scheme if scheme in SCHEMES else None


def _compressed_tensors(settings: Fields) -> str | None:
    return {"float-quantized": "fp8", "int-quantized": "int8", "nvfp4-pack-quantized": "nvfp4"}.get(
        settings.text("format", default="")
    )


_METHODS: Final[Mapping[str, Callable[[Fields], str | None]]] = {
    "bitsandbytes": _bitsandbytes,
    "gptq": _grouped("gptq"),
    "awq": _grouped("awq"),
    "fp8": _float8,
    "fbgemm_fp8": lambda _: "fp8",
    "mxfp4": lambda _: "mxfp4",
    "compressed-tensors": _compressed_tensors,
}
