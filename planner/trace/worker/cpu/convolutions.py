"""Temporary memory of convolutions on the CPU: oneDNN's copies of operands in its own layouts."""

from collections.abc import Iterable, Sequence
from functools import cache
from math import isqrt, prod
from typing import Any, Final, NamedTuple

import torch
from torch._prims_common import suggest_memory_format

from planner.units import ceil_div, round_up

_HALF_DTYPES: Final = (torch.bfloat16, torch.float16)


def size_bytes(tensor: torch.Tensor, itemsize: int | None = None) -> int:
    """Return the size of `tensor` in bytes, as if its elements had `itemsize` bytes if that is not None."""
    return int(tensor.numel()) * (itemsize or tensor.element_size())


def is_half(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is in half precision, which kernels often compute in float32."""
    return tensor.dtype in _HALF_DTYPES


def contiguous_copies_bytes(values: Iterable[Any]) -> int:
    """Return the size in bytes of contiguous copies of the non-contiguous tensors among `values`."""
    return sum(size_bytes(value) for value in values if isinstance(value, torch.Tensor) and not value.is_contiguous())


class VectorUnits(NamedTuple):
    """Properties of the CPU's vector units: channels per block, AVX-512, matrix tiles, threads."""

    block: int
    has_avx512: bool
    has_tiles: bool
    threads: int


@cache
def vector_units() -> VectorUnits:
    """Return the properties of this CPU's vector units."""
    has_avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return VectorUnits(16 if has_avx512 else 8, has_avx512, torch.cpu._is_amx_tile_supported(), torch.get_num_threads())


class Convolution(NamedTuple):
    """Sizes of a convolution; a transposed one is stored as the convolution for which it is the data gradient."""

    batch: int
    source_channels: int
    target_channels: int
    source_size: tuple[int, ...]
    target_size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    transposed: bool
    itemsize: int
    channels_last: bool

    @property
    def source_pixels(self) -> int:
        """Return the number of pixels of an image of the source."""
        return prod(self.source_size)

    @property
    def target_pixels(self) -> int:
        """Return the number of pixels of an image of the destination."""
        return prod(self.target_size)

    @property
    def is_of_volumes(self) -> bool:
        """Return whether images have three dimensions."""
        return len(self.kernel) == 3

    @property
    def is_strided(self) -> bool:
        """Return whether pixels are skipped."""
        return any(step > 1 for step in self.stride)

    @property
    def reach(self) -> tuple[int, ...]:
        """Return the distance between the first and the last pixel of the filter, by axis."""
        return tuple((width - 1) * step for width, step in zip(self.kernel, self.dilation, strict=True))

    @property
    def padding_after(self) -> tuple[int, ...]:
        """Return how many pixels after the last one the filter reaches, by axis; negative if some are left over."""
        axes = zip(self.target_size, self.source_size, self.reach, self.stride, self.padding, strict=True)
        return tuple((target - 1) * step + reach + 1 - source - before for target, source, reach, step, before in axes)

    @property
    def source_bytes(self) -> int:
        """Return the size of the convolution's source tensor in bytes."""
        return self.batch * self.source_channels * self.source_pixels * self.itemsize

    @property
    def target_bytes(self) -> int:
        """Return the size of the convolution's destination tensor in bytes."""
        return self.batch * self.target_channels * self.target_pixels * self.itemsize

    @property
    def weight_bytes(self) -> int:
        """Return the size of the convolution's weight in bytes."""
        return self.source_channels // self.groups * self.target_channels * prod(self.kernel) * self.itemsize

    @property
    def is_pointwise(self) -> bool:
        """Return whether each pixel of the result depends on the same pixel of the input, and each is used."""
        return prod(self.kernel) == 1 and not self.is_strided and not any(self.padding)

    @property
    def is_depthwise(self) -> bool:
        """Return whether each channel is filtered separately."""
        return self.groups > 1 and self.groups == self.source_channels == self.target_channels


def make_convolution(
    tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor], settings: tuple[Any, ...]
) -> Convolution:
    """Return a convolution's sizes from (input, weight, output), (stride, padding, dilation, transposed, groups)."""
    input_tensor, weight, output = tensors
    stride, padding, dilation, transposed, groups = settings
    source, target = (output, input_tensor) if transposed else (input_tensor, output)
    channels_last = _is_channels_last(input_tensor) or _is_channels_last(weight)
    return Convolution(
        batch=input_tensor.shape[0],
        source_channels=source.shape[1],
        target_channels=target.shape[1],
        source_size=tuple(source.shape[2:]),
        target_size=tuple(target.shape[2:]),
        kernel=tuple(weight.shape[2:]),
        stride=_by_axis(stride, weight),
        padding=_by_axis(padding, weight),
        dilation=_by_axis(dilation, weight),
        groups=groups,
        transposed=transposed,
        itemsize=input_tensor.element_size(),
        channels_last=channels_last,
    )


def _by_axis(values: Sequence[int], weight: torch.Tensor) -> tuple[int, ...]:
    """Return a value for each axis of the filter: one value is that of all axes.

    **Source**: `expand_param_if_needed` in aten/src/ATen/native/ConvUtils.h; padding by name gives one value.
    """
    return tuple(values) if len(values) > 1 else (values[0],) * (weight.dim() - 2)


def uses_onednn(input_tensor: torch.Tensor, weight: torch.Tensor, settings: tuple[Any, ...], threads: int) -> bool:
    """Return whether PyTorch uses oneDNN for the convolution rather than its own kernels.

    Whether an input is large is judged by its first four dimensions, so volumes without their last; a kernel of one
    dimension is one row of two.

    **Source**: `ConvParams::use_mkldnn` in aten/src/ATen/native/Convolution.cpp.
    """
    stride, _padding, dilation, _transposed, groups = settings
    if is_half(input_tensor):
        return vector_units().has_avx512
    if input_tensor.dtype != torch.float32:
        return False
    kernel = (1, *weight.shape[2:])[-2:]
    worth = (
        any(step > 1 for step in (*stride, *dilation))
        or input_tensor.shape[0] >= 16
        or any(width != 1 for width in kernel)
        or threads > 1
    )
    large = (
        groups > 1
        or all(width > 3 for width in kernel)
        or input_tensor.shape[0] > 1
        or prod(input_tensor.shape[:4]) > 20480
    )
    return worth and large


def forward_bytes(conv: Convolution) -> int:
    """Return the maximum bytes held by the forward pass in addition to its output.

    **Formula**: max(copies of source, weight and destination, destination + result) - result. A tensor is copied unless
    it has oneDNN's layout already; a destination with channels last is reordered twice more. **Source**:
    `mkldnn_convolution` and `mkldnn_to_dense` of PyTorch; measured with the profiler.
    """
    moments = _gradient_moments_bytes(conv) if conv.transposed else _forward_moments_bytes(conv)
    return max(moments) - (conv.source_bytes if conv.transposed else conv.target_bytes)


def backward_bytes(conv: Convolution, wanted_gradients: tuple[bool, bool]) -> int:
    """Return the maximum bytes held by the backward pass in addition to the gradients that it returns.

    `wanted_gradients` are flags for the input's and the weight's gradient. The input's gradient is computed first, and
    stays in memory while the weight's gradient is computed.

    **Source**: `mkldnn_convolution_backward` of PyTorch; measured with the profiler.
    """
    input_bytes = conv.target_bytes if conv.transposed else conv.source_bytes
    returned_bytes = input_bytes * wanted_gradients[0] + conv.weight_bytes * wanted_gradients[1]
    moments = [0]
    if wanted_gradients[0]:
        moments += _forward_moments_bytes(conv) if conv.transposed else _gradient_moments_bytes(conv)
    if wanted_gradients[1]:
        moments += [input_bytes * wanted_gradients[0] + moment for moment in _weight_moments_bytes(conv)]
    return max(0, max(moments) - returned_bytes)


def unfolded_forward_bytes(conv: Convolution) -> int:
    """Return the size in bytes of the unfolded input (im2col) of PyTorch's own kernels, for the whole batch.

    **Formula**: batch x channels x kernel x pixels, of the convolution's source for its target's pixels; none for a
    kernel of one pixel, except where a transposed convolution adds up its result, of volumes one at a time.

    **Source**: `slow_conv2d_forward` in aten/src/ATen/native/ConvolutionMM2d.cpp, `slow_conv3d_forward` in
    ConvolutionMM3d.cpp, `slow_conv_transpose2d_out_cpu_template` in NaiveConvolutionTranspose2d.cpp and its like for
    volumes.
    """
    if conv.is_depthwise or (conv.is_pointwise and not conv.transposed):
        return 0
    return (1 if conv.transposed and conv.is_of_volumes else conv.batch) * _unfolded_image_bytes(conv)


def unfolded_backward_bytes(conv: Convolution, wanted_gradients: tuple[bool, bool]) -> int:
    """Return the bytes that PyTorch's own kernels hold beside the gradients that they return: the unfolded input.

    A transposed convolution unfolds one image at a time. The input's gradient of a volume is unfolded even for a kernel
    of one pixel, before there is a weight's gradient.

    **Source**: as of `unfolded_forward_bytes`; measured with the profiler.
    """
    if conv.is_depthwise:
        return 0
    if not conv.is_pointwise:
        return (1 if conv.transposed else conv.batch) * _unfolded_image_bytes(conv)
    if conv.transposed or not conv.is_of_volumes or not wanted_gradients[0]:
        return 0
    return max(0, conv.batch * _unfolded_image_bytes(conv) - conv.weight_bytes * wanted_gradients[1])


def _unfolded_image_bytes(conv: Convolution) -> int:
    """Return the size in bytes of one unfolded image."""
    return conv.source_channels * prod(conv.kernel) * conv.target_pixels * conv.itemsize


def _forward_moments_bytes(conv: Convolution) -> list[int]:
    """Return the bytes held at each moment of oneDNN's forward pass: computing, then reordering the result."""
    if conv.channels_last:
        return [conv.target_bytes + _blocked_weight_bytes(conv, 1, vector_units().block)]
    if _uses_matrix_tiles(conv):
        return [
            conv.source_bytes + _blocked_weight_bytes(conv, 2, 16) + conv.target_bytes,
            _reordered_bytes(conv.target_bytes, conv.target_channels, conv.target_pixels),
        ]
    first = _reads_source_in_place(conv)
    source_bytes = 0 if first else _blocked_bytes(conv, conv.source_channels, conv.source_pixels)
    multiple = 4 // conv.itemsize if first else vector_units().block
    weight_bytes = _blocked_weight_bytes(conv, multiple, vector_units().block)
    target_bytes = _blocked_bytes(conv, conv.target_channels, conv.target_pixels)
    scratch_bytes = _strided_rows_bytes(conv) + _full_precision_bytes(conv, conv.target_channels, conv.target_pixels)
    return [source_bytes + weight_bytes + target_bytes + scratch_bytes, target_bytes + conv.target_bytes]


def _gradient_moments_bytes(conv: Convolution) -> list[int]:
    """Return the bytes held at each moment in which oneDNN computes the input's gradient."""
    if conv.channels_last:
        return [conv.source_bytes + _blocked_weight_bytes(conv, vector_units().block, 1)]
    if _uses_matrix_tiles(conv):
        return [
            conv.target_bytes + _blocked_weight_bytes(conv, 16, 32) + conv.source_bytes,
            _reordered_bytes(conv.source_bytes, conv.source_channels, conv.source_pixels),
        ]
    has_narrow_groups = conv.groups > 1 and conv.target_channels <= conv.groups * vector_units().block
    is_half_depthwise = conv.is_depthwise and conv.itemsize == 2
    if conv.is_strided and (is_half_depthwise or not has_narrow_groups):
        # The kernels for strides keep channels last, which oneDNN must reorder.
        weight_bytes = _blocked_weight_bytes(conv, vector_units().block, 4 // conv.itemsize)
        if conv.is_depthwise:
            # Each filter fills a block.
            weight_bytes = conv.weight_bytes * vector_units().block * 2
        return [
            conv.target_bytes + weight_bytes + conv.source_bytes + _strided_gradient_scratch_bytes(conv),
            _reordered_bytes(conv.source_bytes, conv.source_channels, conv.source_pixels),
        ]
    source_bytes = _blocked_bytes(conv, conv.source_channels, conv.source_pixels)
    target_bytes = _blocked_bytes(conv, conv.target_channels, conv.target_pixels)
    weight_bytes = _blocked_weight_bytes(conv, vector_units().block, vector_units().block)
    scratch_bytes = _full_precision_bytes(conv, conv.source_channels, conv.source_pixels)
    return [target_bytes + weight_bytes + source_bytes + scratch_bytes, source_bytes + conv.source_bytes]


def _weight_moments_bytes(conv: Convolution) -> list[int]:
    """Return the bytes held at each moment in which oneDNN computes the weight's gradient."""
    if conv.channels_last:
        return _channels_last_weight_moments_bytes(conv)
    if conv.is_depthwise and conv.kernel[-1] > 3:
        columns = prod(conv.kernel) * conv.target_pixels * conv.itemsize
        return [
            conv.weight_bytes * (1 + 4 * vector_units().threads) + columns * vector_units().threads,
            2 * conv.weight_bytes,
        ]
    if _uses_matrix_tiles(conv):
        weight_bytes = _blocked_weight_bytes(conv, 32, 16)
        return [
            conv.source_bytes + conv.target_bytes + weight_bytes + weight_bytes // conv.itemsize * 4,
            weight_bytes + conv.weight_bytes,
        ]
    first = _reads_source_in_place(conv)
    of_padded_volumes = conv.is_of_volumes and any(conv.padding) and prod(conv.kernel) > 1
    unfolds_first = conv.itemsize == 4 and first and conv.source_channels > 3 and of_padded_volumes
    is_partly_full = conv.itemsize == 2 and first and conv.target_channels % vector_units().block != 0
    is_unfolded = not conv.is_depthwise and _is_unfolded_for_weights(conv)
    if unfolds_first or is_partly_full or is_unfolded or _has_uneven_groups(conv):
        return [conv.weight_bytes + _unfolding_scratch_bytes(conv), 2 * conv.weight_bytes]
    copies_source = not first or (conv.source_channels > 3 and conv.itemsize == 4)
    multiple = 8 if first and copies_source else vector_units().block
    source_bytes = _blocked_bytes(conv, conv.source_channels, conv.source_pixels, multiple) if copies_source else 0
    weight_bytes = _blocked_weight_bytes(conv, multiple if copies_source else 1, multiple)
    target_bytes = _blocked_bytes(conv, conv.target_channels, conv.target_pixels, multiple)
    scratch_bytes = _strided_rows_bytes(conv)
    if conv.itemsize == 2 and not conv.is_depthwise:
        paired_bytes = _paired_pixels_bytes if _is_of_single_pixels(conv) else _paired_rows_bytes
        scratch_bytes += 2 * weight_bytes + SCRATCH_ALIGNMENT_BYTES + paired_bytes(conv)
    return [source_bytes + target_bytes + weight_bytes + scratch_bytes, weight_bytes + conv.weight_bytes]


def _is_of_single_pixels(conv: Convolution) -> bool:
    """Return whether oneDNN takes its kernel for filters of one pixel; strided ones are not transposed, nor volumes.

    **Source**: `rtus_prepare` in oneDNN's src/cpu/x64/jit_uni_1x1_conv_utils.hpp.
    """
    can_be_strided = not conv.transposed and not conv.is_of_volumes
    return prod(conv.kernel) == 1 and not any(conv.padding) and (can_be_strided or not conv.is_strided)


def _reads_source_in_place(conv: Convolution) -> bool:
    """Return whether the source has too few channels for a block, as the first convolution of a network.

    **Source**: `is_1stconv` in oneDNN's src/cpu/x64/jit_avx512_common_conv_kernel.cpp and
    jit_avx512_core_bf16_conv_kernel.cpp; in half precision, filters of one pixel have a kernel that pads channels.
    """
    is_first = conv.groups == 1 and conv.source_channels < vector_units().block
    return is_first and not (conv.itemsize == 2 and _is_of_single_pixels(conv))


SCRATCH_ALIGNMENT_BYTES: Final = 128
"""Room beside each buffer of oneDNN's scratch memory. **Source**: `registry_t::book` in its memory_tracking.hpp."""
_BARRIER_BYTES: Final = 2 * 4096
"""A barrier of oneDNN's threads, one page at the start of a page. **Source**: its simple_barrier.hpp."""


def _full_precision_bytes(conv: Convolution, channels: int, pixels: int) -> int:
    """Return the size in bytes of one float32 image per thread, as half-precision filters of one pixel add it up.

    **Source**: `init_scratchpad` in oneDNN's src/cpu/x64/jit_avx512_core_bf16_1x1_conv_kernel.cpp.
    """
    if conv.itemsize != 2 or conv.groups > 1 or not _is_of_single_pixels(conv):
        return 0
    return vector_units().threads * round_up(channels, vector_units().block) * pixels * 4 + SCRATCH_ALIGNMENT_BYTES


def _paired_rows_bytes(conv: Convolution) -> int:
    """Return the size in bytes of one image of source and target with pairs of pixels beside each other, and a barrier.

    Rows of the source are padded as the filter needs; the first convolution of a network reads its source in place.

    **Source**: `init_conf` and `init_scratchpad` of `jit_avx512_core_bf16_conv_bwd_weights_kernel_f32` in oneDNN's
    src/cpu/x64/jit_avx512_core_bf16_conv_kernel.cpp.
    """
    source, target = conv.source_size[-1], conv.target_size[-1]
    step, before, reach = conv.stride[-1], conv.padding[-1], (conv.kernel[-1] - 1) * conv.dilation[-1]
    after = max(0, (target - 1) * step + reach + 1 - source - before)
    padding = round_up(max(before, after + 1), 2)
    row = round_up(ceil_div(source, step) + padding, 2) * step
    image_bytes = _blocked_bytes(conv, conv.target_channels, conv.target_pixels // target * round_up(target, 2))
    held_bytes = _BARRIER_BYTES + SCRATCH_ALIGNMENT_BYTES
    if not _reads_source_in_place(conv):
        image_bytes += _blocked_bytes(conv, conv.source_channels, conv.source_pixels // source * row)
        held_bytes += padding * conv.itemsize + SCRATCH_ALIGNMENT_BYTES
    return held_bytes + image_bytes // conv.batch


_FEWEST_TARGET_BLOCKS: Final = 16
_FEWEST_SOURCE_BLOCKS: Final = 5
_SMALL_WIDTH: Final = 14


def _paired_pixels_bytes(conv: Convolution) -> int:
    """Return the size in bytes of blocks of source and target with pairs of pixels beside each other, of small images.

    **Source**: `init_conf` (`uses_permw_transposition`) and `init_scratchpad` in oneDNN's
    src/cpu/x64/jit_avx512_core_bf16_1x1_conv_kernel.cpp.
    """
    block = vector_units().block
    is_large = min(1 if len(conv.target_size) == 1 else conv.target_size[-2], conv.target_size[-1]) > _SMALL_WIDTH
    if is_large and not (conv.is_of_volumes and conv.target_channels > 4 * block):
        return 0
    blocks = _least_divisor(ceil_div(conv.target_channels, block), _FEWEST_TARGET_BLOCKS)
    blocks += _least_divisor(ceil_div(conv.source_channels, block), _FEWEST_SOURCE_BLOCKS)
    pixels_bytes = round_up(conv.target_pixels, 2) * block * blocks * conv.itemsize
    return vector_units().threads * pixels_bytes + 2 * SCRATCH_ALIGNMENT_BYTES


def _least_divisor(count: int, least: int) -> int:
    """Return the least divisor of `count` that is not below `least`, or `count`."""
    return next((divisor for divisor in range(least, count) if count % divisor == 0), count)


_WIDEST_KERNEL: Final = 14
_WIDEST_PADDING: Final = 28

_WIDEST_FIRST_HALF_KERNEL: Final = 24
"""Bounds of the filters and paddings whose gradient oneDNN computes without unfolding.

**Source**: `init_conf` in oneDNN's src/cpu/x64/jit_avx512_common_conv_kernel.cpp, and `max_kw` in
jit_avx512_core_bf16_conv_kernel.cpp there.
"""


def _is_unfolded_for_weights(conv: Convolution) -> bool:
    """Return whether the weight's gradient unfolds the input, as oneDNN's kernel takes no filter that reaches so far.

    **Source**: `init_conf` of the weights in oneDNN's src/cpu/x64/jit_avx512_common_conv_kernel.cpp.
    """
    extents = [reach + 1 for reach in conv.reach]
    paddings = [max(before, after) for before, after in zip(conv.padding, conv.padding_after, strict=True)]
    is_first_half = conv.itemsize == 2 and _reads_source_in_place(conv)
    widest = _WIDEST_FIRST_HALF_KERNEL if is_first_half else _WIDEST_KERNEL
    if conv.kernel[-1] > widest or paddings[-1] >= extents[-1] or paddings[-1] > _WIDEST_PADDING:
        return True
    if len(conv.kernel) == 1:
        return False
    if conv.dilation[-2] > 1 and (conv.stride[-2] > 1 or extents[-2] > conv.source_size[-2]):
        return True
    is_deep = 0 < conv.padding[0] <= conv.kernel[0] - conv.source_size[0]
    return conv.is_of_volumes and (is_deep or conv.dilation[0] > 1 or paddings[0] >= extents[0])


_NARROWEST_BLOCK: Final = 8


def _has_uneven_groups(conv: Convolution) -> bool:
    """Return whether groups of channels, but not single ones, fill no whole blocks.

    **Source**: `init_conf` of the kernels for weights' gradients in oneDNN's src/cpu/x64/jit_avx2_conv_kernel_f32.cpp
    and jit_avx512_core_bf16_conv_kernel.cpp.
    """
    if conv.groups == 1 or conv.is_depthwise:
        return False
    block = _NARROWEST_BLOCK if conv.itemsize == 4 else vector_units().block
    return any(channels // conv.groups % block for channels in (conv.source_channels, conv.target_channels))


def _unfolding_scratch_bytes(conv: Convolution) -> int:
    """Return the size in bytes of the buffers in which each thread unfolds a group's image, or a slice of its volume.

    Beside it oneDNN reserves room for the weight's gradient, four times what it needs: its bytes as numbers of four.

    **Source**: `init_conf` in oneDNN's src/cpu/gemm_convolution_utils.cpp; measured with one and two threads.
    """
    slices = conv.target_size[0] if conv.is_of_volumes else 1
    weight_bytes = conv.weight_bytes // conv.itemsize * 4
    columns_bytes = _unfolded_image_bytes(conv) // conv.groups // slices
    return vector_units().threads * (columns_bytes + 4 * weight_bytes) + 256


def _channels_last_weight_moments_bytes(conv: Convolution) -> list[int]:
    """Return the bytes held for the weight's gradient: oneDNN's gradient, then two copies in PyTorch's layout.

    Without a specialized kernel for wide depthwise filters, each filter is padded to a whole block of 16 × 16; in half
    precision there is a second copy in float32, and an image with as many channels as blocks; measured on 7 shapes
    within 5 %.
    """
    if not conv.is_depthwise or conv.kernel[-1] <= 3:
        weight_bytes = _blocked_weight_bytes(conv, vector_units().block, vector_units().block)
        scratch = weight_bytes * 4 // conv.itemsize if conv.itemsize == 2 and not conv.is_depthwise else 0
        return [weight_bytes + max(2 * conv.weight_bytes, scratch)]
    weight_bytes = vector_units().block ** 2 * conv.weight_bytes
    if conv.itemsize == 4:
        return [weight_bytes + 2 * conv.weight_bytes]
    pixels = 2 * conv.target_pixels + (conv.kernel[-1] - 1) * isqrt(conv.target_pixels)
    return [weight_bytes + 2 * weight_bytes + conv.source_channels * vector_units().block * conv.itemsize * pixels]


def _uses_matrix_tiles(conv: Convolution) -> bool:
    """Return whether oneDNN computes the convolution with the CPU's matrix tiles (AMX)."""
    return conv.itemsize == 2 and vector_units().has_tiles and not conv.is_depthwise


def _reordered_bytes(size: int, channels: int, pixels: int) -> int:
    """Return the total bytes of a channels-last result of `size` bytes, a reordered tensor, and the final copy."""
    # With one channel or one pixel, channels last is the same order as channels first.
    return size * (2 if channels == 1 or pixels == 1 else 3)


def _blocked_bytes(conv: Convolution, channels: int, pixels: int, multiple: int | None = None) -> int:
    """Return the size in bytes of a tensor in oneDNN's layout, with channels rounded up to whole blocks."""
    return conv.batch * round_up(channels, multiple or vector_units().block) * pixels * conv.itemsize


def _blocked_weight_bytes(conv: Convolution, source_multiple: int, target_multiple: int) -> int:
    """Return the weight's size in bytes in oneDNN's layout, with input and output channels rounded up."""
    if conv.groups > 1:
        return conv.weight_bytes
    channels = round_up(conv.source_channels, source_multiple) * round_up(conv.target_channels, target_multiple)
    return channels * prod(conv.kernel) * conv.itemsize


def _strided_rows_bytes(conv: Convolution) -> int:
    """Return the size in bytes of the buffer in which a strided 1×1 convolution gathers its input."""
    if not conv.is_strided or prod(conv.kernel) != 1 or conv.groups > 1:
        return 0
    if conv.itemsize == 2 and not _is_of_single_pixels(conv):
        return 0
    channels = conv.source_channels if conv.itemsize == 4 else round_up(conv.source_channels, vector_units().block)
    return vector_units().threads * (channels * conv.target_pixels * conv.itemsize + SCRATCH_ALIGNMENT_BYTES)


_PAGE: Final = 4096


def _strided_gradient_scratch_bytes(conv: Convolution) -> int:
    """Return the size in bytes of each thread's padded image, of rows of uneven length, and of lists on whole pages.

    **Source**: `init_conf` and `init_scratchpad` in oneDNN's src/cpu/x64/jit_brgemm_conv_bwd_utils.cpp.
    """
    padded_size = []
    axes = zip(conv.target_size, conv.reach, conv.stride, conv.padding, conv.padding_after, strict=True)
    for target, reach, step, before, after in axes:
        padded_size.append(target + max(0, reach - before) // step + max(0, reach - after) // step)
    elements = round_up(prod(padded_size) * conv.target_channels // conv.groups, _PAGE)
    step, width = conv.stride[-1], conv.source_size[-1]
    rows_bytes = 0
    if width % step:
        rows_bytes = round_up(round_up(width, step) * step * conv.source_channels // conv.groups, _PAGE) * conv.itemsize
    held_bytes = vector_units().threads * (elements * conv.itemsize + 2 * _PAGE + rows_bytes)
    return held_bytes + (3 + bool(rows_bytes)) * _PAGE


def _is_channels_last(tensor: torch.Tensor) -> bool:
    """Return whether PyTorch treats `tensor` as a channels-last image."""
    return tensor.dim() == 4 and suggest_memory_format(tensor) is torch.channels_last


def _layout_copies_bytes(conv: Convolution, tensors: tuple[torch.Tensor, ...]) -> int:
    """Return the size in bytes of copies of the `tensors` that do not have the convolution's memory format."""
    order = torch.channels_last if conv.channels_last else torch.contiguous_format
    return sum(size_bytes(tensor) for tensor in tensors if not tensor.is_contiguous(memory_format=order))


def convolution_hidden_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> int:
    """Return the temporary bytes of the kernel of `aten.convolution`."""
    input_tensor, weight_bytes, _bias, stride, padding, dilation, transposed, _output_padding, groups = args
    settings = (stride, padding, dilation, transposed, groups)
    conv = make_convolution((input_tensor, weight_bytes, result), settings)
    if not uses_onednn(input_tensor, weight_bytes, settings, vector_units().threads):
        return unfolded_forward_bytes(conv) + _layout_copies_bytes(conv, (input_tensor,))
    return forward_bytes(conv) + _layout_copies_bytes(conv, (input_tensor, weight_bytes))


def convolution_backward_hidden_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> int:
    """Return the temporary bytes of the kernel of `aten.convolution_backward`."""
    (
        gradient,
        input_tensor,
        weight_bytes,
        _bias,
        stride,
        padding,
        dilation,
        transposed,
        _output_padding,
        groups,
        wanted_gradients,
    ) = args
    settings = (stride, padding, dilation, transposed, groups)
    conv = make_convolution((input_tensor, weight_bytes, gradient), settings)
    wanted = (wanted_gradients[0], wanted_gradients[1])
    if not uses_onednn(input_tensor, weight_bytes, settings, vector_units().threads):
        copies_bytes = _layout_copies_bytes(conv, (gradient, input_tensor))
        return unfolded_backward_bytes(conv, wanted) + copies_bytes
    copies_bytes = _layout_copies_bytes(conv, (gradient, input_tensor, weight_bytes))
    return backward_bytes(conv, wanted) + copies_bytes
