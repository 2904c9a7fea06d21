"""LoRA adapters on linear layers, computed as in PEFT."""

from typing import Any, Final

import torch
from torch import nn

from planner.errors import TraceError
from planner.trace.request import TraceLora

_STAGE: Final = "load"


class LoraLinear(nn.Module):
    """A linear layer with a low-rank adapter.

    **Formula**: base(x) + B(A(dropout(x))) × scaling, where x is first cast to the adapter's dtype.

    **Source**: `peft.tuners.lora.layer.Linear.forward`.
    """

    def __init__(self, base: nn.Module, rank: int, dtype: torch.dtype, dropout: float) -> None:
        super().__init__()
        in_features, out_features = _feature_counts(base)
        self.base_layer = base
        self.lora_dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.lora_A = nn.Linear(in_features, rank, bias=False, dtype=dtype)
        self.lora_B = nn.Linear(rank, out_features, bias=False, dtype=dtype)
        self.scaling = 1.0
        nn.init.zeros_(self.lora_B.weight)

    @property
    def weight(self) -> Any:
        """Return the base layer's weight, which T5 accesses, as `peft.tuners.tuners_utils.BaseTunerLayer` does."""
        return self.base_layer.weight

    def forward(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Return the sum of the base layer's and the adapter's outputs, in the base layer's dtype."""
        result: torch.Tensor = self.base_layer(x, *args, **kwargs)
        dtype = result.dtype
        x = x.to(self.lora_A.weight.dtype)
        result = result + self.lora_B(self.lora_A(self.lora_dropout(x))) * self.scaling
        return result.to(dtype)


def add_adapters(module: nn.Module, lora: TraceLora, dtype: torch.dtype) -> list[torch.Tensor]:
    """Freeze `module`, add adapters to the targeted linear layers, and return the adapters' parameters.

    `all-linear` is every linear layer except the output head, as in PEFT.

    Raises:
        TraceError: If no linear layer matches.
    """
    module.requires_grad_(False)
    targeted = _targeted_linears(module, lora.targets)
    adapted: list[torch.Tensor] = []
    for path, base in targeted.items():
        parent, _, name = path.rpartition(".")
        adapter = LoraLinear(base, lora.rank, dtype, lora.dropout)
        setattr(module.get_submodule(parent), name, adapter)
        adapted += [adapter.lora_A.weight, adapter.lora_B.weight]
    return adapted


def _targeted_linears(module: nn.Module, targets: tuple[str, ...]) -> dict[str, nn.Module]:
    """Return the linear layers that `targets` match, by path."""
    linears = {path: inner for path, inner in module.named_modules() if path and _is_linear(inner)}
    head = _output_head(module)
    if "all-linear" in targets:
        targeted = {path: inner for path, inner in linears.items() if inner is not head}
    else:
        targeted = {
            path: inner for path, inner in linears.items() if f".{path}".endswith(tuple(f".{t}" for t in targets))
        }
    if not targeted:
        ends = ", ".join(sorted({path.rpartition(".")[2] for path in linears})) or "none"
        raise TraceError(
            _STAGE, f"no linear layer matches {' or '.join(targets)}", f"Its linear layers end in: {ends}."
        )
    return targeted


def _is_linear(module: nn.Module) -> bool:
    """Return whether `module` is a linear layer: PyTorch's, or the Conv1D from transformers, which GPT-2 uses."""
    return isinstance(module, nn.Linear) or _is_conv1d(module)


def _is_conv1d(module: nn.Module) -> bool:
    return type(module).__module__ == "transformers.pytorch_utils" and type(module).__name__ == "Conv1D"


def _feature_counts(base: Any) -> tuple[int, int]:
    """Return the numbers of input and output features of a linear layer."""
    if _is_conv1d(base):
        in_features, out_features = base.weight.shape
        return in_features, out_features
    return base.in_features, base.out_features


def _output_head(module: Any) -> object:
    """Return the module's output head, which receives no adapter, or None."""
    return module.get_output_embeddings() if hasattr(module, "get_output_embeddings") else None
