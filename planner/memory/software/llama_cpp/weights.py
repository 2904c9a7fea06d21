"""Which of a GGUF file's bytes go to the card.

**Source**: llama.cpp 0.5.0 src/llama-model.cpp: load_tensors keeps the token embedding in RAM, and an output that is
tied to it is loaded a second time beside the output norm.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import AS_STORED, GGUF_FILE_TYPES, gguf_type
from planner.memory.gguf import layer_bytes, tensor_bytes
from planner.memory.result import Part, Term
from planner.memory.software.llama_cpp.setup import LlamaCppSetup
from planner.memory.terms import model, term
from planner.models.architecture import Architecture

_SOURCE: Final = "llama.cpp 0.5.0 src/llama-model.cpp load_tensors; bytes of each tensor by its block type"


class Placed(NamedTuple):
    """The weights on the card, what stays in RAM, and the largest matrix there."""

    term: Term
    host_bytes: int
    largest_on_host: int


@lru_cache(maxsize=256)
def placed_weights(architecture: Architecture, file_type: str, setup: LlamaCppSetup) -> Placed:
    """Return the weights of `architecture` on the card and in RAM.

    **Formula**: card = Σ bytes of the layers on it + output; RAM = token embedding + the other layers.
    """
    bytes_of = tensor_bytes(architecture, file_type)
    by_layer = layer_bytes(architecture, file_type)
    on_card = sum(by_layer[setup.layers - setup.layers_on_card :])
    in_layers = bytes_of["layers"]
    towers = in_layers - sum(by_layer)
    copied = bytes_of["embedding"] if architecture.tied_head else 0
    output = (bytes_of["output"] + bytes_of["other"] + towers + copied) if setup.output_on_card else 0
    held = bytes_of["embedding"] + sum(by_layer) - on_card
    if not setup.output_on_card:
        held += bytes_of["output"] + bytes_of["other"] + towers
    return Placed(
        _term(on_card, output, setup, tied=architecture.tied_head),
        held,
        _largest(architecture, file_type) if setup.layers_on_card < setup.layers else 0,
    )


def _term(layers: int, output: int, setup: LlamaCppSetup, *, tied: bool) -> Term:
    again = ", the tied embedding once more" if tied else ""
    return term(
        "weights",
        layers + output,
        "L + O",
        (
            model("L", layers, f"bytes of {setup.layers_on_card} of {setup.layers} layers"),
            model("O", output, f"bytes of the output{again}; the token embedding stays in RAM"),
        ),
        _SOURCE,
        parts=(
            Part(name=f"{setup.layers_on_card} of {setup.layers} layers", bytes=layers, formula="L", source=_SOURCE),
            Part(name="output", bytes=output, formula="O", source=_SOURCE),
        ),
    )


def _largest(architecture: Architecture, file_type: str) -> int:
    """Return the largest matrix of a layer, all experts together."""
    if file_type == AS_STORED:
        elements = max(tensor.parameters for group in architecture.main.groups for tensor in group.layer.tensors)
        return elements * architecture.stored_bytes // max(architecture.parameters, 1)
    block = gguf_type(GGUF_FILE_TYPES[file_type])
    return max(
        block.tensor_bytes(tensor.shape) * tensor.copies
        for group in architecture.main.groups
        for tensor in group.layer.tensors
    )
