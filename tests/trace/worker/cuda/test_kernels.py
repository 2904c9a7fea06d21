"""What CUDA's kernels hold while they run, worked out by hand, and what is only bounded."""

import pytest
import torch
from cuda_runs import Log, on_cuda
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention

from planner.trace.recording import TraceDifference

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


def attention(
    capability: tuple[int, int],
    dtype: torch.dtype,
    head: int = 64,
    keys: int = 4,
    queries: int = 200,
    notes: list[TraceDifference] | None = None,
) -> Log:
    with on_cuda(capability, notes) as log:
        # Heads lie as a linear layer leaves them: beside each other for each token.
        query = torch.randn(2, queries, 4, head, dtype=dtype, requires_grad=True).transpose(1, 2)
        key = torch.randn(2, queries, keys, head, dtype=dtype, requires_grad=True).transpose(1, 2)
        result = scaled_dot_product_attention(query, key, key, enable_gqa=keys != 4)
        result.transpose(1, 2).backward(torch.randn(2, queries, 4, head, dtype=dtype))
    return log


@pytest.mark.parametrize(
    ("head", "keys", "held"),
    [
        (64, 4, 2 * 4 * (256 + 256 * 64) * 4),
        (72, 4, 2 * 4 * (256 + 256 * 96) * 4),
        (136, 4, 2 * 4 * (256 + 256 * 192) * 4),
        (64, 2, 2 * 4 * (256 + 256 * 64) * 4 + 2 * 2 * 4 * 200 * 64 * 2),
    ],
)
def test_flash_attention_sums_the_gradients_of_queries_in_fp32(head: int, keys: int, held: int) -> None:
    log = attention((8, 0), BRAIN, head, keys)
    assert log.hidden["_scaled_dot_product_flash_attention_backward.default"] == held


@pytest.mark.parametrize(
    ("capability", "dtype", "head", "held"),
    [
        # Four by one tiles of 64 × 64, and the products of gradient and output.
        ((8, 0), SINGLE, 64, 8 * 4 * (64 * 64 + 4) * 4 + 2 * 4 * 200 * 64 * 4),
        # On Volta's successors, half precision needs only one sum for each row.
        ((7, 5), HALF, 64, 8 * 4 * (64 * 64 + 4) * 4 + 2 * 4 * 200 * 4),
        ((7, 5), HALF, 96, 8 * 2 * (128 * 128 + 4) * 4 + 2 * 4 * 200 * 4),
        # Wide heads: four by three tiles, four splits of the keys, and sums of the gradients of keys and values.
        ((7, 5), HALF, 192, 8 * (12 * (64 * 64 + 4) + 4 * 64 * 2 * 192) * 4 + 2 * 4 * 200 * 4),
        ((7, 0), HALF, 192, 8 * (12 * (64 * 64 + 4) + 4 * 64 * 2 * 192) * 4 + 3 * 2 * 4 * 200 * 192 * 4),
    ],
)
def test_the_memory_efficient_kernel_works_on_tiles(
    capability: tuple[int, int], dtype: torch.dtype, head: int, held: int
) -> None:
    log = attention(capability, dtype, head)
    assert log.hidden["_scaled_dot_product_efficient_attention_backward.default"] == held


def test_wide_heads_are_summed_outside_the_memory_efficient_kernel() -> None:
    assert (
        attention((7, 5), HALF, 192).hidden["_scaled_dot_product_efficient_attention.default"] == 2 * 4 * 200 * 192 * 4
    )
    assert attention((7, 5), HALF, 64).hidden["_scaled_dot_product_efficient_attention.default"] == 0


def hidden(work: object) -> dict[str, int]:
    with on_cuda() as log:
        work()  # type: ignore[operator]
    return log.hidden


def test_the_softmax_of_the_backward_pass_multiplies_first() -> None:
    held = hidden(lambda: torch.randn(4, 8, requires_grad=True).softmax(-1).backward(torch.randn(4, 8)))
    assert held["_softmax_backward_data.default"] == 4 * 8 * 4


def test_masked_rows_are_looked_for() -> None:
    held = hidden(lambda: torch.ops.aten._safe_softmax(torch.randn(4, 8), -1))
    assert held["_safe_softmax.default"] == 4 * 8 * 4 + 4 * 8 + 4


def embedded(tokens: int, by_frequency: bool = False) -> int:
    def work() -> None:
        table = nn.Embedding(1000, 16, scale_grad_by_freq=by_frequency, dtype=BRAIN)
        table(torch.zeros(tokens, dtype=torch.long)).backward(torch.randn(tokens, 16, dtype=BRAIN))

    return hidden(work)["embedding_dense_backward.default"]


def test_many_indices_of_an_embedding_are_sorted_and_summed_in_parts() -> None:
    parts = 4000 // 10 + 1000
    assert embedded(3072) == 0
    assert embedded(4000) == (2 * 4000 + 3 * 1000 + parts) * 8 + parts * 16 * 4
    assert embedded(10, by_frequency=True) == (3 * 10 + 3 * 10 + 11) * 8 + 11 * 16 * 4


def test_adding_by_index_sorts_the_indices() -> None:
    def add() -> None:
        rows = torch.zeros(6, dtype=torch.long)
        torch.randn(10, 4, requires_grad=True)[rows].backward(torch.randn(6, 4))

    held = hidden(add)
    (name,) = (name for name in held if "index_put" in name)
    assert held[name] == 6 * 6 * 8
    held = hidden(lambda: torch.zeros(10).index_put_((torch.zeros(3, dtype=torch.long),), torch.ones(3)))
    assert held["index_put_.default"] == 0


def test_matrices_that_cublas_cannot_take_are_copied() -> None:
    def multiply() -> None:
        weight = torch.randn(8, 4, requires_grad=True)
        (torch.randn(16, 8) @ weight).sum().backward()

    # The gradient of a sum is one number in the place of all.
    assert hidden(multiply)["mm.default"] == 16 * 4 * 4
    assert hidden(lambda: torch.mm(torch.randn(8, 4), torch.randn(16, 4).t()))["mm.default"] == 0
    assert hidden(lambda: torch.addmm(torch.randn(4), torch.randn(8, 4), torch.randn(4, 4)))["addmm.default"] == 0

    def multiply_spread() -> None:
        spread = torch.randn(2, 8, 8)[:, ::2, ::2]
        torch.bmm(spread, spread)

    assert hidden(multiply_spread)["bmm.default"] == 2 * 2 * 4 * 4 * 4


def test_a_sparse_matrix_is_multiplied_by_its_rows() -> None:
    with on_cuda((8, 0), None) as log:
        sparse = torch.sparse_coo_tensor(
            torch.zeros(2, 30, dtype=torch.int64), torch.ones(30), (20, 10), check_invariants=False
        )
        torch.mm(sparse, torch.ones(10, 5))
    assert log.hidden["mm.default"] == 4 * (20 + 1 + 30) + 4 * 20 * 5


def test_norms_take_rows_that_lie_together() -> None:
    def norm(tensor: Tensor) -> None:
        functional.layer_norm(tensor, (8,))

    assert hidden(lambda: norm(torch.randn(4, 8)))["native_layer_norm.default"] == 0
    assert hidden(lambda: norm(torch.randn(8, 4).t()))["native_layer_norm.default"] == 4 * 8 * 4


def test_group_norm_has_a_scale_and_a_shift_for_each_channel() -> None:
    held = hidden(lambda: nn.GroupNorm(2, 6)(torch.randn(3, 6, 4, 4, requires_grad=True)).sum().backward())
    assert held["native_group_norm.default"] == 2 * 3 * 6 * 4
    assert held["native_group_norm_backward.default"] == (3 * 3 * 6 + 2 * 3 * 2) * 4


@pytest.mark.parametrize(
    ("loss", "name", "times"),
    [
        (functional.mse_loss, "mse_loss.default", 1),
        (functional.smooth_l1_loss, "smooth_l1_loss.default", 1),
        (functional.huber_loss, "huber_loss.default", 1),
        (functional.binary_cross_entropy, "binary_cross_entropy.default", 1),
        (functional.binary_cross_entropy_with_logits, "binary_cross_entropy_with_logits.default", 2),
    ],
)
def test_losses_are_there_for_each_element_before_they_are_one(loss: object, name: str, times: int) -> None:
    held = hidden(lambda: loss(torch.rand(4, 8), torch.rand(4, 8)))  # type: ignore[operator]
    assert held[name] == times * 4 * 8 * 4
    kept = hidden(lambda: loss(torch.rand(4, 8), torch.rand(4, 8), reduction="none"))  # type: ignore[operator]
    assert kept[name] == (times - 1) * 4 * 8 * 4


def test_sums_of_exponentials_and_rolls_make_a_second_tensor() -> None:
    assert hidden(lambda: torch.randn(4, 8).logsumexp(-1))["logsumexp.default"] == 4 * 8 * 4
    assert hidden(lambda: torch.randn(4, 8).roll((1, 1), (0, 1)))["roll.default"] == 4 * 8 * 4
    assert hidden(lambda: torch.randn(4, 8).roll(1, 0))["roll.default"] == 0


def test_convolutions_copy_what_is_laid_out_otherwise() -> None:
    def run(last: bool) -> dict[str, int]:
        def work() -> None:
            image = torch.randn(2, 3, 8, 8)
            layer = nn.Conv2d(3, 4, 3)
            layer(image.contiguous(memory_format=torch.channels_last) if last else image).sum().backward()

        return hidden(work)

    # The gradient of the sum is one number in the place of 2 × 4 × 6 × 6.
    assert run(last=False) == run(last=False) | {"convolution.default": 0, "convolution_backward.default": 288 * 4}
    assert run(last=True)["convolution.default"] == 4 * 3 * 3 * 3 * 4


def noted(work: object, capability: tuple[int, int] = (8, 0)) -> dict[str, TraceDifference]:
    notes: list[TraceDifference] = []
    with on_cuda(capability, notes):
        work()  # type: ignore[operator]
    return {note.name: note for note in notes}


def test_what_cudnn_takes_for_a_convolution_is_bounded() -> None:
    def work() -> None:
        nn.Conv2d(3, 4, 3, padding=1)(torch.randn(2, 3, 8, 8))
        nn.Conv2d(3, 4, 1)(torch.randn(1, 3, 8, 8))

    note = noted(work)["cuDNN's workspace for convolutions"]
    assert (note.bytes, note.low_bytes) == (0, 0)
    # The larger of the two: input 2 × 3 × 64, weight 4 × 27, output 2 × 4 × 64.
    assert note.high_bytes == (384 + 108 + 512) * 4
    turned = noted(lambda: nn.ConvTranspose2d(3, 4, 2, stride=2)(torch.randn(1, 3, 8, 8)))
    assert turned["cuDNN's workspace for convolutions"].high_bytes == (192 + 48 + 1024) * 4


def test_few_queries_may_be_split_over_many_blocks() -> None:
    def decode(keys: int, batch: int = 1, dropout: float = 0.0) -> dict[str, TraceDifference]:
        def work() -> None:
            key = torch.randn(batch, 8, keys, 64, dtype=HALF)
            scaled_dot_product_attention(torch.randn(batch, 8, 1, 64, dtype=HALF), key, key, dropout_p=dropout)

        return noted(work)

    name = "partial sums of flash attention"
    assert decode(1024)[name].high_bytes == 4 * 8 * (64 + 1) * 4
    assert name not in decode(256)
    assert name not in decode(1024, batch=64)
    assert name not in decode(1024, dropout=0.1)


def test_what_cudnn_takes_for_attention_is_bounded_by_flash() -> None:
    notes: list[TraceDifference] = []
    attention((9, 0), BRAIN, notes=notes)
    (note,) = (note for note in notes if note.high_bytes)
    assert note.name == "cuDNN's workspace for attention"
    assert note.high_bytes == 2 * 4 * (256 + 256 * 64) * 4


def test_sums_over_very_many_rows_may_be_in_parts() -> None:
    def work(rows: int) -> dict[str, TraceDifference]:
        return noted(lambda: nn.LayerNorm(64)(torch.randn(rows, 64)).sum().backward())

    assert not work(64 * 1024)
    assert work(128 * 1024)["partial sums of a norm's gradients"].high_bytes == 2 * 4096 * 64 * 4
