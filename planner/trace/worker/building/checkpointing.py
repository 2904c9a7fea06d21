"""Activation checkpointing of modules that support it, or of repeating blocks."""

from functools import partial
from typing import Any, Final

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from planner.errors import TraceError
from planner.trace.worker.hugging_face import networks as hugging_face

_STAGE: Final = "load"
_aten = torch.ops.aten


def enable_checkpointing(module: nn.Module, *, selective: bool = False) -> str:
    """Enable activation checkpointing in `module`, and return the method used, as the end of a sentence.

    With `selective`, outputs of matrix products and attention are saved, except those of every second `mm`.

    Raises:
        TraceError: If the module neither supports checkpointing nor has repeating blocks.
    """
    arguments: dict[str, Any] = {"use_reentrant": False}
    exception_text = ""
    if selective:
        arguments["context_fn"] = lambda: create_selective_checkpoint_contexts(_SelectiveCheckpointPolicy())
        exception_text = ", except outputs of matrix products and attention"
    if hugging_face.is_hugging_face(module):
        hugging_face.enable_network_checkpointing(module, arguments)
        return f"by the network's own method{exception_text}"
    enable_own = getattr(module, "gradient_checkpointing_enable", None)
    if callable(enable_own) and not selective:
        enable_own()
        return "by the module's own method"
    blocks = repeating_blocks(module)
    if not blocks:
        raise TraceError(
            _STAGE,
            f"{type(module).__name__} supports no activation checkpointing, and has no list of repeating blocks",
            "Add a method gradient_checkpointing_enable() to it.",
        )
    for block in blocks:
        _checkpoint_forward(block, arguments)
    return f"on {len(blocks)} repeating modules{exception_text}"


class _SelectiveCheckpointPolicy:
    """Selective checkpointing policy: which operators' results are saved, as torchtitan decides for each block.

    **Source**: torchtitan `distributed/activation_checkpoint.py` (b5bcd76, 2026-08), `_get_default_save_ops` and
    `SelectiveAC`: the compute-intensive operators of `torch._functorch.partitioners`, except every second `mm`.
    """

    def __init__(self) -> None:
        # It brings the compiler along, a second at the start of each trace, and few save by this policy.
        from torch._functorch.partitioners import get_default_op_list

        operators: Any = get_default_op_list().compute_intensive_ops
        self._saved_operators = {operator.default for operator in operators} | {
            _aten._scaled_dot_product_cudnn_attention.default,
            _aten._scaled_dot_product_attention_math.default,
            _aten._scaled_dot_product_fused_attention_overrideable.default,
            _aten.max.default,
            _aten.topk.default,
        }
        self._product_counts = {False: 0, True: 0}

    def __call__(self, context: Any, operator: Any, *_args: Any, **_kwargs: Any) -> CheckpointPolicy:
        if operator not in self._saved_operators:
            return CheckpointPolicy.PREFER_RECOMPUTE
        if operator == _aten.mm.default:
            self._product_counts[context.is_recompute] += 1
            if self._product_counts[context.is_recompute] % 2 == 0:
                return CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE


def repeating_blocks(module: nn.Module) -> list[nn.Module]:
    """Return the outermost repeating modules: two or more of the same class in a list or a sequence."""
    children = list(module.children())
    blocks = _repeated_children(children) if isinstance(module, nn.ModuleList | nn.Sequential) else []
    return blocks + [inner for child in children if child not in blocks for inner in repeating_blocks(child)]


def _repeated_children(children: list[nn.Module]) -> list[nn.Module]:
    """Return the modules in `children` whose class occurs more than once among them."""
    classes = [type(child) for child in children]
    return [child for child in children if any(child.children()) and classes.count(type(child)) > 1]


def _checkpoint_forward(block: Any, arguments: dict[str, Any]) -> None:
    """Make the forward pass of `block` recompute its activations, with `arguments` of torch.utils.checkpoint."""
    # The method is replaced, not the module wrapped, so that paths and the module's own hooks stay as they are.
    block.forward = partial(checkpoint, block.forward, **arguments)
