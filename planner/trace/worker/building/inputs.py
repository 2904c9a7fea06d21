"""Inputs of a run: generated from shapes, or returned by the target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn

from planner.trace.request import Input, InputValue, ListInput, PlainInput, TensorInput
from planner.trace.worker.tensors import map_tensors, tensors_in

_SEED: Final = 0
_MAX_DESCRIBED_TENSORS: Final = 8
_BYTE_INTEGER_BOUND: Final = 128
"""Exclusive upper bound of random one-byte integers, so that every one-byte type can hold them."""


@dataclass
class ForwardCall:
    """Arguments of one call of `forward`."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def arguments_by_name(self, names: Sequence[str]) -> dict[str, Any]:
        """Return all arguments by parameter name; `names` are the parameters of `forward`, in order."""
        return dict(zip(names, self.args, strict=False)) | self.kwargs

    @classmethod
    def from_inputs(cls, inputs: Any) -> "ForwardCall":
        """Return the call for a target's `inputs`: a tuple is positional, a dictionary by name."""
        if inputs is None:
            return cls()
        if isinstance(inputs, ForwardCall):
            return inputs
        if isinstance(inputs, Mapping):
            return cls(kwargs=dict(inputs))
        return cls(args=tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,))


def inputs_from_shapes(inputs: Sequence[Input], modules: Mapping[str, nn.Module]) -> Any:
    """Return generated inputs: a tuple if none has a name, a dictionary if every input has, else a `ForwardCall`."""
    generator = torch.Generator().manual_seed(_SEED)
    high = _embedding_entries(modules)
    args = tuple(_generated_value(input_.value, high, generator) for input_ in inputs if not input_.name)
    kwargs = {input_.name: _generated_value(input_.value, high, generator) for input_ in inputs if input_.name}
    if args and kwargs:
        return ForwardCall(args, kwargs)
    return kwargs or args


def resize_inputs(inputs: Any, batch: int | None, sequence_length: int | None) -> Any:
    """Return `inputs` with `batch` as the first and `sequence_length` as the second dimension of each tensor."""
    if batch is None and sequence_length is None:
        return inputs

    def resized_tensor(tensor: torch.Tensor) -> torch.Tensor:
        for dimension, size in enumerate((batch, sequence_length)):
            if size is not None and tensor.dim() > dimension and tensor.shape[dimension] not in (0, size):
                indices = torch.arange(size, device=tensor.device) % tensor.shape[dimension]
                tensor = tensor.index_select(dimension, indices)
        return tensor

    return map_tensors(inputs, resized_tensor)


def cast_floating_point(inputs: Any, dtype: torch.dtype) -> Any:
    """Return `inputs` with floating-point tensors in `dtype`."""
    return map_tensors(inputs, lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def describe_inputs(call: ForwardCall) -> str:
    """Return the shapes of the first tensors of `call` as text."""
    values = {**{str(place): value for place, value in enumerate(call.args)}, **call.kwargs}
    descriptions = []
    for name, value in values.items():
        prefix = "" if name.isdigit() else f"{name} "
        for tensor in tensors_in(value):
            sizes = "×".join(f"{size:,}" for size in tensor.shape) or "a number"
            descriptions.append(f"{prefix}{sizes} {str(tensor.dtype).removeprefix('torch.')}")
    return ", ".join(descriptions[:_MAX_DESCRIBED_TENSORS]) + (
        ", …" if len(descriptions) > _MAX_DESCRIBED_TENSORS else ""
    )


def random_integers(
    shape: Sequence[int], high: int, dtype: torch.dtype = torch.int64, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Return integers from 0 up to, but excluding, `high`: always the same numbers without a `generator`."""
    generator = generator or torch.Generator().manual_seed(_SEED)
    return torch.randint(0, high, tuple(shape), dtype=dtype, generator=generator)


def _generated_value(value: InputValue, high: int, generator: torch.Generator) -> Any:
    """Return the value of one input: random tensors, or the constants that the user wrote."""
    if isinstance(value, PlainInput):
        return value.value
    if isinstance(value, ListInput):
        items = (_generated_value(item, high, generator) for item in value.items)
        return tuple(items) if value.kind == "tuple" else list(items)
    return _random_tensor(value, high, generator)


def _random_tensor(value: TensorInput, high: int, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor of random numbers, integers below `high`."""
    dtype: torch.dtype = getattr(torch, str(value.dtype))
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(value.shape, dtype=dtype, generator=generator)
    if dtype is torch.bool:
        return torch.ones(value.shape, dtype=dtype)
    limit = value.high or (min(high, _BYTE_INTEGER_BOUND) if dtype.itemsize == 1 else high)
    return random_integers(value.shape, limit, dtype, generator)


def _embedding_entries(modules: Mapping[str, nn.Module]) -> int:
    """Return the number of entries in the first embedding, which bounds valid integers; 2 without an embedding."""
    for module in modules.values():
        for inner in module.modules():
            if isinstance(inner, nn.Embedding):
                return inner.num_embeddings
    return 2
