"""What PyTorch does otherwise for fake tensors than for plain ones: traced as if they were plain."""

import copy
from collections.abc import Callable

import pytest
import torch
from levels import hidden_state, real_levels, traced_levels
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

LOSSES = (
    functional.mse_loss,
    functional.smooth_l1_loss,
    functional.huber_loss,
    functional.binary_cross_entropy,
    functional.soft_margin_loss,
)


def values() -> dict[str, Callable[[torch.Tensor], object]]:
    """Return operators whose derivatives read values, or add to what they made."""
    bound = torch.ones(64, 256)
    return {
        "product": lambda state: state.prod(),
        "product of rows": lambda state: state.prod(1),
        "product of columns, which stay": lambda state: torch.prod(state, dim=0, keepdim=True),
        "running product": lambda state: state.cumprod(0),
        "largest": lambda state: state.max(),
        "least": lambda state: torch.min(state),
        "larger": lambda state: torch.max(state, bound),
        "median": lambda state: state.median(),
        "variance and mean": lambda state: sum(torch.var_mean(state, 1)),
        "bounded": lambda state: state.clamp(-bound, bound),
        "triangle": lambda state: torch.linalg.cholesky(state[:, :64] @ state[:, :64].mT + 9 * torch.eye(64)),
        "singular values": lambda state: torch.linalg.svdvals(state.view(4, 16, 256)),
        "eigenvalues": lambda state: torch.linalg.eigvalsh(state[:, :64]),
        "eigenvalues of any matrix": lambda state: torch.linalg.eigvals(state[:, :64]).abs(),
        "pooled": lambda state: torch.max_pool1d(state.view(4, 16, 256), 2),
        "checkpointed": lambda state: checkpoint(lambda each: each.sigmoid().tanh(), state, use_reentrant=False),
    }


@pytest.mark.parametrize("name", values())
def test_derivatives_that_read_values_run_as_on_real_tensors(name: str) -> None:
    def work() -> None:
        values()[name](hidden_state()).sum().backward()  # type: ignore[attr-defined]  # all are tensors

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=2048)


@pytest.mark.parametrize("name", ["product", "running product", "largest"])
def test_derivatives_of_transformed_functions_read_no_values(name: str) -> None:
    def work() -> None:
        torch.func.grad(lambda state: values()[name](state).sum())(torch.randn(64, 256))  # type: ignore[attr-defined]

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=2048)


@pytest.mark.parametrize("name", ["singular values", "eigenvalues"])
def test_vectors_are_computed_only_for_gradients(name: str) -> None:
    def work() -> None:
        values()[name](torch.randn(64, 256))

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=16_384)


@pytest.mark.parametrize("sizes", [(2,), (3, 2, 1), (3, 2, 1, 2, True), ([4], None, [1], [1], True)])
def test_sequences_are_pooled_without_positions(sizes: tuple[object, ...]) -> None:
    def work() -> None:
        shapes.append(torch.max_pool1d(torch.randn(2, 8, 251), *sizes).shape)  # type: ignore[arg-type]

    shapes: list[torch.Size] = []
    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)
    assert shapes[0] == shapes[1]


def test_lengths_of_sequences_may_be_lists() -> None:
    def work() -> None:
        scores = torch.randn(64, 4, 32, requires_grad=True).log_softmax(2)
        functional.ctc_loss(scores, torch.ones(4, 8, dtype=torch.int64), (64,) * 4, (8,) * 4).backward()

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=2048)


def test_a_bias_is_added_in_place_where_rows_are_apart() -> None:
    def work() -> None:
        with torch.no_grad():
            nn.Linear(32, 512)(torch.randn(4, 8, 32).transpose(0, 1))

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


@pytest.mark.parametrize("convert", [lambda m: m.half(), lambda m: m.to(memory_format=torch.channels_last)])
def test_modules_are_converted_in_place(convert: Callable[[nn.Module], nn.Module]) -> None:
    def work() -> nn.Module:
        return convert(nn.Sequential(nn.Conv2d(16, 32, 3), nn.Conv2d(32, 64, 3)))

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


def test_a_copied_module_belongs_to_the_same_run() -> None:
    def work() -> None:
        layer = nn.Linear(64, 64)
        copied = copy.deepcopy(layer)
        copied(torch.randn(8, 64)).sum().backward()
        assert copied.weight.grad is not None
        assert layer.weight.grad is None

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_loss_keeps_what_it_was_computed_in(loss: Callable[..., torch.Tensor], reduction: str) -> None:
    def work() -> torch.Tensor:
        return loss(torch.randn(64, 64).sigmoid(), torch.randn(64, 64).sigmoid(), reduction=reduction)

    real, traced = real_levels(work), traced_levels(work)
    assert max(traced) == pytest.approx(max(real), abs=64)


def packed_sequences() -> None:
    lengths = torch.tensor([30, 7, 50, 12, 7])
    network, head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 5)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 50, 32), lengths, True, enforce_sorted=False)
    padded, found = nn.utils.rnn.pad_packed_sequence(network(packed)[0], batch_first=True)
    assert found.tolist() == lengths.tolist()
    head(padded).sum().backward()


def temporal_classification() -> None:
    head = nn.Linear(32, 30)
    scores = head(torch.randn(40, 6, 32)).log_softmax(-1)
    targets, lengths = torch.arange(1, 61).view(6, 10) % 29 + 1, torch.tensor([3, 10, 7, 9, 4, 8])
    functional.ctc_loss(scores, targets, torch.full((6,), 40), lengths).backward()


def masked_language_model() -> None:
    mask = torch.arange(256).view(4, 64) % 7 == 0
    embedding, head = nn.Embedding(50, 32), nn.Linear(32, 50)
    tokens = torch.arange(256).view(4, 64) % 50
    functional.cross_entropy(head(embedding(tokens.masked_fill(mask, 3)[mask])), tokens[mask]).backward()


def matched_anchors() -> None:
    """A detector's targets: anchors are matched to boxes by their overlap, and some of the others are drawn."""
    corners = torch.cartesian_prod(torch.arange(20), torch.arange(20)).repeat(1, 2) * 16.0
    anchors = corners + torch.tensor([-24.0, -24.0, 24.0, 24.0])
    boxes = torch.tensor([[10.0, 10, 100, 120], [50, 60, 200, 220]])
    sizes = (torch.min(boxes[:, None, 2:], anchors[:, 2:]) - torch.max(boxes[:, None, :2], anchors[:, :2])).clamp(min=0)
    overlap, matched = sizes.prod(-1).max(0)
    positive, negative = torch.where(overlap > 1000)[0], torch.where(overlap <= 1000)[0]
    chosen = torch.cat([positive, negative[torch.randperm(len(negative))[: len(positive)]]])
    with torch.no_grad():
        functional.smooth_l1_loss(torch.randn(400, 4)[positive], boxes[matched[positive]])
        torch.randn(400, 256)[chosen].pow(2).sum()


@pytest.mark.parametrize("work", [packed_sequences, temporal_classification, masked_language_model, matched_anchors])
def test_known_lengths_and_masks_select_exactly(work: Callable[[], None]) -> None:
    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_fused_encoder_layer_is_converted_within(norm_first: bool) -> None:
    def work() -> None:
        layer = nn.TransformerEncoderLayer(64, 4, 512, batch_first=True, norm_first=norm_first).eval()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            layer(torch.randn(4, 60, 64))

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


def test_a_tensor_is_split_where_another_one_says() -> None:
    def work() -> None:
        first, *_ = torch.tensor_split(torch.randn(512, 64, requires_grad=True), torch.tensor([128, 384]))
        assert torch.allclose(first, first)
        assert len(torch.tensor_split(first * 2, torch.tensor(3))) == 3

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


@pytest.mark.parametrize("kernel", [2, 5])
def test_unfolded_images_are_resized_from_the_inputs_size(kernel: int) -> None:
    def work() -> torch.Tensor:
        blocks = functional.unfold(torch.randn(2, 8, 16, 16), kernel, stride=3)
        return functional.fold(blocks, (16, 16), kernel, stride=3)

    assert max(traced_levels(work)) == max(real_levels(work))
