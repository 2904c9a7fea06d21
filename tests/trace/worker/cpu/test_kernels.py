"""What the CPU's kernels hold within, measured with the profiler, against the formulas."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from held_bytes import agree
from random_programs import one_thread
from torch.utils._pytree import tree_leaves

from planner.trace.worker.cpu.composed import rnn_workspace_bytes
from planner.trace.worker.cpu.convolutions import vector_units
from planner.trace.worker.cpu.kernels import hidden_bytes

aten = torch.ops.aten
FULL, HALF = torch.float32, torch.bfloat16

blocked = pytest.mark.skipif(
    not vector_units().has_avx512, reason="measured on a processor with AVX-512, whose layouts differ from others'"
)


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with one_thread():
        yield


def last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(memory_format=torch.channels_last)


def convolved(shape: tuple[int, ...], weight: tuple[int, ...], stride: int, groups: int = 1) -> tuple[Any, ...]:
    padding = weight[-1] // 2
    sizes = ([stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups)
    return (torch.randn(shape), torch.randn(weight), None, *sizes)


CONVOLUTIONS = {
    "first of a network": convolved((2, 3, 32, 32), (64, 3, 7, 7), 2),
    "3 × 3": convolved((2, 64, 32, 32), (64, 64, 3, 3), 1),
    "odd channels": convolved((2, 24, 32, 32), (40, 24, 3, 3), 1),
    "four channels": convolved((2, 4, 32, 32), (64, 4, 3, 3), 1),
    "strided": convolved((2, 64, 32, 32), (128, 64, 3, 3), 2),
    "one pixel, of few images": convolved((2, 64, 32, 32), (256, 64, 1, 1), 1),
    "one pixel, of many images": convolved((16, 64, 32, 32), (256, 64, 1, 1), 1),
    "one pixel, strided": convolved((16, 64, 32, 32), (128, 64, 1, 1), 2),
    "each channel on its own": convolved((2, 96, 32, 32), (96, 1, 7, 7), 1, 96),
    "each channel on its own, 3 × 3": convolved((2, 64, 32, 32), (64, 1, 3, 3), 1, 64),
    "groups": convolved((2, 64, 32, 32), (64, 16, 3, 3), 1, 4),
}


@blocked
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_what_a_convolution_holds(name: str) -> None:
    agree(aten.convolution.default, *CONVOLUTIONS[name])


@blocked
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_what_a_convolution_holds_backward(name: str) -> None:
    given, weight, _, *sizes = CONVOLUTIONS[name]
    gradient = torch.randn_like(aten.convolution(given, weight, None, *sizes))
    agree(aten.convolution_backward.default, gradient, given, weight, [0], *sizes, [True, True, False])


@blocked
@pytest.mark.parametrize("name", ["3 × 3", "strided", "each channel on its own", "each channel on its own, 3 × 3"])
def test_what_a_convolution_with_channels_last_holds(name: str) -> None:
    given, weight, _, *sizes = CONVOLUTIONS[name]
    agree(aten.convolution.default, last(given), weight, None, *sizes, within=10_000)
    gradient = torch.randn_like(aten.convolution(last(given), weight, None, *sizes))
    rest = (gradient, last(given), weight, [weight.shape[0]], *sizes, [True, True, True])
    agree(aten.convolution_backward.default, *rest, within=10_000)


@blocked
@pytest.mark.parametrize("channels", [32, 3])
def test_what_a_transposed_convolution_holds(channels: int) -> None:
    args = (torch.randn(4, 64, 16, 16), torch.randn(64, channels, 4, 4), None, [2, 2], [1, 1], [1, 1], True, [0, 0], 1)
    agree(aten.convolution.default, *args)
    gradient = torch.randn_like(aten.convolution(*args))
    agree(aten.convolution_backward.default, gradient, *args[:2], [channels], *args[3:], [True, True, True])


def of_any_kind(
    shape: tuple[int, ...],
    weight: tuple[int, ...],
    stride: int,
    padding: int,
    transposed: bool = False,
    dilation: int = 1,
) -> tuple[Any, ...]:
    """Return the arguments of a convolution of sounds, images or volumes."""
    axes = len(shape) - 2
    groups = 1 if transposed else shape[1] // weight[1]
    sizes = ([stride] * axes, [padding] * axes, [dilation] * axes, transposed, [0] * axes, groups)
    return (torch.randn(shape), torch.randn(weight), None, *sizes)


OTHER_KINDS = {
    "volumes": of_any_kind((2, 16, 8, 16, 16), (32, 16, 3, 3, 3), 1, 1),
    "volumes of few channels": of_any_kind((2, 8, 8, 8, 8), (32, 8, 3, 3, 3), 1, 1),
    "volumes, first of a network": of_any_kind((2, 1, 8, 16, 16), (32, 1, 3, 3, 3), 1, 1),
    "volumes, strided": of_any_kind((2, 16, 8, 16, 16), (32, 16, 3, 3, 3), 2, 1),
    "volumes, transposed": of_any_kind((2, 32, 4, 8, 8), (32, 16, 2, 2, 2), 2, 0, True),
    "volumes, transposed to few channels": of_any_kind((2, 64, 6, 6, 6), (64, 8, 3, 3, 3), 1, 1, True),
    "volumes less deep than the filter": of_any_kind((1, 16, 2, 4, 4), (16, 16, 5, 5, 5), 1, 2),
    "sounds": of_any_kind((4, 16, 256), (32, 16, 3), 1, 1),
    "sounds, transposed": of_any_kind((4, 64, 256), (64, 32, 8), 4, 2, True),
    "images of few channels": of_any_kind((2, 5, 12, 12), (24, 5, 3, 3), 1, 1),
    "images, transposed to one channel": of_any_kind((2, 16, 28, 28), (16, 1, 3, 3), 2, 0, True),
    "images, dilated beyond": of_any_kind((2, 32, 12, 12), (32, 32, 3, 3), 1, 6, dilation=6),
    "images, dilated beyond in groups": of_any_kind((2, 32, 12, 12), (32, 16, 3, 3), 1, 6, dilation=6),
    "images, dilated and strided": of_any_kind((2, 32, 16, 16), (32, 32, 3, 3), 2, 2, dilation=2),
    "images with wide padding": of_any_kind((2, 32, 16, 16), (32, 32, 3, 3), 1, 2),
    "volumes, dilated": of_any_kind((2, 16, 8, 8, 8), (16, 16, 3, 3, 3), 1, 2, dilation=2),
    "images, of uneven width": of_any_kind((2, 32, 15, 15), (32, 32, 3, 3), 2, 1),
}
UNFOLDED = {
    "image": of_any_kind((1, 8, 20, 20), (8, 8, 3, 3), 1, 1),
    "image of one pixel, strided": of_any_kind((1, 8, 20, 20), (8, 8, 1, 1), 2, 0),
    "image, transposed": of_any_kind((1, 16, 16, 16), (16, 8, 2, 2), 2, 0, True),
    "volume that is large but for its last dimension": of_any_kind((1, 16, 16, 16, 32), (16, 16, 3, 3, 3), 1, 1),
    "volume of one pixel": of_any_kind((2, 32, 8, 8, 8), (4, 32, 1, 1, 1), 1, 0),
    "volumes of one pixel, transposed": of_any_kind((2, 24, 8, 8, 8), (24, 16, 1, 1, 1), 1, 0, True),
    "sound": of_any_kind((1, 8, 256), (8, 8, 7), 1, 3),
    "sound, transposed": of_any_kind((1, 16, 256), (16, 40, 5), 2, 0, True),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=blocked) for name in OTHER_KINDS] + [*UNFOLDED])
def test_what_convolutions_of_sounds_and_volumes_hold(name: str) -> None:
    """PyTorch's own kernels unfold the input; which kernel is taken is not the same for sounds, images and volumes."""
    given, weight, _, *sizes = args = (OTHER_KINDS | UNFOLDED)[name]
    agree(aten.convolution.default, *args)
    gradient = torch.randn_like(aten.convolution(*args))
    for wanted in ([True, True, False], [False, True, False]):
        agree(aten.convolution_backward.default, gradient, given, weight, [0], *sizes, wanted)


@blocked
@pytest.mark.parametrize("padding", [[0, 0], [0]])
def test_what_the_gradient_of_patches_holds(padding: list[int]) -> None:
    """Padding by name is one value for all axes."""
    given, weight, _, *sizes = of_any_kind((2, 3, 64, 64), (32, 3, 16, 16), 16, 0)
    sizes[1] = padding
    gradient = torch.randn_like(aten.convolution(given, weight, None, *sizes))
    agree(aten.convolution_backward.default, gradient, given, weight, [0], *sizes, [False, True, False])


def grouped(groups: int, stride: int) -> tuple[Any, ...]:
    return convolved((2, 64, 28, 28), (64, 64 // groups, 3, 3), stride, groups)


@blocked
@pytest.mark.parametrize("dtype", [FULL, HALF])
@pytest.mark.parametrize(("groups", "stride"), [(16, 1), (16, 2), (4, 2), (2, 2), (64, 2)])
def test_what_a_convolution_of_groups_holds(dtype: torch.dtype, groups: int, stride: int) -> None:
    """Groups of few channels have another kernel for strides, and one that unfolds for the weight's gradient."""
    if dtype is HALF and vector_units().has_tiles:
        pytest.skip("computed by matrix tiles")
    given, weight, _, *sizes = grouped(groups, stride)
    args = (given.to(dtype), weight.to(dtype), None, *sizes)
    agree(aten.convolution.default, *args)
    gradient = torch.randn_like(aten.convolution(*args))
    for wanted in ([True, False, False], [False, True, False]):
        agree(aten.convolution_backward.default, gradient, *args[:2], [0], *sizes, wanted, within=4096)


HALVES = {
    "images": of_any_kind((2, 64, 30, 30), (64, 64, 5, 5), 1, 2),
    "images of odd channels": of_any_kind((2, 24, 16, 16), (40, 24, 3, 3), 1, 1),
    "images, first of a network": of_any_kind((2, 3, 32, 32), (64, 3, 3, 3), 1, 1),
    "images in patches": of_any_kind((2, 3, 64, 64), (64, 3, 16, 16), 16, 0),
    "images, strided": of_any_kind((2, 64, 28, 28), (128, 64, 3, 3), 2, 1),
    "single pixels of large images": of_any_kind((2, 64, 28, 28), (256, 64, 1, 1), 1, 0),
    "single pixels of small images": of_any_kind((2, 512, 7, 7), (320, 512, 1, 1), 1, 0),
    "single pixels, first of a network": of_any_kind((2, 3, 12, 12), (3, 3, 1, 1), 1, 0),
    "single pixels, transposed and strided": of_any_kind((2, 16, 12, 12), (16, 16, 1, 1), 2, 0, True),
    "sounds": of_any_kind((4, 16, 256), (32, 16, 3), 1, 1),
    "volumes": of_any_kind((2, 64, 8, 8, 8), (24, 64, 3, 3, 3), 1, 1),
    "volumes, first of a network": of_any_kind((4, 3, 12, 12, 12), (8, 3, 2, 2, 2), 1, 1),
}


@blocked
@pytest.mark.skipif(vector_units().has_tiles, reason="measured on a processor without matrix tiles")
@pytest.mark.parametrize("name", HALVES)
def test_what_a_convolution_in_half_precision_holds(name: str) -> None:
    given, weight, _, *sizes = HALVES[name]
    args = (given.to(HALF), weight.to(HALF), None, *sizes)
    agree(aten.convolution.default, *args)
    gradient = torch.randn_like(aten.convolution(*args))
    # For some inputs' gradients with strides, the sums of a row are kept in float32.
    for wanted, within in (([True, False, False], 16_384), ([False, True, False], 2048)):
        agree(aten.convolution_backward.default, gradient, *args[:2], [0], *sizes, wanted, within=within)


LAYERS = [(16, 8, 64, 128), (10, 4, 256, 256), (20, 32, 100, 96), (7, 3, 50, 64), (32, 16, 512, 512), (12, 130, 64, 64)]


def layer(sizes: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    steps, batch, inputs, hidden = sizes
    weights = (torch.randn(4 * hidden, inputs), torch.randn(4 * hidden, hidden), *(torch.randn(4 * hidden),) * 2)
    tensors = (torch.randn(steps, batch, inputs), *weights, torch.zeros(batch, hidden), torch.zeros(batch, hidden))
    places = (False, [], 2, hidden, 1, True, False, False)
    return *(tensor.to(dtype) for tensor in tensors), *places


@blocked
@pytest.mark.parametrize("dtype", [FULL, HALF])
@pytest.mark.parametrize("sizes", LAYERS)
def test_what_an_lstm_layer_leaves(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    args = layer(sizes, dtype)
    with torch.enable_grad():
        workspace = aten.mkldnn_rnn_layer(*args, True)[3]
    assert workspace.numel() == rnn_workspace_bytes(args[0], sizes[3])


@blocked
@pytest.mark.parametrize("sizes", LAYERS)
def test_what_an_lstm_layer_holds(sizes: tuple[int, ...]) -> None:
    args = layer(sizes, FULL)
    agree(aten.mkldnn_rnn_layer.default, *args, True, grad=True, within=0)
    agree(aten.mkldnn_rnn_layer.default, *args, False, within=2048)
    with torch.enable_grad():
        output, hidden, cell, workspace = aten.mkldnn_rnn_layer(*args, True)
    states = (output, hidden, cell, torch.randn_like(output), None, None)
    rest = (False, 2, sizes[3], 1, True, True, False, [], False, workspace)
    agree(aten.mkldnn_rnn_layer_backward.default, *args[:7], *states, *rest, within=0)


IMAGES, ROWS = torch.randn(4, 64, 16, 16), torch.randn(2, 128, 256)
STATISTICS = (torch.zeros(64), torch.ones(64))
WHOLE = torch.arange(1024).view(4, 256)
QUERY, KEY = torch.randn(2, 4, 128, 64), torch.randn(2, 2, 128, 64)


def others() -> dict[str, tuple[Any, ...]]:
    images, half = IMAGES, IMAGES.to(HALF)
    batches = (STATISTICS[1], *STATISTICS, *STATISTICS, True, 1e-5, [True] * 3)
    groups = (torch.zeros(4, 8), torch.ones(4, 8), torch.ones(64), 4, 64, 256, 8, [True] * 3)
    rows = (
        ROWS,
        ROWS,
        [256],
        torch.zeros(2, 128, 1),
        torch.ones(2, 128, 1),
        torch.ones(256),
        torch.ones(256),
        [True] * 3,
    )
    permuted = torch.randn(4, 16, 64, 16).permute(0, 1, 3, 2)
    same = torch.ones(()).expand(4, 64, 8, 8)
    return {
        "batch norm": (aten.native_batch_norm.default, images, *STATISTICS * 2, True, 0.1, 1e-5),
        "batch norm, backward": (aten.native_batch_norm_backward.default, images, images, *batches),
        "group norm, backward": (aten.native_group_norm_backward.default, images, images, *groups),
        "layer norm": (aten.native_layer_norm.default, permuted, [64], None, None, 1e-5),
        "layer norm, backward": (aten.native_layer_norm_backward.default, *rows),
        "softmax": (aten._softmax.default, permuted, -1, False),
        "safe softmax": (aten._safe_softmax.default, images, -1),
        "dropout": (aten.native_dropout.default, images, 0.1, True),
        "mean in half precision": (aten.mean.dim, half, [2, 3], True),
        "sum in half precision": (aten.sum.dim_IntList, half, [0, 2, 3], True),
        "sum of neighbours": (aten.sum.dim_IntList, half, [2, 3], True),
        "sum into another type": (aten.sum.dim_IntList, images, [0]),
        "squared error": (aten.mse_loss.default, images, images),
        "squared error in half precision": (aten.mse_loss.default, half, half),
        "huber": (aten.huber_loss.default, half, half),
        "binary cross entropy": (aten.binary_cross_entropy_with_logits.default, images, images),
        "binary cross entropy in half precision": (aten.binary_cross_entropy_with_logits.default, half, half),
        "small image enlarged": (aten.upsample_nearest2d.default, images, [32, 32]),
        "large image enlarged": (aten.upsample_nearest2d.default, images, [80, 80]),
        "roll": (aten.roll.default, images, [1, 1], [2, 3]),
        "roll along one dimension": (aten.roll.default, images, [1], [2]),
        "logsumexp": (aten.logsumexp.default, ROWS, [2]),
        "sum of booleans": (aten.sum.default, ROWS > 0),
        "any of integers": (aten.any.default, WHOLE),
        "running sum of booleans": (aten.cumsum.default, ROWS > 0, 1),
        "sort": (aten.sort.default, ROWS, 1),
        "kthvalue": (aten.kthvalue.default, ROWS, 3, 1),
        "median": (aten.median.default, ROWS),
        "multinomial": (aten.multinomial.default, ROWS[0].abs(), 1),
        "masked_select": (aten.masked_select.default, ROWS, ROWS > 0),
        "masked_select, broadcast": (aten.masked_select.default, ROWS, ROWS[:1] > 0),
        "transposed copy": (aten.copy_.default, torch.empty(256, 128), ROWS[0].t()),
        "transposed copy of few": (aten.copy_.default, torch.empty(16, 8), torch.zeros(8, 16).t()),
        "unfold": (aten.im2col.default, images, [3, 3], [1, 1], [1, 1], [1, 1]),
        "soft margin, backward": (aten.soft_margin_loss_backward.default, torch.ones(()), ROWS, ROWS, 1),
        "binary cross entropy of probabilities": (aten.binary_cross_entropy.default, *(images.sigmoid(),) * 2),
        "choice of two types": (aten.where.self, images > 0, images, half),
        "power of integers": (aten.pow.Tensor_Scalar, WHOLE, 2.0),
        "quotient of integers": (aten.div.Tensor, WHOLE, WHOLE),
        "integers compared with a fraction": (aten.gt.Scalar, WHOLE, 0.5),
        "log sigmoid": (aten.log_sigmoid_forward.default, torch.randn(256, 128).t()),
        "binary cross entropy of columns": (aten.binary_cross_entropy_with_logits.default, *(ROWS[0].t(),) * 2),
        "pooled, backward": (aten.avg_pool2d_backward.default, same, images, [2, 2], [2, 2], [0, 0], False, True, None),
        "adaptive pooling, backward": (aten._adaptive_avg_pool2d_backward.default, same, images),
        "pooling": (aten.avg_pool2d.default, permuted, [2, 2]),
        "two types": (aten.mul.Tensor, half, images),
        "two types, in place": (aten.add_.Tensor, images.clone(), half),
        "one type": (aten.mul.Tensor, images, images),
        "choice": (aten.where.self, images > 0, images, images),
        "median of columns": (aten.median.dim, ROWS, 1),
        "transposed clone": (aten.clone.default, ROWS[0].t()),
        "unreduced": (aten.binary_cross_entropy_with_logits.default, images, images, None, None, 0),
        "attention": (aten._scaled_dot_product_flash_attention_for_cpu.default, QUERY, KEY, KEY, 0.0, True),
    }  # fmt: skip


@pytest.mark.parametrize("name", others())
def test_what_other_operators_hold(name: str) -> None:
    func, *args = others()[name]
    agree(func, *args, within=2048)


def of_a_part(*shape: int) -> torch.Tensor:
    """Return a tensor that is not contiguous, as the gradient of one of two concatenated tensors."""
    return torch.randn(shape[0], 2 * shape[1], *shape[2:])[:, shape[1] :]


def copying() -> dict[str, tuple[Any, ...]]:
    images, volumes, sounds = torch.randn(2, 8, 32, 32), torch.randn(2, 8, 16, 16, 16), torch.randn(2, 8, 32)
    image, volume, halves = of_a_part(2, 8, 16, 16), of_a_part(2, 8, 8, 8, 8), ([2, 2], [2, 2], [0, 0])
    _, places = aten.adaptive_max_pool2d(images, [16, 16])
    cubes = ([2] * 3, [2] * 3, [0] * 3)
    return {
        "pooling, backward": (aten.avg_pool2d_backward.default, image, images, *halves, False, True, None),
        "largest, backward": (aten.max_pool2d_with_indices_backward.default, image, images, *halves, [1, 1], False,
                              aten.max_pool2d_with_indices(images, [2, 2])[1]),
        "largest of adaptive, backward": (aten.adaptive_max_pool2d_backward.default, image, images, places),
        "adaptive, backward": (aten._adaptive_avg_pool2d_backward.default, image, images),
        "largest of adaptive": (aten.adaptive_max_pool2d.default, image, [4, 4]),
        "largest of volumes": (aten.max_pool3d_with_indices.default, volume, [2] * 3),
        "largest of volumes, backward": (aten.max_pool3d_with_indices_backward.default, volume, volumes, *cubes,
                                         [1] * 3, False, aten.max_pool3d_with_indices(volumes, [2] * 3)[1]),
        "pooled volumes": (aten.avg_pool3d.default, volume, [2] * 3),
        "pooled volumes, backward": (aten.avg_pool3d_backward.default, volume, volumes, *cubes, False, True, None),
        "adaptive of volumes, backward": (aten._adaptive_avg_pool3d_backward.default, volume, volumes),
        "nearest, backward": (aten.upsample_nearest2d_backward.default, image, [16, 16], [2, 8, 8, 8]),
        "bilinear, backward": (aten.upsample_bilinear2d_backward.default, image, [16, 16], [2, 8, 8, 8], False),
        "bicubic, backward": (aten.upsample_bicubic2d_backward.default, image, [16, 16], [2, 8, 8, 8], False),
        "nearest volume, backward": (aten.upsample_nearest3d_backward.default, volume, [8] * 3, [2, 8, 4, 4, 4]),
        "trilinear, backward": (aten.upsample_trilinear3d_backward.default, volume, [8] * 3, [2, 8, 4, 4, 4], False),
        "nearest sound, backward": (aten.upsample_nearest1d_backward.default, of_a_part(2, 8, 512), [512], [2, 8, 64]),
        "linear, backward": (aten.upsample_linear1d_backward.default, of_a_part(2, 8, 512), [512], [2, 8, 64], False),
        "reflection, backward": (aten.reflection_pad2d_backward.default, of_a_part(2, 8, 34, 34), images, [1] * 4),
        "replication, backward": (aten.replication_pad2d_backward.default, of_a_part(2, 8, 34, 34), images, [1] * 4),
        "reflected sound, backward": (aten.reflection_pad1d_backward.default, of_a_part(2, 8, 34), sounds, [1, 1]),
        "grid, backward": (aten.grid_sampler_2d_backward.default, image, images, torch.rand(2, 16, 16, 2), 0, 0, False,
                           [True, True]),
        "embedding, backward": (aten.embedding_dense_backward.default, of_a_part(4, 16, 32),
                                torch.arange(64).reshape(4, 16), 64, -1, False),
        "classes of pixels": (aten.nll_loss2d_forward.default, image, torch.zeros(2, 16, 16, dtype=torch.int64), None,
                              1, -100),
        "shuffled pixels": (aten.pixel_shuffle.default, image, 2),
        "unshuffled pixels": (aten.pixel_unshuffle.default, image, 2),
        "one pixel enlarged": (aten.upsample_bilinear2d.default, torch.randn(2, 8, 1, 1), [32, 32], False),
    }  # fmt: skip


@pytest.mark.parametrize("name", copying())
def test_operators_copy_what_is_not_contiguous(name: str) -> None:
    func, *args = copying()[name]
    agree(func, *args, within=512)


def test_what_attention_holds_backward() -> None:
    output, sums = aten._scaled_dot_product_flash_attention_for_cpu(QUERY, KEY, KEY, 0.0, True)
    func = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    agree(func, torch.randn_like(output), QUERY, KEY, KEY, output, sums, 0.0, True)


@pytest.mark.skipif(not vector_units().has_tiles, reason="measured on a processor with matrix tiles")
@pytest.mark.parametrize(("rows", "depth", "columns"), [(256, 256, 768), (256, 1024, 256), (256, 704, 256)])
def test_what_a_product_in_half_precision_holds(rows: int, depth: int, columns: int) -> None:
    agree(aten.mm.default, torch.randn(rows, depth, dtype=HALF), torch.randn(depth, columns, dtype=HALF), within=20_000)


@pytest.mark.skipif(vector_units().has_tiles, reason="measured on a processor without matrix tiles")
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "is_transposed"),
    [
        (240, 64, 192, False),
        (1000, 256, 40, False),
        (64, 3000, 128, False),
        (64, 64, 1, False),
        (33, 128, 13, True),
        (300, 1024, 256, True),
        (256, 1024, 3000, True),
    ],
)
def test_blocks_of_a_product_of_brain_floats(rows: int, depth: int, columns: int, is_transposed: bool) -> None:
    left = torch.randn(depth, rows, dtype=HALF).t() if is_transposed else torch.randn(rows, depth, dtype=torch.bfloat16)
    agree(aten.mm.default, left, torch.randn(depth, columns, dtype=HALF), within=0)


@pytest.mark.parametrize("length", [60, 200])
def test_what_attention_holds_of_brain_floats(length: int) -> None:
    query = torch.randn(4, 4, length, 16, dtype=HALF)
    func = aten._scaled_dot_product_flash_attention_for_cpu.default
    agree(func, query, query, query)
    output, sums = func(query, query, query)
    func = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    agree(func, torch.randn_like(output), query, query, query, output, sums, 0.0, False)


@pytest.mark.skipif(not vector_units().has_tiles, reason="measured on a processor with matrix tiles")
def test_a_convolution_in_half_precision_copies_its_result_twice() -> None:
    given, weight, _, *sizes = CONVOLUTIONS["3 × 3"]
    agree(aten.convolution.default, given.to(HALF), weight.to(HALF), None, *sizes)


@pytest.mark.parametrize("length", [16, 60])
@pytest.mark.parametrize("need_weights", [True, False])
def test_what_fused_attention_holds(length: int, need_weights: bool) -> None:
    width, heads = 32, 4
    given = torch.randn(2, length, width)
    weights = (torch.randn(3 * width, width), torch.randn(3 * width), torch.randn(width, width), torch.randn(width))
    func = aten._native_multi_head_attention.default
    agree(func, given, given, given, width, heads, *weights, None, need_weights, within=64)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(("length", "inner"), [(16, 64), (60, 64), (16, 512)])
def test_what_a_fused_encoder_layer_holds(length: int, inner: int, norm_first: bool) -> None:
    width, heads = 32, 4
    weights = (torch.randn(3 * width, width), torch.randn(3 * width), torch.randn(width, width), torch.randn(width))
    norms = (torch.ones(width), torch.zeros(width)) * 2
    feed_forward = (torch.randn(inner, width), torch.randn(inner), torch.randn(width, inner), torch.randn(width))
    func = aten._transformer_encoder_layer_fwd.default
    places = (False, norm_first, 1e-5)
    agree(func, torch.randn(2, length, width), width, heads, *weights, *places, *norms, *feed_forward)


def test_operators_that_hold_nothing() -> None:
    views: list[Callable[..., Any]] = [aten.t.default, aten.detach.default, aten.relu.default]
    for func in views:
        (leaf,) = tree_leaves(func(ROWS[0]))
        assert hidden_bytes(func, (ROWS[0],), {}, leaf) == 0
