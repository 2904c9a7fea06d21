"""Autocast with CUDA's operator lists, on CPU tensors."""

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch import Tensor
from torch._C import DispatchKey

from planner.trace.worker.cuda.dispatch import (
    Kernel,
    aten_overload,
    operator_exists,
    patched_attributes,
    replaced_kernels,
)
from planner.trace.worker.cuda.rnn import autocast_kernels
from planner.trace.worker.observer import map_tensors, tensors_in

SOURCE: Final = "PyTorch 2.13 aten/src/ATen/autocast_mode.h, and autocast_mode.cpp for the cache of weights"

LOWER_PRECISION: Final = (
    "_convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input "
    "conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm "
    "bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell "
    "rnn_relu_cell _scaled_dot_product_flash_attention scaled_dot_product_attention"
)
"""Operators that run in the lower precision."""

FULL_PRECISION: Final = (
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar "
    "pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim "
    "nuclear_norm nuclear_norm.dim cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d "
    "hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss "
    "soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm "
    "logsumexp upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d "
    "upsample_nearest3d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa "
    "upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa"
)
"""Operators whose inputs are copied to fp32."""

FULL_PRECISION_RESULT: Final = (
    "prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm "
    "linalg_matrix_norm.str_ord sum sum.dim_IntList"
)
"""Operators that keep their inputs' types and return fp32, unless another type is requested."""

NORMS: Final = "norm.Scalar norm.ScalarOpt_dim"
"""Operators that return fp32 too, but through overloads with an additional dtype argument."""

WIDEST: Final = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"
"""Operators whose inputs are converted to the widest type among the inputs."""

BANNED: Final = "binary_cross_entropy"
"""Operator that CUDA's autocast refuses to run."""

_KEY: Final = "AutocastCPU"
_EXCLUDED: Final = torch._C.DispatchKeySet(DispatchKey.AutocastCPU)


@contextlib.contextmanager
def autocast_as_on_cuda() -> Iterator[None]:
    """Use CUDA's autocast lists, and make `torch.autocast("cuda")` work on CPU tensors.

    Operators that only the CPU lists run unchanged. Copies of weights are cached until the outermost autocast ends.

    **Source**: aten/src/ATen/autocast_mode.h and autocast_mode.cpp.
    """
    cast_cache = _WeightCastCache()
    replaced = _autocast_kernels(cast_cache)
    listed = torch._C._dispatch_get_registrations_for_dispatch_key(_KEY)
    unlisted = {name.removeprefix("aten::") for name in listed if name.startswith("aten::")} - set(replaced)
    with (
        replaced_kernels(_KEY, dict.fromkeys(unlisted, torch.library.fallthrough_kernel) | replaced),
        _cpu_autocast_state_for_cuda(cast_cache.clear),
    ):
        try:
            yield
        finally:
            cast_cache.clear()


class _WeightCastCache:
    """Cache of lower-precision copies of fp32 weights, valid within the outermost autocast.

    **Source**: `cached_cast` of aten/src/ATen/autocast_mode.cpp.
    """

    def __init__(self) -> None:
        self._cached_casts: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}

    def clear(self) -> None:
        """Remove all cached copies."""
        self._cached_casts.clear()

    def cast(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        """Return `tensor` in `dtype`; copies of weights come from the cache."""
        is_weight = tensor.dtype == torch.float32 and tensor.requires_grad and tensor.is_leaf and not tensor._is_view()
        if not (is_weight and torch.is_autocast_cache_enabled()):
            return tensor.to(dtype)
        cached = self._cached_casts.get(id(tensor))
        if cached is None or cached[0]() is not tensor:
            cached = self._cached_casts[id(tensor)] = weakref.ref(tensor), tensor.to(dtype)
        return cached[1]


def _autocast_kernels(cast_cache: _WeightCastCache) -> dict[str, Kernel]:
    """Return the autocast kernel for each operator in CUDA's lists."""

    def to_lower_precision(arguments: Any) -> Any:
        dtype = torch.get_autocast_dtype("cpu")
        return _convert_eligible(
            arguments, lambda tensor: tensor if tensor.dtype == dtype else cast_cache.cast(tensor, dtype)
        )

    policies: tuple[tuple[str, Callable[[Any], Kernel]], ...] = (
        (LOWER_PRECISION, lambda operator: _converting_kernel(operator, to_lower_precision)),
        (FULL_PRECISION, lambda operator: _converting_kernel(operator, _to_fp32)),
        (WIDEST, lambda operator: _converting_kernel(operator, _to_widest)),
        (FULL_PRECISION_RESULT, _fp32_result_kernel),
        (NORMS, _fp32_norm_kernel),
    )

    def tensor_to_lower_precision(tensor: Tensor) -> Tensor:
        dtype = torch.get_autocast_dtype("cpu")
        return tensor.to(dtype) if _is_castable(tensor) else tensor

    listed_kernels = {
        name: policy(aten_overload(name))
        for names, policy in policies
        for name in names.split()
        if operator_exists(name)
    }
    rnn_kernels = {
        name: _without_autocast(kernel) for name, kernel in autocast_kernels(tensor_to_lower_precision).items()
    }
    return listed_kernels | rnn_kernels | {BANNED: _raise_unsafe_to_autocast}


def _without_autocast(kernel: Kernel) -> Kernel:
    """Return `kernel` run with autocast disabled."""

    def kernel_without_autocast(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_EXCLUDED):
            return kernel(*args, **kwargs)

    return kernel_without_autocast


def _converting_kernel(operator: Any, convert: Callable[[Any], Any]) -> Kernel:
    """Return a kernel that runs `operator` on inputs converted by `convert`."""

    def kernel_with_converted_inputs(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_EXCLUDED):
            args, kwargs = convert((args, kwargs))
            return operator(*args, **kwargs)

    return kernel_with_converted_inputs


def _fp32_result_kernel(operator: Any) -> Kernel:
    """Return a kernel that runs `operator` with an fp32 result, unless another type is requested."""
    names = [argument.name for argument in operator._schema.arguments]

    def kernel_with_fp32_result(*args: Any, **kwargs: Any) -> Any:
        named = dict(zip(names, args, strict=False)) | kwargs
        if _is_castable(args[0]) and named.get("dtype") is None:
            named["dtype"] = torch.float32
        with torch._C._ExcludeDispatchKeyGuard(_EXCLUDED):
            return operator(**named)

    return kernel_with_fp32_result


def _fp32_norm_kernel(operator: Any) -> Kernel:
    """Return a kernel that computes the norm `operator` in fp32."""
    with_dtype = {
        "norm.Scalar": torch.ops.aten.norm.ScalarOpt_dtype,
        "norm.ScalarOpt_dim": torch.ops.aten.norm.ScalarOpt_dim_dtype,
    }
    target = with_dtype[str(operator).removeprefix("aten.")]
    names = [argument.name for argument in operator._schema.arguments]
    defaults = {argument.name: argument.default_value for argument in operator._schema.arguments[1:]}

    def norm_in_fp32(*args: Any, **kwargs: Any) -> Any:
        named = defaults | dict(zip(names, args, strict=False)) | kwargs
        dtype = torch.float32 if _is_castable(args[0]) else args[0].dtype
        with torch._C._ExcludeDispatchKeyGuard(_EXCLUDED):
            return target(**named, dtype=dtype)

    return norm_in_fp32


def _raise_unsafe_to_autocast(*_: object, **__: object) -> None:
    """Raise the error of an operator that is unsafe to run within autocast."""
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. "
        "Use binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss."
    )


def _to_fp32(arguments: Any) -> Any:
    """Return `arguments` with castable tensors in fp32."""
    return _convert_eligible(arguments, Tensor.float)


def _to_widest(arguments: Any) -> Any:
    """Return `arguments` in fp32 if any tensor among them is, else unchanged."""
    return _to_fp32(arguments) if any(tensor.dtype == torch.float32 for tensor in tensors_in(arguments)) else arguments


def _convert_eligible(arguments: Any, convert: Callable[[Tensor], Tensor]) -> Any:
    """Return `arguments` with each castable tensor converted by `convert`."""
    return map_tensors(arguments, lambda tensor: convert(tensor) if _is_castable(tensor) else tensor)


def _is_castable(tensor: Tensor) -> bool:
    """Return whether autocast converts `tensor`: floating-point, but not fp64."""
    return tensor.is_floating_point() and tensor.dtype != torch.float64


@contextlib.contextmanager
def _cpu_autocast_state_for_cuda(clear: Callable[[], None]) -> Iterator[None]:
    """Make autocast's functions return the CPU's state when queried about CUDA."""
    begin, forget, dtype_of = torch.autocast.__init__, torch.clear_autocast_cache, torch.get_autocast_dtype

    def init_on_the_cpu(
        self: torch.autocast, device_type: str, dtype: torch.dtype | None = None, *rest: Any, **named: Any
    ) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or dtype_of("cuda")
        begin(self, device_type, dtype, *rest, **named)

    def clear_autocast_cache() -> None:
        clear()
        forget()

    is_enabled = torch.is_autocast_enabled
    with (
        patched_attributes(torch.autocast, __init__=init_on_the_cpu),
        patched_attributes(torch, clear_autocast_cache=clear_autocast_cache),
        patched_attributes(torch, is_autocast_enabled=lambda *_: is_enabled("cpu")),
        patched_attributes(torch, get_autocast_dtype=lambda _: dtype_of("cpu")),
        patched_attributes(torch, get_autocast_gpu_dtype=lambda: dtype_of("cpu")),
    ):
        yield
