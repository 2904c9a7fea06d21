"""Fused kernels: which operations of a layer they merge, and memory of a loss computed together with the head."""

from typing import Final, NamedTuple

from planner.memory.terms import library_symbol, model_symbol
from planner.memory.training.losses import LossMemory, OutputHead, deferred_logits
from planner.units import ceil_div

FUSED: Final = "the gradients computed by the fused loss are kept until the backward pass"
"""Explanation of the loss phase for a loss that computes its gradients in the forward pass."""
_FP32: Final = 4
_FUSED_SOURCE: Final = (
    "Liger-Kernel 0.8.2, fused_linear_cross_entropy_forward: parts of next_power_of_2(⌈T / ⌈V / h⌉⌉) tokens, gradients "
    "made with the loss; that of the head added from an fp32 copy of each part's"
)


class FusedKernels(NamedTuple):
    """Operations of a layer that a library fuses: norms, gates with their activation, and adapters."""

    norms: bool = False
    gates: bool = False
    adapters: bool = False


def fused_linear_loss_memory(head: OutputHead, input_bytes: int, trained_head_elements: int) -> LossMemory:
    """Return the memory of Liger's loss, fused with a head of which `trained_head_elements` elements are trained.

    **Formula**: the logits of C tokens and the gradient of the head's input, and of the head itself with it, where it
    is trained V · h · (w + 4) more for that of one part and its fp32 copy.
    """
    tokens = fused_chunk_tokens(head.outputs, head.width, head.hidden)
    made = head.outputs * head.hidden * input_bytes
    logits = tokens * head.width * head.size
    symbols = (
        *head.size_symbols,
        library_symbol("C", tokens, "tokens per chunk of logits"),
        model_symbol("h", head.hidden, "width of the head's input"),
        library_symbol("r", input_bytes, "bytes per element of the input's gradient"),
    )
    kept = deferred_logits(made, "T × h × r", symbols, _FUSED_SOURCE)
    added = trained_head_elements * (head.size + (_FP32 if head.size < _FP32 else 0))
    formula = "C × V × w + T × h × r" + (" + V × h × (w + 4)" if added else "")
    return LossMemory(
        forward=deferred_logits(logits + made + added, formula, symbols, _FUSED_SOURCE),
        loss=kept,
        head=kept,
        layers=deferred_logits(0, "0", (), _FUSED_SOURCE),
        explanation=FUSED,
        head_gradient=trained_head_elements,
    )


def fused_chunk_tokens(outputs: int, width: int, hidden: int) -> int:
    """Return the number of tokens per chunk of Liger's loss: a power of two, near T · h / V."""
    parts = max(ceil_div(width, max(hidden, 1)), 1)
    each = max(ceil_div(outputs, parts), 1)
    return min(1 << (each - 1).bit_length(), outputs)
