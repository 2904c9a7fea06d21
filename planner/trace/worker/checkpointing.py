"""Activation checkpointing of modules that offer it, or that repeat."""

from functools import partial
from typing import Any, Final

from torch import nn
from torch.utils.checkpoint import checkpoint

from planner.errors import TraceError
from planner.trace.worker import hugging_face

_STAGE: Final = "load"


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
    children = list(module.children())
    blocks = _blocks(children) if isinstance(module, nn.ModuleList | nn.Sequential) else []
    return blocks + [inner for child in children if child not in blocks for inner in repeated(child)]


def _blocks(children: list[nn.Module]) -> list[nn.Module]:
    classes = [type(child) for child in children]
    return [child for child in children if any(child.children()) and classes.count(type(child)) > 1]


def _checkpoint(block: Any) -> None:
    # The method is replaced, not the module wrapped, so that paths and the module's own hooks stay as they are.
    block.forward = partial(checkpoint, block.forward, use_reentrant=False)
