"""LitGPT's parameters: nothing is tied, and bitsandbytes quantises every linear layer, the output head too."""

from functools import lru_cache
from typing import Final

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.memory.logits import output_width
from planner.memory.result import Part, Symbol, Term
from planner.memory.tensors import parameter_counts, placed_tensors
from planner.memory.terms import model, number_format, term
from planner.models.architecture import Architecture

_PLAIN_SOURCE: Final = "litgpt/model.py, GPT.__init__: lm_head and wte are tensors of their own"
_QUANTISED_SOURCE: Final = "lightning/fabric BitsandbytesPrecision: every torch.nn.Linear becomes a Linear4bit"


@lru_cache(maxsize=256)
def litgpt_weights(architecture: Architecture, scheme_name: str, kept_bytes: int) -> Term:
    """Return the memory of the parameters stored as `scheme_name`, what is not quantised in `kept_bytes` each.

    **Formula**: plain (P + V · h where tied) · w; quantised Q · q / 8 + (P − Q) · w, the head among Q.

    **Assumes** the vocabulary without LitGPT's padding to a multiple of 64 or 512.
    """
    untied = output_width(architecture) * architecture.hidden if architecture.tied_head else 0
    total = parameter_counts(architecture).total + untied
    count = model("P", total, "parameters, the head and the embedding apart")
    if SCHEMES[scheme_name].family == "plain":
        size = ELEMENT_BYTES[scheme_name]
        return term("weights", total * size, "P × w", (count, _each(size)), _PLAIN_SOURCE)
    quantised, stored = _linear_bytes(architecture, scheme_name, untied)
    kept = (total - quantised) * kept_bytes
    return term(
        "weights",
        stored + kept,
        "Q × q / 8 + (P − Q) × w",
        (
            count,
            model("Q", quantised, "parameters of linear layers, the output head among them"),
            number_format("q", round(8 * stored / quantised, 4), f"bits per weight in {SCHEMES[scheme_name].title}"),
            _each(kept_bytes),
        ),
        _QUANTISED_SOURCE,
        parts=(
            Part(name="linear layers", bytes=stored, formula="Q × q / 8", source=SCHEMES[scheme_name].source),
            Part(name="embedding and norms", bytes=kept, formula="(P − Q) × w", source=_QUANTISED_SOURCE),
        ),
    )


def _each(size: int) -> Symbol:
    return number_format("w", size, "bytes per parameter that is not quantised")


def _linear_bytes(architecture: Architecture, scheme_name: str, untied: int) -> tuple[int, int]:
    scheme = SCHEMES[scheme_name]
    linear = [(tensor, count) for tensor, count in placed_tensors(architecture) if tensor.role in ("linear", "head")]
    shapes = [(tensor.shape, count) for tensor, count in linear if len(tensor.shape) == 2]
    if untied:
        shapes.append(((output_width(architecture), architecture.hidden), 1))
    elements = sum(rows * columns * count for (rows, columns), count in shapes)
    return elements, sum(scheme.tensor_bytes(shape) * count for shape, count in shapes)
