"""Autocast with CUDA's lists of operators, on the CPU's fake tensors."""

import pytest
import torch
from cuda_runs import on_cuda
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from planner.trace.worker.cuda import autocast as cuda_autocast
from planner.trace.worker.cuda.operators import CudaOperators

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


def names(*lists: str) -> set[str]:
    return {f"aten::{name}" for listed in lists for name in listed.split()}


def test_the_lists_are_those_of_this_build() -> None:
    ours = names(
        cuda_autocast.LOWER_PRECISION,
        cuda_autocast.FULL_PRECISION,
        cuda_autocast.FULL_PRECISION_RESULT,
        cuda_autocast.NORMS,
        cuda_autocast.WIDEST,
        cuda_autocast.BANNED,
    )
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    theirs = {name for name in registered if name.startswith("aten::")}
    # Nothing calls cuDNN's convolutions by these names from outside.
    assert theirs - ours == {"aten::cudnn_convolution", "aten::cudnn_convolution_transpose"}
    absent = {name for name in ours if not torch._C._dispatch_has_kernel(name)}
    assert ours - theirs - absent == set()


@pytest.mark.parametrize("enter", [lambda: torch.autocast("cuda", dtype=BRAIN), lambda: torch.autocast("cpu", BRAIN)])
def test_products_run_in_the_lower_precision_and_norms_in_fp32(enter: object) -> None:
    with on_cuda() as log:
        network = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 4)).cuda()
        log.made.clear()
        with enter():  # type: ignore[operator]
            result = network(torch.randn(2, 8, device="cuda"))
    assert result.dtype == BRAIN
    assert log.tensors("native_layer_norm.default")[0][1] == SINGLE


def test_cuda_autocast_is_half_precision_unless_told_otherwise() -> None:
    with on_cuda(), torch.autocast("cuda"):
        assert torch.mm(torch.randn(2, 2), torch.randn(2, 2)).dtype == HALF
        assert torch.is_autocast_enabled()
        assert torch.is_autocast_enabled("cuda")
        assert torch.get_autocast_dtype("cuda") == torch.get_autocast_gpu_dtype() == HALF


def test_disabled_autocast_changes_nothing() -> None:
    with on_cuda(), torch.autocast("cuda"), torch.autocast("cuda", enabled=False):
        assert torch.mm(torch.randn(2, 2), torch.randn(2, 2)).dtype == SINGLE


def test_cross_entropy_takes_its_logarithms_as_the_logits_are_and_then_copies_them() -> None:
    with on_cuda() as log, torch.autocast("cuda"):
        logits = torch.randn(8, 100, dtype=HALF, device="cuda")
        loss = functional.cross_entropy(logits, torch.zeros(8, dtype=torch.long))
    assert loss.dtype == SINGLE
    assert log.tensors("_log_softmax.default") == (((8, 100), HALF),)
    assert log.tensors("_to_copy.default") == (((8, 100), SINGLE),)


def test_sums_of_half_precision_are_fp32() -> None:
    with on_cuda(), torch.autocast("cuda"):
        tensor = torch.randn(4, 4, dtype=HALF, device="cuda")
        assert tensor.sum().dtype == tensor.softmax(-1).dtype == tensor.norm().dtype == SINGLE
        assert tensor.cumsum(0).dtype == tensor.norm(dim=0).dtype == SINGLE
        assert tensor.sum(dtype=HALF).dtype == HALF
        assert torch.norm(tensor.double()).dtype == torch.float64


def test_what_only_the_cpu_lists_runs_as_it_is() -> None:
    with on_cuda(), torch.autocast("cuda"):
        pooled = functional.adaptive_avg_pool3d(torch.randn(1, 1, 4, 4, 4, dtype=HALF, device="cuda"), 2)
        assert pooled.dtype == HALF


def test_operands_are_brought_to_the_widest_of_their_types() -> None:
    with on_cuda(), torch.autocast("cuda"):
        half, single = torch.randn(4, dtype=HALF), torch.randn(4)
        assert torch.dot(half, single).dtype == SINGLE
        assert torch.dot(half, half).dtype == HALF


def test_the_loss_that_cuda_refuses_is_refused() -> None:
    with on_cuda(), torch.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        functional.binary_cross_entropy(torch.rand(4), torch.rand(4))


def copies(log: object, shape: tuple[int, ...]) -> int:
    return sum(
        made.operator == "_to_copy.default" and made.tensors[0] == (shape, BRAIN)
        for made in log.made  # type: ignore[attr-defined]
    )


@pytest.mark.parametrize(("cached", "count"), [(True, 1), (False, 3)])
def test_weights_are_copied_once_within_autocast(cached: bool, count: int) -> None:
    with on_cuda() as log:
        linear = nn.Linear(8, 8)
        with torch.autocast("cuda", dtype=BRAIN, cache_enabled=cached):
            for _ in range(3):
                linear(torch.randn(2, 8))
    assert copies(log, (8, 8)) == count


def test_weights_are_copied_again_after_autocast() -> None:
    with on_cuda() as log:
        linear = nn.Linear(8, 8)
        for _ in range(2):
            with torch.autocast("cuda", dtype=BRAIN):
                linear(torch.randn(2, 8))
    assert copies(log, (8, 8)) == 2


def test_gradients_of_weights_are_fp32() -> None:
    with on_cuda():
        linear = nn.Linear(8, 8)
        with torch.autocast("cuda", dtype=BRAIN):
            result = linear(torch.randn(2, 8))
        result.sum().backward()
        assert linear.weight.grad is not None
        assert linear.weight.grad.dtype == SINGLE


def test_afterwards_the_cpus_lists_are_back() -> None:
    before = torch.autocast.__init__
    with FakeTensorMode(), CudaOperators(None, lambda _: None, lambda _: None):
        assert torch.autocast.__init__ is not before
    assert torch.autocast.__init__ is before
    with FakeTensorMode(), torch.autocast("cpu", dtype=BRAIN):
        assert functional.layer_norm(torch.randn(2, 4, dtype=BRAIN), (4,)).dtype == BRAIN
        assert torch.mm(torch.randn(2, 2), torch.randn(2, 2)).dtype == BRAIN
        assert functional.adaptive_avg_pool3d(torch.randn(1, 1, 4, 4, 4, dtype=BRAIN), 2).dtype == SINGLE
