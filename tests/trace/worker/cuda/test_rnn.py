"""Recurrent networks as cuDNN runs them."""

import pytest
import torch
from cuda_runs import on_cuda
from torch import nn

from planner.trace.recording import TraceDifference
from planner.trace.worker.cuda.rnn import RnnCall, reserve_bounds_bytes, reserve_bytes, workspace_bytes

HALF, SINGLE = torch.float16, torch.float32
LSTM, GRU, TANH = 2, 3, 1


def weights(gates: int, inputs: int, width: int, layers: int) -> list[torch.Tensor]:
    shapes = []
    for layer in range(layers):
        shapes += [(gates * width, width if layer else inputs), (gates * width, width)]
        shapes += [(gates * width,), (gates * width,)]
    return [torch.empty(shape, device="meta") for shape in shapes]


def measured(mode: int, gates: int, batch: int = 100) -> RnnCall:
    """The network of pytorch/pytorch#2895: 123 inputs, four layers of 320 units, 25,000 steps over the batch."""
    return RnnCall(mode, weights(gates, 123, 320, 4), batch, 25_000, 320, 4, 1, True)


@pytest.mark.parametrize(("mode", "gates", "parameters"), [(LSTM, 4, 3_038_090), (GRU, 3, 2_279_370)])
def test_the_measured_network_is_the_one_that_was_measured(mode: int, gates: int, parameters: int) -> None:
    classifier = 320 * 10 + 10
    assert sum(weight.numel() for weight in measured(mode, gates).weights) + classifier == parameters


@pytest.mark.parametrize(("mode", "gates", "reserve"), [(LSTM, 4, 736_000_000), (GRU, 3, 864_000_000)])
def test_the_reserve_is_what_was_measured(mode: int, gates: int, reserve: int) -> None:
    call = measured(mode, gates)
    assert reserve_bytes(call) == reserve
    low, high = reserve_bounds_bytes(call)
    assert low < reserve < high


@pytest.mark.parametrize(("mode", "gates", "workspace"), [(LSTM, 4, 17_730_560), (GRU, 3, 13_169_920)])
def test_the_workspace_is_what_was_measured(mode: int, gates: int, workspace: int) -> None:
    assert workspace_bytes(measured(mode, gates)) == workspace
    assert workspace_bytes(measured(mode, gates, batch=50), times=2) == workspace


def test_nothing_is_kept_where_nothing_is_trained() -> None:
    call = measured(LSTM, 4)._replace(saves_for_backward=False)
    assert reserve_bytes(call) == 0
    assert reserve_bounds_bytes(call) == (0, 0)


@pytest.mark.parametrize(
    ("make", "output", "reserve"),
    [
        (lambda: nn.LSTM(8, 16), (5, 3, 16), 15 * 16 * 5 * 4),
        (lambda: nn.LSTM(8, 16, 2, bidirectional=True), (5, 3, 32), 15 * 16 * 2 * 11 * 4),
        (lambda: nn.LSTM(8, 16, proj_size=4), (5, 3, 4), 15 * 16 * 5 * 4),
        (lambda: nn.LSTM(8, 16, batch_first=True, bias=False), (5, 3, 16), 15 * 16 * 5 * 4),
        (lambda: nn.GRU(8, 16, 3, dropout=0.1), (5, 3, 16), 15 * 16 * 20 * 4),
        (lambda: nn.RNN(8, 16), (5, 3, 16), 15 * 16 * 4),
        (lambda: nn.RNN(8, 16, nonlinearity="relu"), (5, 3, 16), 15 * 16 * 4),
    ],
)
def test_a_network_is_one_operator_with_its_reserve(make: object, output: tuple[int, ...], reserve: int) -> None:
    with on_cuda() as log:
        network = make()  # type: ignore[operator]
        result = network(torch.randn(5, 3, 8, requires_grad=True))[0]
        result.sum().backward()
        assert all(parameter.grad is not None for parameter in network.parameters())
        assert all(parameter.grad.shape == parameter.shape for parameter in network.parameters())
    assert result.shape == output
    assert (reserve,) in [shape for shape, dtype in log.tensors("_cudnn_rnn.default") if dtype == torch.uint8]
    assert log.names.count("_cudnn_rnn_backward.default") == 1


def test_all_gradients_of_weights_are_in_one_buffer() -> None:
    with on_cuda():
        network = nn.LSTM(8, 16)
        network(torch.randn(5, 3, 8))[0].sum().backward()
        stores = {parameter.grad.untyped_storage()._cdata for parameter in network.parameters()}
    assert len(stores) == 1


def test_in_evaluation_nothing_is_kept() -> None:
    with on_cuda() as log, torch.no_grad():
        nn.LSTM(8, 16).eval()(torch.randn(5, 3, 8))
    assert ((0,), torch.uint8) in log.tensors("_cudnn_rnn.default")


def test_autocast_copies_all_weights_at_each_call() -> None:
    with on_cuda() as log:
        network = nn.LSTM(8, 16)
        with torch.autocast("cuda"):
            for _ in range(2):
                result = network(torch.randn(5, 3, 8))[0]
        result.sum().backward()
        assert network.weight_ih_l0.grad is not None
        assert network.weight_ih_l0.grad.dtype == SINGLE
    assert result.dtype == HALF
    assert log.made.count(next(made for made in log.made if made.tensors == (((64, 8), HALF),))) == 2


def test_a_packed_sequence_counts_its_steps() -> None:
    with on_cuda() as log:
        network = nn.LSTM(8, 16)
        state = (torch.zeros(1, 3, 16), torch.zeros(1, 3, 16))
        data, sizes = torch.randn(7, 8), [3, 2, 2]
        settings = (2, 16, 0, 1, False, 0.0, True, False, sizes, None)
        flat = network._flat_weights
        torch.ops.aten._cudnn_rnn(data, flat, 4, None, *state, *settings)
    assert ((7 * 16 * 5 * 4,), torch.uint8) in log.tensors("_cudnn_rnn.default")


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell])
@pytest.mark.parametrize("bias", [True, False])
def test_cells_are_fused(cell: type[nn.Module], bias: bool) -> None:
    with on_cuda() as log:
        module = cell(8, 16, bias=bias)
        result = module(torch.randn(3, 8))
        (result[0] if cell is nn.LSTMCell else result).sum().backward()
        assert all(parameter.grad is not None for parameter in module.parameters())
    kept = {nn.LSTMCell: ("_thnn_fused_lstm_cell.default", 64), nn.GRUCell: ("_thnn_fused_gru_cell.default", 80)}
    operator, width = kept[cell]
    assert log.tensors(operator)[-1] == ((3, width), SINGLE)


def test_what_is_assumed_is_told_with_its_bounds() -> None:
    notes: list[TraceDifference] = []
    with on_cuda(notes=notes):
        first, second = nn.LSTM(8, 16), nn.LSTM(16, 16)
        for _ in range(2):
            second(first(torch.randn(5, 3, 8))[0])
    told = {note.name: note for note in notes}
    reserve = told["cuDNN's reserve of recurrent networks"]
    assert reserve.bytes == 2 * 15 * 16 * 5 * 4
    assert reserve.low_bytes < reserve.bytes < reserve.high_bytes
    workspace = told["cuDNN's workspace for recurrent networks"]
    assert workspace.bytes == (2 * 64 * 16 + 11 * 3 * 16) * 4
    assert workspace.low_bytes == 0
