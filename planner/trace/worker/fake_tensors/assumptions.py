"""Assumed results of operators whose output depends on tensor values that are unknown without a real run."""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from planner.errors import PlannerError

_aten: Final = torch.ops.aten
_FRACTION_PRESERVING: Final = frozenset(
    (
        _aten.permute.default,
        _aten.transpose.int,
        _aten.t.default,
        _aten.select.int,
        _aten.slice.Tensor,
        _aten.unsqueeze.default,
        _aten.squeeze.dim,
        _aten.squeeze.default,
        _aten.view.default,
        _aten._unsafe_view.default,
        _aten.expand.default,
        _aten.clone.default,
        _aten.detach.default,
        _aten.alias.default,
        _aten._to_copy.default,
        _aten.gt.Scalar,
        _aten.ne.Scalar,
    )
)


class Assumptions:
    """Assumes results of operators that depend on unknown values, and notes each assumption.

    **Assumes** that a boolean is false, that a number is 1, that a whole number is 0, and that a mask selects everything; but if a mask results
    from choosing one of n (as expert routers do), that it selects 1/n.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._selected_fractions = WeakTensorKeyDictionary()
        self._assumed_results: dict[Any, Callable[..., Any]] = {
            _aten._local_scalar_dense.default: self._assume_scalar,
            _aten.equal.default: self._assume_unequal,
            _aten.nonzero.default: self._assume_nonzero,
            _aten.masked_select.default: self._assume_masked_select,
            _aten.index.Tensor: self._assume_index,
            _aten._unique2.default: self._assume_unique,
            _aten.unique_dim.default: self._assume_unique_dim,
            _aten.repeat_interleave.Tensor: self._assume_repeat,
            _aten.bincount.default: self._assume_bincount,
        }
        self._replacements: dict[Any, Callable[..., Any]] = {
            _aten.native_layer_norm_backward.default: _layer_norm_backward
        }
        if hasattr(_aten, "_grouped_mm"):
            self._replacements[_aten._grouped_mm.default] = _grouped_mm

    def replacement(self, func: Any) -> Callable[..., Any] | None:
        """Return a replacement for `func` if PyTorch's rules for fake tensors differ from its kernels."""
        return self._replacements.get(func)

    def track_selected_fraction(self, func: Any, args: tuple[Any, ...], result: Any) -> None:
        """Track which fraction of elements a mask selects, if `func` makes or forwards the mask."""
        if func in _FRACTION_PRESERVING:
            if self._selected_fractions and args[0] in self._selected_fractions:
                self._selected_fractions[result] = self._selected_fractions[args[0]]
        elif func in (_aten.scatter.value, _aten.scatter_.value) and args[3] == 1 and result.shape[args[1]]:
            self._selected_fractions[result] = args[2].shape[args[1]] / result.shape[args[1]]
        elif func is _aten.eq.Tensor and result.dim() and args[1].dim() == 1 and args[0].shape[-1:] == (1,):
            self._selected_fractions[result] = 1 / max(1, args[1].shape[0])

    def assumed_result(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an assumed result for `func`, the result of which depends on unknown values.

        Raises:
            PlannerError: If no result can be assumed for `func`.
        """
        try:
            assume = self._assumed_results[func]
        except KeyError:
            reason = f"the result of {func} depends on tensor values, which a trace does not have"
            raise PlannerError(reason, "Trace a part of the network that does not depend on them.") from None
        return assume(*args, **kwargs)

    def _assume_scalar(self, tensor: torch.Tensor) -> bool | int | float:
        """Return an assumed number for a tensor of one element."""
        if tensor.dtype == torch.bool:
            self._note("A boolean that depends on the data was assumed to be false.")
            return False
        if tensor.is_floating_point() or tensor.is_complex():
            self._note("A number that depends on the data was assumed to be 1.")
            return 1.0
        # Whole numbers select: 0 is valid wherever there is anything to select from.
        self._note("A whole number that depends on the data was assumed to be 0.")
        return 0

    def _assume_unequal(self, _one: torch.Tensor, _other: torch.Tensor) -> bool:
        """Return False for whether two tensors are equal."""
        self._note("Whether two tensors are equal depends on the data; they were assumed to differ.")
        return False

    def _selected_count(self, mask: torch.Tensor) -> int:
        """Return how many elements a mask is assumed to select."""
        fraction = self._selected_fractions.get(mask, 1.0)
        selection_text = (
            "everything"
            if fraction == 1.0
            else f"{fraction:.3g} of its elements, as if all choices were equally frequent"
        )
        self._note(f"A mask that depends on the data was assumed to select {selection_text}.")
        return max(1, round(mask.numel() * fraction)) if mask.numel() else 0

    def _assume_nonzero(self, mask: torch.Tensor) -> torch.Tensor:
        """Return assumed indices of the elements that a mask selects."""
        # Column by column, as the kernels store the result.
        return torch.empty((mask.dim(), self._selected_count(mask)), dtype=torch.int64).t()

    def _assume_masked_select(self, tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return an assumed selection of the elements of `tensor` by a mask."""
        return torch.empty((self._selected_count(mask),), dtype=tensor.dtype)

    def _assume_index(self, tensor: torch.Tensor, indices: list[torch.Tensor | None]) -> torch.Tensor:
        """Return an assumed result of indexing with boolean masks."""
        integer_indices: list[torch.Tensor | None] = []
        for index in indices:
            if index is not None and index.dtype in (torch.bool, torch.uint8):
                integer_indices.extend(self._assume_nonzero(index).unbind(1))
            else:
                integer_indices.append(index)
        result: torch.Tensor = _aten.index.Tensor(tensor, integer_indices)
        return result

    def _assume_unique(
        self, tensor: torch.Tensor, _sorted: bool = True, inverse: bool = False, counts: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """Return assumed results of `unique`, as if all values were different."""
        self._note("Values that depend on the data were assumed to be all different.")
        return (
            torch.empty((tensor.numel(),), dtype=tensor.dtype),
            torch.empty(tensor.shape if inverse else (0,), dtype=torch.int64),
            torch.empty((tensor.numel() if counts else 0,), dtype=torch.int64),
        )

    def _assume_unique_dim(
        self, tensor: torch.Tensor, dim: int, _sorted: bool = True, inverse: bool = False, counts: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """Return assumed results of `unique` along a dimension, as if all slices were different."""
        self._note("Values that depend on the data were assumed to be all different.")
        size = tensor.shape[dim]
        return (
            torch.empty(tensor.shape, dtype=tensor.dtype),
            torch.empty((size if inverse else 0,), dtype=torch.int64),
            torch.empty((size if counts else 0,), dtype=torch.int64),
        )

    def _assume_repeat(self, repeats: torch.Tensor, *, output_size: int | None = None) -> torch.Tensor:
        """Return assumed indices of `repeat_interleave`, as if each element occurred once."""
        if output_size is None:
            self._note("How often elements are repeated depends on the data; each was assumed to occur once.")
        return torch.empty((repeats.numel() if output_size is None else output_size,), dtype=torch.int64)

    def _assume_bincount(
        self, tensor: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
    ) -> torch.Tensor:
        """Return assumed counts of `bincount`, as if the largest value were the smallest possible."""
        self._note("The largest counted value depends on the data; the smallest possible value was assumed.")
        return torch.empty((max(minlength, 1),), dtype=torch.int64 if weights is None else weights.dtype)


def _layer_norm_backward(
    _gradient: torch.Tensor,
    tensor: torch.Tensor,
    _shape: list[int],
    _mean: torch.Tensor,
    _rstd: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    wanted_gradients: list[bool],
) -> tuple[torch.Tensor | None, ...]:
    """Return the contiguous gradients of a layer norm, whatever the strides of the incoming gradient.

    **Source**: `layer_norm_backward_cpu` and `layer_norm_backward_cuda` make them with LEGACY_CONTIGUOUS_MEMORY_FORMAT,
    while the rule for fake tensors keeps the strides of the incoming gradient.
    """
    return tuple(
        torch.empty(template.shape, dtype=template.dtype) if is_wanted and template is not None else None
        for template, is_wanted in zip((tensor, weight, bias), wanted_gradients, strict=True)
    )


def _grouped_mm(
    left: torch.Tensor,
    right: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Return the result of a grouped matrix product, in any dtype.

    **Source**: `_grouped_mm` of PyTorch, whose kernels take float32 too while its rule for fake tensors needs bfloat16.
    """
    dtype = out_dtype or left.dtype
    if left.dim() == 3 and right.dim() == 3:
        return torch.empty((left.shape[0], left.shape[1], right.shape[2]), dtype=dtype)
    if left.dim() == 2 and right.dim() == 2 and offs is not None:
        return torch.empty((offs.shape[0], left.shape[0], right.shape[1]), dtype=dtype)
    return torch.empty((left.shape[-2], right.shape[-1]), dtype=dtype)
