"""Number formats and quantization schemes, with the exact size of a tensor stored in each."""

from fractions import Fraction
from math import prod
from typing import Final, Literal, NamedTuple

from planner.ggml import GGML_TYPES
from planner.units import ceil_div

SchemeFamily = Literal["plain", "bitsandbytes", "integer", "float8", "float4", "gguf", "gguf-file"]


class SchemeOverhead(NamedTuple):
    """Overhead bytes that a quantization scheme stores besides the quantized values, such as scales and zero points.

    `per` is the unit with one such overhead: `size` consecutive elements of the whole tensor (flat), `size` elements
    along the input dimension (group), a tile of `size` × `size` (tile), an output row, an input column, or the tensor.
    """

    size_bytes: Fraction
    per: Literal["flat", "group", "tile", "row", "column", "tensor"]
    size: int = 1

    def overhead_count(self, rows: int, columns: int) -> int:
        """Return how many of these overheads a `rows` × `columns` tensor stores."""
        match self.per:
            case "flat":
                return ceil_div(rows * columns, self.size)
            case "group":
                return rows * ceil_div(columns, self.size)
            case "tile":
                return ceil_div(rows, self.size) * ceil_div(columns, self.size)
            case "row":
                return rows
            case "column":
                return columns
        return 1


class Scheme(NamedTuple):
    """A storage format of weights: a plain number format, a quantization scheme or a GGUF type.

    `data_bits` are the bits of one element, `overheads` the additional bytes (scales, zero points, or the whole block
    of GGUF types). Quantization schemes apply to projections and experts only; embeddings, norms, routers and the
    output head stay in 16 bits. GGUF types apply to every matrix.
    """

    name: str
    title: str
    family: SchemeFamily
    data_bits: Fraction
    overheads: tuple[SchemeOverhead, ...]
    source: str
    block: int = 1

    def tensor_bytes(self, shape: tuple[int, ...]) -> int:
        """Return the exact size of one tensor in bytes; the last dimension of `shape` is the input dimension.

        **Formula**: ⌈elements · data_bits / 8⌉ + Σ overhead bytes · their number.
        """
        rows, columns = prod(shape[:-1]), shape[-1]
        beside = sum(item.size_bytes * item.overhead_count(rows, columns) for item in self.overheads)
        total = self.data_bits * rows * columns / 8 + beside
        return ceil_div(total.numerator, total.denominator)

    @property
    def bits_per_weight(self) -> float:
        """Return the bits per weight in a 4096 × 4096 projection, overheads included."""
        return 8 * self.tensor_bytes((4096, 4096)) / 4096**2


def _plain_format(name: str, title: str, bits: int) -> Scheme:
    """Return a number format without overheads, such as bf16."""
    return Scheme(name, title, "plain", Fraction(bits), (), "IEEE 754, bfloat16 and OCP 8-bit definitions")


def _group_quantized_format(name: str, title: str, group_size: int, source: str, *, act_order: bool) -> Scheme:
    """Return an integer format with a scale and a zero point per group of weights."""
    scales = SchemeOverhead(Fraction(2), "group", group_size)
    zeros = SchemeOverhead(Fraction(1, 2), "group", group_size)
    index = (SchemeOverhead(Fraction(4), "column"),) if act_order else ()
    return Scheme(name, title, "integer", Fraction(4), (scales, zeros, *index), source)


def _gguf_block_type(name: str, block: int, block_bytes: int) -> Scheme:
    """Return the GGUF block type with `block` elements in `block_bytes` bytes."""
    whole_block = SchemeOverhead(Fraction(block_bytes), "group", block)
    return Scheme(name, name, "gguf", Fraction(0), (whole_block,), _GGUF_SOURCE, block)


def _gguf_file_type(name: str) -> Scheme:
    """Return the GGUF file type `name`, with the size of the block type that most of its tensors have."""
    base = _GGUF_TYPES[GGUF_FILE_TYPES[name]]
    return Scheme(name, f"{name} (GGUF mixture)", "gguf-file", Fraction(0), base.overheads, _MIXTURE_SOURCE, base.block)


_BNB_SOURCE: Final = "bitsandbytes functional.quantize_4bit and int8_vectorwise_quant; QLoRA, arXiv 2305.14314 §3"
_GPTQ_SOURCE: Final = "AutoGPTQ qlinear buffers: qweight, qzeros, scales (fp16), g_idx (int32)"
_AWQ_SOURCE: Final = "AutoAWQ WQLinear_GEMM buffers: qweight, qzeros, scales (fp16)"
_OCP_SOURCE: Final = "OCP Microscaling Formats (MX) specification v1.0"
_NVFP4_SOURCE: Final = "NVIDIA NVFP4: 16-element blocks with an fp8 scale, one fp32 scale a tensor"
_GGUF_SOURCE: Final = "ggml block layouts; PyPI gguf 0.19 constants.GGML_QUANT_SIZES"
_MIXTURE_SOURCE: Final = "llama.cpp llama-quant.cpp, llama_tensor_get_type"

_NAMED: Final = (
    _plain_format("fp32", "FP32", 32),
    _plain_format("bf16", "BF16", 16),
    _plain_format("fp16", "FP16", 16),
    Scheme(
        "fp8",
        "FP8 (a scale per output channel)",
        "float8",
        Fraction(8),
        (SchemeOverhead(Fraction(4), "row"),),
        "compressed-tensors: channel-wise fp8 with fp32 scales",
    ),
    Scheme(
        "fp8-block128",
        "FP8 (blocks of 128)",
        "float8",
        Fraction(8),
        (SchemeOverhead(Fraction(4), "tile", 128),),
        "DeepSeek-V3 technical report §3.3.2, weight_scale_inv in fp32",
    ),
    Scheme(
        "int8",
        "INT8 (LLM.int8)",
        "bitsandbytes",
        Fraction(8),
        (SchemeOverhead(Fraction(4), "row"),),
        _BNB_SOURCE,
    ),
    Scheme(
        "nf4",
        "NF4, 64-element blocks",
        "bitsandbytes",
        Fraction(4),
        (SchemeOverhead(Fraction(4), "flat", 64),),
        _BNB_SOURCE,
    ),
    Scheme(
        "nf4-dq",
        "NF4, double quantization",
        "bitsandbytes",
        Fraction(4),
        (SchemeOverhead(Fraction(1), "flat", 64), SchemeOverhead(Fraction(4), "flat", 64 * 256)),
        _BNB_SOURCE,
    ),
    _group_quantized_format("gptq4-128", "GPTQ 4-bit, groups of 128", 128, _GPTQ_SOURCE, act_order=True),
    _group_quantized_format("gptq4-64", "GPTQ 4-bit, groups of 64", 64, _GPTQ_SOURCE, act_order=True),
    _group_quantized_format("gptq4-32", "GPTQ 4-bit, groups of 32", 32, _GPTQ_SOURCE, act_order=True),
    _group_quantized_format("awq4-128", "AWQ 4-bit, groups of 128", 128, _AWQ_SOURCE, act_order=False),
    _group_quantized_format("awq4-64", "AWQ 4-bit, groups of 64", 64, _AWQ_SOURCE, act_order=False),
    Scheme(
        "gptq8-128",
        "GPTQ 8-bit, groups of 128",
        "integer",
        Fraction(8),
        (
            SchemeOverhead(Fraction(2), "group", 128),
            SchemeOverhead(Fraction(1), "group", 128),
            SchemeOverhead(Fraction(4), "column"),
        ),
        _GPTQ_SOURCE,
    ),
    Scheme("mxfp8", "MXFP8", "float8", Fraction(8), (SchemeOverhead(Fraction(1), "group", 32),), _OCP_SOURCE),
    Scheme("mxfp4", "MXFP4", "float4", Fraction(4), (SchemeOverhead(Fraction(1), "group", 32),), _OCP_SOURCE),
    Scheme(
        "nvfp4",
        "NVFP4",
        "float4",
        Fraction(4),
        (SchemeOverhead(Fraction(1), "group", 16), SchemeOverhead(Fraction(4), "tensor")),
        _NVFP4_SOURCE,
    ),
)

_GGUF_TYPES: Final = {
    kind.name: _gguf_block_type(kind.name, kind.block_elements, kind.block_bytes) for kind in GGML_TYPES
}

AS_STORED: Final = "stored"
"""Weight format of a checkpoint that mixes number formats in a combination without a name."""

GGUF_FILE_TYPES: Final = {
    "F32": "F32",
    "F16": "F16",
    "BF16": "BF16",
    "Q8_0": "Q8_0",
    "Q6_K": "Q6_K",
    "Q5_K_M": "Q5_K",
    "Q5_K_S": "Q5_K",
    "Q5_0": "Q5_0",
    "Q5_1": "Q5_1",
    "Q4_K_M": "Q4_K",
    "Q4_K_S": "Q4_K",
    "Q4_0": "Q4_0",
    "Q4_1": "Q4_1",
    "IQ4_NL": "IQ4_NL",
    "IQ4_XS": "IQ4_XS",
    "Q3_K_L": "Q3_K",
    "Q3_K_M": "Q3_K",
    "Q3_K_S": "Q3_K",
    "Q2_K": "Q2_K",
    "MXFP4_MOE": "MXFP4",
}
"""File types of llama.cpp, each with the block type of most of its tensors."""

SCHEMES: Final = {scheme.name: scheme for scheme in (*_NAMED, *map(_gguf_file_type, GGUF_FILE_TYPES))}
"""Every weight format by name: plain formats, quantization schemes and GGUF file types."""

FORMAT_SPELLINGS: Final = {
    "float32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2", "float8"), "fp8"),
    "awq": "awq4-128",
    "gptq": "gptq4-128",
    "w4a16": "gptq4-128",
}
"""Weight formats by the words that PyTorch, vLLM and names of checkpoints have for them.

**Source** PyTorch's dtypes; `half` is vLLM's `--dtype`. AutoAWQ and AutoGPTQ quantize in groups of 128 by default.
"""


def scheme_called(text: str) -> str | None:
    """Return the weight format that `text` names in any case, or in another program's words; None if it names none."""
    word = text.lower()
    return next((name for name in SCHEMES if name.lower() == word), FORMAT_SPELLINGS.get(word))


KV_FORMATS: Final = {
    "fp32": Fraction(32),
    "bf16": Fraction(16),
    "fp16": Fraction(16),
    "fp8": Fraction(8),
    "q8_0": Fraction(17, 2),
    "q5_1": Fraction(6),
    "q5_0": Fraction(11, 2),
    "q4_1": Fraction(5),
    "q4_0": Fraction(9, 2),
}
"""Bits per element of the KV cache by format; q… are llama.cpp's block types, scales included."""

ELEMENT_BYTES: Final = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}
"""Bytes per element of activations and gradients by format."""


def gguf_type(name: str) -> Scheme:
    """Return the GGUF block type called `name`, such as Q4_K.

    Raises:
        KeyError: If the type is unknown.
    """
    return _GGUF_TYPES[name]
