"""What CUDA composes otherwise than the CPU, and what a person's code for CUDA gets without a card."""

from collections.abc import Callable

import pytest
import torch
from cuda_runs import Log, on_cuda, on_this_build
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.optim import optimizer
from torch.utils.checkpoint import checkpoint

from planner.trace.worker.cuda.operators import CudaOperators

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


def empty(device: str, dtype: torch.dtype = HALF, *shape: int) -> Tensor:
    return torch.empty(shape or (2, 4, 8), dtype=dtype, device=device)


COMPOSED: list[Callable[[str], Tensor]] = [
    lambda device: empty(device).softmax(-1, dtype=SINGLE),
    lambda device: empty(device, BRAIN).softmax(-1, dtype=SINGLE),
    lambda device: functional.log_softmax(empty(device), -1, dtype=SINGLE),
    lambda device: torch.softmax(empty(device), -1),
    lambda device: functional.dropout(empty(device, BRAIN), 0.1),
    lambda device: functional.dropout(empty(device), 0.1, inplace=True),
    lambda device: functional.dropout(empty(device), 1.0),
    lambda device: functional.dropout(empty(device), 0.0),
    lambda device: functional.dropout2d(empty(device, BRAIN, 2, 3, 4, 4), 0.1),
    lambda device: functional.layer_norm(empty(device, BRAIN), (8,), empty(device, BRAIN, 8), empty(device, BRAIN, 8)),
    lambda device: functional.cross_entropy(empty(device, HALF, 8, 8), torch.zeros(8, device=device, dtype=torch.long)),
    lambda device: torch.lstm_cell(
        empty(device, SINGLE, 2, 8),
        (empty(device, SINGLE, 2, 4), empty(device, SINGLE, 2, 4)),
        empty(device, SINGLE, 16, 8),
        empty(device, SINGLE, 16, 4),
        empty(device, SINGLE, 16),
        empty(device, SINGLE, 16),
    )[0],
]


@pytest.mark.parametrize("work", COMPOSED)
def test_operators_are_composed_as_this_build_composes_them_for_cuda(work: Callable[[str], Tensor]) -> None:
    theirs = on_this_build(work, "cuda")
    with on_cuda() as ours, torch.no_grad():
        work("cuda")
    assert ours.made == theirs.made


def test_dropout_keeps_one_byte_for_each_element() -> None:
    with on_cuda() as log:
        functional.dropout(torch.randn(4, 8, requires_grad=True, device="cuda"), 0.1).sum().backward()
    assert log.tensors("native_dropout.default") == (((4, 8), SINGLE), ((4, 8), torch.bool))
    assert "native_dropout_backward.default" in log.names


def test_the_root_mean_square_norm_is_one_kernel_that_keeps_one_value_for_each_row() -> None:
    if not torch._C._dispatch_has_kernel("aten::_fused_rms_norm"):
        pytest.skip("this version of PyTorch composes the norm on CUDA too")
    with on_cuda() as log:
        norm = nn.RMSNorm(8, dtype=BRAIN, device="cuda")
        norm(torch.randn(2, 4, 8, dtype=BRAIN, device="cuda", requires_grad=True)).sum().backward()
    assert log.tensors("_fused_rms_norm.default") == (((2, 4, 8), BRAIN), ((2, 4, 1), SINGLE))
    assert log.tensors("_fused_rms_norm_backward.default") == (((2, 4, 8), BRAIN), ((8,), BRAIN))


class Written(nn.Module):
    """A module as people write them for CUDA."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8, device="cuda" if torch.cuda.is_available() else "cpu")

    def forward(self, tensor: Tensor) -> Tensor:
        assert tensor.is_cuda
        shift = torch.ones(8, device="cuda:0") * torch.tensor([2.0], device="cuda").pin_memory()
        return self.linear(tensor.to("cuda", non_blocking=True)) + shift.to(torch.device("cuda"))


def test_code_for_cuda_runs_without_a_card() -> None:
    with on_cuda((9, 0)):
        module = Written().cuda().to("cuda").to(device="cuda:0")
        result = module(torch.randn(2, 8).cuda())
        result.sum().backward()
        assert result.cpu().shape == (2, 8)


def test_moving_a_module_to_the_card_copies_nothing() -> None:
    with on_cuda() as log:
        module = nn.Linear(8, 8)
        log.made.clear()
        module.cuda().to("cuda")
        torch.randn(4).cuda().to(0).to(device=0).to("cuda", torch.float32)
        module.to(0).to(device=0)
    assert log.names == ["randn.default"]


def test_a_module_may_be_sent_elsewhere_too() -> None:
    with CudaOperators(None, lambda _: None, lambda _: None):
        assert nn.Linear(8, 8).to(torch.float16).weight.dtype == HALF
        assert nn.Linear(8, 8).to("cuda", BRAIN).weight.dtype == BRAIN
        moved = nn.Conv2d(4, 4, 3).to(device="cuda", memory_format=torch.channels_last)
        assert moved.weight.is_contiguous(memory_format=torch.channels_last)


def test_what_a_checkpoint_runs_again_may_ask_for_the_card() -> None:
    with on_cuda() as log:
        module = Written()
        tensor = torch.randn(2, 8, device="cuda", requires_grad=True)
        checkpoint(module, tensor, use_reentrant=False).sum().backward()
    assert log.names.count("ones.default") == 2


def test_optimizers_take_all_tensors_at_once() -> None:
    with on_cuda() as log:
        module = nn.Linear(8, 8).cuda()
        module(torch.randn(2, 8, device="cuda")).sum().backward()
        torch.optim.AdamW(module.parameters()).step()
    assert "_foreach_mul_.Scalar" in log.names


def test_everything_is_put_back() -> None:
    kept = (torch.cuda.is_available, nn.Module.cuda, nn.Module.to, optimizer._foreach_supported_types)
    with FakeTensorMode():
        with CudaOperators(None, lambda _: None, lambda _: None):
            pass
        with Log() as log:
            functional.dropout(torch.randn(4), 0.1)
    assert "native_dropout.default" not in log.names
    assert kept == (
        torch.cuda.is_available,
        nn.Module.cuda,
        nn.Module.to,
        optimizer._foreach_supported_types,
    )


def attend() -> None:
    functional.scaled_dot_product_attention(*(torch.randn(1, 2, 8, 16, dtype=HALF) for _ in range(3)))


def test_the_chosen_attention_is_told() -> None:
    sentences: list[str] = []
    with on_cuda((8, 6), sentences=sentences):
        attend()
    (sentence,) = sentences
    assert sentence.endswith("runs as flash attention on a GPU of compute capability 8.6.")


def test_an_assumed_card_is_told() -> None:
    sentences: list[str] = []
    with on_cuda(None, sentences=sentences):
        attend()
    assert sentences[0].endswith("compute capability 8.0 (assumed).")
