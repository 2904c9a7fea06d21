"""Temporary memory of convolutions on the CPU: oneDNN's copies of operands in its own layouts."""

from collections.abc import Iterable
from functools import cache
from math import isqrt, prod
from typing import Any, Final, NamedTuple

import torch
from torch._prims_common import suggest_memory_format

from planner.units import round_up

_HALF: Final = (torch.bfloat16, torch.float16)


def size_bytes(tensor: torch.Tensor, itemsize: int | None = None) -> int:
    """Return the bytes of a tensor of this shape, with elements of `itemsize` if given."""
    return int(tensor.numel()) * (itemsize or tensor.element_size())


def is_half(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is in half precision, which kernels often compute in float32."""
    return tensor.dtype in _HALF


def contiguous_copies_bytes(values: Iterable[Any]) -> int:
    """Return the bytes of contiguous copies of those tensors among `values` that are not contiguous."""
    return sum(size_bytes(value) for value in values if isinstance(value, torch.Tensor) and not value.is_contiguous())


class VectorUnits(NamedTuple):
    """Properties of the processor's vector units: channels per block, AVX-512, matrix tiles, threads."""

    block: int
    has_avx512: bool
    has_tiles: bool
    threads: int


@cache
def vector_units() -> VectorUnits:
    """Return the vector units of this processor."""
    has_avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return VectorUnits(16 if has_avx512 else 8, has_avx512, torch.cpu._is_amx_tile_supported(), torch.get_num_threads())


class Convolution(NamedTuple):
    """A convolution from a source to a destination; a transposed one is the data gradient of such a one."""

    batch: int
    source_channels: int
    target_channels: int
    source_pixels: int
    target_pixels: int
    kernel: tuple[int, ...]
    groups: int
    strided: bool
    transposed: bool
    itemsize: int
    channels_last: bool

    @property
    def source(self) -> int:
        """Return the bytes of the source."""
        return self.batch * self.source_channels * self.source_pixels * self.itemsize

    @property
    def target(self) -> int:
        """Return the bytes of the destination."""
        return self.batch * self.target_channels * self.target_pixels * self.itemsize

    @property
    def weight(self) -> int:
        """Return the bytes of the weight."""
        return self.source_channels // self.groups * self.target_channels * prod(self.kernel) * self.itemsize

    @property
    def depthwise(self) -> bool:
        """Return whether each channel is filtered on its own."""
        return self.groups > 1 and self.groups == self.source_channels == self.target_channels


def make_convolution(tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor], places: tuple[Any, ...]) -> Convolution:
    """Return the convolution of (input, weight, output) and (stride, padding, dilation, transposed, groups)."""
    given, weight, made = tensors
    stride, _padding, _dilation, transposed, groups = places
    source, target = (made, given) if transposed else (given, made)
    channels_last = _is_channels_last(given) or _is_channels_last(weight)
    return Convolution(
        batch=given.shape[0],
        source_channels=source.shape[1],
        target_channels=target.shape[1],
        source_pixels=prod(source.shape[2:]),
        target_pixels=prod(target.shape[2:]),
        kernel=tuple(weight.shape[2:]),
        groups=groups,
        strided=any(step > 1 for step in stride),
        transposed=transposed,
        itemsize=given.element_size(),
        channels_last=channels_last,
    )


def uses_onednn(given: torch.Tensor, weight: torch.Tensor, places: tuple[Any, ...], threads: int) -> bool:
    """Return whether PyTorch uses oneDNN for the convolution rather than its own kernels.

    **Source**: `ConvParams::use_mkldnn` in aten/src/ATen/native/Convolution.cpp.
    """
    stride, _padding, dilation, _transposed, groups = places
    if is_half(given):
        return vector_units().has_avx512
    if given.dtype != torch.float32:
        return False
    kernel = weight.shape[2:]
    worth = (
        any(step > 1 for step in (*stride, *dilation))
        or given.shape[0] >= 16
        or any(width != 1 for width in kernel[-2:])
        or threads > 1
    )
    large = groups > 1 or all(width > 3 for width in kernel[-2:]) or given.shape[0] > 1 or given.numel() > 20480
    return worth and large


def forward_bytes(conv: Convolution) -> int:
    """Return the maximum bytes held by the forward pass in addition to its output.

    **Formula**: max(copies of source, weight and destination, destination + result) - result. Each is copied unless it
    has oneDNN's layout already; a destination with channels last is reordered twice more. **Source**:
    `mkldnn_convolution` and `mkldnn_to_dense` of PyTorch; measured with the profiler.
    """
    moments = _gradient_moments(conv) if conv.transposed else _forward_moments(conv)
    return max(moments) - (conv.source if conv.transposed else conv.target)


def backward_bytes(conv: Convolution, wants: tuple[bool, bool]) -> int:
    """Return the maximum bytes held by the backward pass in addition to the gradients that it returns.

    `wants` are flags for the gradients of the input and of the weight. The gradient of the input is computed first, and
    stays while that of the weight is computed.

    **Source**: `mkldnn_convolution_backward` of PyTorch; measured with the profiler.
    """
    data = conv.target if conv.transposed else conv.source
    left = data * wants[0] + conv.weight * wants[1]
    moments = [0]
    if wants[0]:
        moments += _forward_moments(conv) if conv.transposed else _gradient_moments(conv)
    if wants[1]:
        moments += [data * wants[0] + moment for moment in _weight_moments(conv)]
    return max(0, max(moments) - left)


def unfolded_input_bytes(conv: Convolution) -> int:
    """Return the bytes of the unfolded input (im2col) of PyTorch's own kernels, for the whole batch.

    **Formula**: batch x channels x kernel x pixels of the output; none for a kernel of one pixel. **Source**:
    `slow_conv2d_forward` in aten/src/ATen/native/ConvolutionMM2d.cpp.
    """
    if prod(conv.kernel) == 1 or conv.depthwise:
        return 0
    return conv.batch * conv.source_channels * prod(conv.kernel) * conv.target_pixels * conv.itemsize


def _forward_moments(conv: Convolution) -> list[int]:
    if conv.channels_last:
        return [conv.target + _weight(conv, 1, vector_units().block)]
    if _by_tiles(conv):
        return [
            conv.source + _weight(conv, 2, 16) + conv.target,
            _laid_out_anew(conv.target, conv.target_channels, conv.target_pixels),
        ]
    first = conv.groups == 1 and conv.source_channels < vector_units().block
    source = 0 if first else _blocked(conv, conv.source_channels, conv.source_pixels)
    weight = _weight(conv, 1 if first else vector_units().block, vector_units().block)
    target = _blocked(conv, conv.target_channels, conv.target_pixels)
    return [source + weight + target + _strided_rows(conv), target + conv.target]


def _gradient_moments(conv: Convolution) -> list[int]:
    if conv.channels_last:
        return [conv.source + _weight(conv, vector_units().block, 1)]
    if _by_tiles(conv):
        return [
            conv.target + _weight(conv, 16, 32) + conv.source,
            _laid_out_anew(conv.source, conv.source_channels, conv.source_pixels),
        ]
    if conv.strided and conv.itemsize == 4 and not conv.depthwise:
        # The kernels for strides keep channels last, which oneDNN must lay out anew.
        weight = _weight(conv, vector_units().block, vector_units().block)
        return [
            conv.target + weight + conv.source,
            _laid_out_anew(conv.source, conv.source_channels, conv.source_pixels),
        ]
    source = _blocked(conv, conv.source_channels, conv.source_pixels)
    target = _blocked(conv, conv.target_channels, conv.target_pixels)
    return [target + _weight(conv, vector_units().block, vector_units().block) + source, source + conv.source]


def _weight_moments(conv: Convolution) -> list[int]:
    if conv.channels_last:
        return _weight_moments_channels_last(conv)
    if conv.depthwise and conv.kernel[-1] > 3:
        columns = prod(conv.kernel) * conv.target_pixels * conv.itemsize
        return [conv.weight * (1 + 4 * vector_units().threads) + columns * vector_units().threads, 2 * conv.weight]
    if _by_tiles(conv):
        weight = _weight(conv, 32, 16)
        return [conv.source + conv.target + weight + weight // conv.itemsize * 4, weight + conv.weight]
    first = conv.groups == 1 and conv.source_channels < vector_units().block
    copies_source = not first or conv.source_channels > 3
    multiple = 8 if first else vector_units().block
    source = _blocked(conv, conv.source_channels, conv.source_pixels, multiple) if copies_source else 0
    weight = _weight(conv, multiple if copies_source else 1, vector_units().block)
    target = _blocked(conv, conv.target_channels, conv.target_pixels)
    return [source + target + weight + _strided_rows(conv), weight + conv.weight]


def _weight_moments_channels_last(conv: Convolution) -> list[int]:
    """Return the bytes held for the weight's gradient: oneDNN's, then two copies in PyTorch's layout.

    Without a specialized kernel for wide depthwise filters, each filter is padded to a whole block of 16 × 16; in half
    precision there is a second copy in float32, and an image with as many channels as blocks; measured on 7 shapes
    within 5 %.
    """
    if not conv.depthwise or conv.kernel[-1] <= 3:
        weight = _weight(conv, vector_units().block, vector_units().block)
        scratch = weight * 4 // conv.itemsize if conv.itemsize == 2 and not conv.depthwise else 0
        return [weight + max(2 * conv.weight, scratch)]
    weight = vector_units().block ** 2 * conv.weight
    if conv.itemsize == 4:
        return [weight + 2 * conv.weight]
    pixels = 2 * conv.target_pixels + (conv.kernel[-1] - 1) * isqrt(conv.target_pixels)
    return [weight + 2 * weight + conv.source_channels * vector_units().block * conv.itemsize * pixels]


def _by_tiles(conv: Convolution) -> bool:
    return conv.itemsize == 2 and vector_units().has_tiles and not conv.depthwise


def _laid_out_anew(size: int, channels: int, pixels: int) -> int:
    """Return the bytes of a channels-last result of `size` bytes, a reordered tensor, and the final copy."""
    # With one channel or one pixel, channels last is the same order as channels first.
    return size * (2 if channels == 1 or pixels == 1 else 3)


def _blocked(conv: Convolution, channels: int, pixels: int, multiple: int | None = None) -> int:
    return conv.batch * round_up(channels, multiple or vector_units().block) * pixels * conv.itemsize


def _weight(conv: Convolution, source_multiple: int, target_multiple: int) -> int:
    if conv.groups > 1:
        return conv.weight
    channels = round_up(conv.source_channels, source_multiple) * round_up(conv.target_channels, target_multiple)
    return channels * prod(conv.kernel) * conv.itemsize


def _strided_rows(conv: Convolution) -> int:
    """Return the bytes of the buffer in which a strided 1×1 convolution gathers its input."""
    if not conv.strided or prod(conv.kernel) != 1 or conv.itemsize != 4:
        return 0
    return vector_units().threads * (conv.source_channels * conv.target_pixels * conv.itemsize + 128)


def _is_channels_last(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 4 and suggest_memory_format(tensor) is torch.channels_last


def _copied(conv: Convolution, tensors: tuple[torch.Tensor, ...]) -> int:
    """Return the bytes of copies of those `tensors` that do not have the convolution's memory format."""
    order = torch.channels_last if conv.channels_last else torch.contiguous_format
    return sum(size_bytes(tensor) for tensor in tensors if not tensor.is_contiguous(memory_format=order))


def convolution_hidden_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the hidden bytes of `aten.convolution`."""
    given, weight, _bias, stride, padding, dilation, transposed, _output_padding, groups = args
    places = (stride, padding, dilation, transposed, groups)
    conv = make_convolution((given, weight, result), places)
    if not uses_onednn(given, weight, places, vector_units().threads):
        return unfolded_input_bytes(conv) + _copied(conv, (given,))
    return forward_bytes(conv) + _copied(conv, (given, weight))


def convolution_backward_hidden_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> int:
    """Return the hidden bytes of `aten.convolution_backward`."""
    gradient, given, weight, _bias, stride, padding, dilation, transposed, _output_padding, groups, wants = args
    places = (stride, padding, dilation, transposed, groups)
    conv = make_convolution((given, weight, gradient), places)
    if not uses_onednn(given, weight, places, vector_units().threads):
        return unfolded_input_bytes(conv) + _copied(conv, (gradient, given))
    return backward_bytes(conv, (wants[0], wants[1])) + _copied(conv, (gradient, given, weight))
