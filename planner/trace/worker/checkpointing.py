"""Activation checkpointing of modules that offer it, or that repeat."""

from functools import partial
from typing import Any, Final

from torch import nn
from torch.utils.checkpoint import checkpoint

from planner.errors import TraceError
from planner.trace.worker import hugging_face

_STAGE: Final = "build"


def enable_checkpointing(module: nn.Module) -> str:
    """Let `module` compute activations again in the backward pass, and return how, in words.

    Raises:
        TraceError: If it neither offers it nor has modules that repeat.
    """
    if hugging_face.is_hugging_face(module):
        hugging_face.enable_checkpointing(module)
        return "by the network's own method"
    if callable(own := getattr(module, "gradient_checkpointing_enable", None)):
        own()
        return "by the module's own method"
    blocks = repeated(module)
    if not blocks:
        raise TraceError(
            _STAGE,
            f"{type(module).__name__} offers no activation checkpointing, and has no list of blocks that repeat",
            "Give it a method gradient_checkpointing_enable().",
        )
    for block in blocks:
        _checkpoint(block)
    return f"on {len(blocks)} modules that repeat"


def repeated(module: nn.Module) -> list[nn.Module]:
    """Return the modules that repeat: two or more of one class in a list or a sequence; not those inside them."""
    found: list[nn.Module] = []
    for child in module.children():
        inside = [*child.children()] if isinstance(child, nn.ModuleList | nn.Sequential) else []
        classes = [type(one) for one in inside]
        blocks = [one for one in inside if any(one.children()) and classes.count(type(one)) > 1]
        found += blocks
        found += [one for other in inside if other not in blocks for one in repeated(other)]
        found += repeated(child) if not inside else []
    return found


def _checkpoint(block: Any) -> None:
    # The method is replaced, not the module wrapped, so that paths and the module's own hooks stay as they are.
    block.forward = partial(checkpoint, block.forward, use_reentrant=False)
