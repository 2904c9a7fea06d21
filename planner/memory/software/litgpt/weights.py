"""Weights of a network in LitGPT, whose embedding and head are separate matrices, and what bitsandbytes unpacks."""

from functools import lru_cache
from typing import Final

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.memory.logits import output_width
from planner.memory.result import Symbol, Term, TermPart
from planner.memory.terms import format_symbol, measured_term, model_symbol, term
from planner.memory.weights import parameter_counts, placed_tensors
from planner.models.architecture import Architecture

_PLAIN_SOURCE: Final = "litgpt/model.py, GPT.__init__: lm_head and wte are separate tensors"
_QUANTISED_SOURCE: Final = "lightning/fabric BitsandbytesPrecision: every torch.nn.Linear becomes a Linear4bit"


@lru_cache(maxsize=256)
def litgpt_weights(architecture: Architecture, scheme_name: str, kept_bytes: int) -> Term:
    """Return the memory of the parameters in `scheme_name`; unquantized parameters take `kept_bytes` each.

    **Formula**: plain (P + V · h where tied) · w; quantized Q · q / 8 + (P − Q) · w, the head among Q.

    **Assumes** the vocabulary without LitGPT's padding to a multiple of 64 or 512.
    """
    untied = output_width(architecture) * architecture.hidden if architecture.tied_head else 0
    total = parameter_counts(architecture).total + untied
    count = model_symbol("P", total, "parameters, head and embedding counted separately")
    if SCHEMES[scheme_name].family == "plain":
        size = ELEMENT_BYTES[scheme_name]
        return term("weights", total * size, "P × w", (count, _parameter_bytes_symbol(size)), _PLAIN_SOURCE)
    quantized, stored = _linear_bytes(architecture, scheme_name, untied)
    kept = (total - quantized) * kept_bytes
    return term(
        "weights",
        stored + kept,
        "Q × q / 8 + (P − Q) × w",
        (
            count,
            model_symbol("Q", quantized, "parameters of linear layers, including the output head"),
            format_symbol("q", round(8 * stored / quantized, 4), f"bits per weight in {SCHEMES[scheme_name].title}"),
            _parameter_bytes_symbol(kept_bytes),
        ),
        _QUANTISED_SOURCE,
        parts=(
            TermPart(name="linear layers", bytes=stored, formula="Q × q / 8", source=SCHEMES[scheme_name].source),
            TermPart(
                name="unquantized embedding and norms", bytes=kept, formula="(P − Q) × w", source=_QUANTISED_SOURCE
            ),
        ),
    )


def _parameter_bytes_symbol(parameter_bytes: int) -> Symbol:
    """Return the formula symbol for the bytes of an unquantized parameter."""
    return format_symbol("w", parameter_bytes, "bytes per unquantized parameter")


def _linear_bytes(architecture: Architecture, scheme_name: str, untied: int) -> tuple[int, int]:
    """Return the number of elements in linear layers and head, and their bytes as `scheme_name`."""
    scheme = SCHEMES[scheme_name]
    linear = [(tensor, count) for tensor, count in placed_tensors(architecture) if tensor.role in ("linear", "head")]
    shapes = [(tensor.shape, count) for tensor, count in linear if len(tensor.shape) == 2]
    if untied:
        shapes.append(((output_width(architecture), architecture.hidden), 1))
    elements = sum(rows * columns * count for (rows, columns), count in shapes)
    return elements, sum(scheme.tensor_bytes(shape) * count for shape, count in shapes)


_HALF: Final = 2
_DEQUANTISED: Final = (
    "bitsandbytes 0.42 MatMul4Bit: dequantize_4bit(B).to(A.dtype); lightning/fabric _Linear4bit quantizes from fp16, "
    "so that bf16 takes a second copy"
)


def dequantized_term(elements: int, computed_bytes: int) -> Term:
    """Return the memory of a dequantized matrix of `elements` in fp16, and of its copy for products.

    **Formula**: n · (2 + w).
    """
    return measured_term(
        "temporaries",
        elements * (_HALF + computed_bytes),
        "n × (2 + w)",
        (
            model_symbol("n", elements, "elements of the largest multiplied matrix"),
            format_symbol("w", computed_bytes, "bytes per element of the copy, in the format of the other factor"),
        ),
        _DEQUANTISED,
    )


def head_size_elements(architecture: Architecture) -> int:
    """Return the number of elements in the output head's matrix."""
    return output_width(architecture) * architecture.hidden


def largest_matrix_elements(architecture: Architecture) -> int:
    """Return the elements of the largest weight matrix in any layer."""
    return max(
        tensor.size for group in architecture.main.groups for tensor in group.layer.tensors if tensor.role == "linear"
    )
