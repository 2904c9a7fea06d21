"""Traffic of the optimizer step, with the arithmetic."""

import pytest
from small_models import llama
from timed_steps import PERFECT, step

from planner.hardware.gpu import Gpu
from planner.performance.setting import TimeSetting
from planner.workload.parallel import Parallel
from planner.workload.training import Lora

PLAIN = TimeSetting()


def test_adam_reads_and_writes_its_states(h100: Gpu) -> None:
    found = step(llama(), h100, compute="fp32", classes=PERFECT._replace(matrix={("Hopper SXM", "32"): 1.0}))
    assert found.optimizer_traffic.moved_bytes == (4 + 2 * 4 + 2 * 8) * llama().parameters
    shared = step(llama(), h100, 8, compute="amp-bf16", parallel=Parallel(zero=1))
    assert shared.optimizer_traffic.moved_bytes == (2 + 2 * 4 + 2 * 8) * llama().parameters / 8
    adapters = step(llama(), h100, method="lora", lora=Lora(rank=16))
    assert adapters.optimizer_traffic.parameters < 0.01 * llama().parameters


def test_offloaded_states_go_over_the_link_to_the_host(h100: Gpu) -> None:
    parallel = Parallel(zero=3, offload="parameters")
    found = step(llama(), h100, 8, compute="bf16", gradient_accumulation=2, parallel=parallel)
    bytes_each = llama().parameters / 8
    assert found.optimizer == 0
    assert found.optimizer_traffic.copied_bytes == pytest.approx((2 + 2 + 2 * 2 * 2) * bytes_each)
    assert found.offload == pytest.approx(
        found.optimizer_traffic.copied_bytes / found.links.host_bytes_per_s
        + 8 * found.optimizer_traffic.offloaded_bytes / 100e9
    )
    disk = step(llama(), h100, 8, compute="amp-bf16", parallel=Parallel(zero=3, offload="nvme"))
    host = step(llama(), h100, 8, compute="amp-bf16", parallel=Parallel(zero=2, offload="optimizer"))
    assert disk.optimizer_traffic.offload_bytes_per_s == 5e9
    assert disk.offload > host.offload
