"""The framework's overhead: GPU context, cuBLAS workspace, and the allocator's slack."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import bundled, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.overhead import cublas_workspace_bytes, fixed_overhead, framework_overhead, overhead_term
from planner.units import GIB, KIB, MIB
from planner.workload.workload import Inference, Training

ENDS = 14 * MIB  # of segments beside short-lived tensors
SMALL, LARGE = 8 * MIB + 128 * KIB, 32 * MIB  # 2 × 4096 + 8 × 16 KiB = 8.125 MiB; and from sm_90 on


def gpu(name):
    return bundled().hardware.gpu(name)


@pytest.mark.parametrize(
    ("name", "workspace"),
    [
        ("rtx-4090", SMALL),
        ("a100-sxm4-80gb", SMALL),
        ("h100-sxm5-80gb", LARGE),
        ("b100", LARGE),
        ("instinct-mi300x", LARGE),
        ("tesla-k80", SMALL),
        ("apple-m1", SMALL),
    ],
)
def test_the_workspace_of_the_matrix_library(name, workspace):
    assert cublas_workspace_bytes(gpu(name)) == workspace


def test_the_workspace_is_small_where_nothing_is_known():
    assert cublas_workspace_bytes(None) == SMALL
    assert cublas_workspace_bytes(gpu("rtx-4090").evolve(compute_capability=None)) == SMALL


def test_training_has_two_threads_that_launch_products():
    for workload, threads in ((Training(), 2), (Inference(), 1)):
        parts = estimate_memory(small_llama(), workload).term("framework_overhead").parts
        assert next(part for part in parts if part.name == "cuBLAS workspace").bytes == threads * SMALL


def test_the_context_of_measured_families_is_theirs():
    assert framework_overhead(fixed_overhead(gpu("rtx-4090")), 0, 0).context == 426 * MIB
    assert framework_overhead(fixed_overhead(None), 0, 0).context == 426 * MIB
    turing = next(g for g in bundled().hardware.gpus if g.architecture == "Turing")
    assert framework_overhead(fixed_overhead(turing), 0, 0).context == 141 * MIB


def test_slack_is_a_twentieth_of_what_comes_and_goes_or_a_hole_at_worst():
    overhead = framework_overhead(fixed_overhead(None), 100 * MIB, 50 * MIB)
    assert overhead.slack == 5 * MIB
    assert overhead.total == 426 * MIB + SMALL + ENDS + 5 * MIB
    assert (overhead.low, overhead.high) == (141 * MIB + SMALL + ENDS, 1343 * MIB + SMALL + ENDS + 50 * MIB)
    assert framework_overhead(fixed_overhead(None), 0, 80 * GIB).high == 1343 * MIB + SMALL + GIB


def test_at_worst_the_allocator_holds_as_much_more_as_was_published():
    published = 22.2 / 18.02 - 1
    overhead = framework_overhead(fixed_overhead(gpu("h100-sxm5-80gb")), 10 * GIB, MIB)
    assert overhead.high - (749 * MIB + LARGE + ENDS) == pytest.approx(published * 10 * GIB, rel=0.002)


@pytest.mark.parametrize(
    ("name", "most_mib"), [("tesla-v100-sxm2-16gb", 1343), ("a100-sxm4-80gb", 1343), ("h100-sxm5-80gb", 749)]
)
def test_older_cards_may_run_versions_that_load_every_kernel(name, most_mib):
    assert fixed_overhead(gpu(name)).context.high == most_mib * MIB


@given(
    st.integers(0, 2**40), st.integers(0, 2**40), st.sampled_from([None, "rtx-4090", "tesla-k80"]), st.integers(1, 2)
)
def test_the_overhead_lies_within_its_bounds(dynamic, largest, name, threads):
    overhead = framework_overhead(fixed_overhead(gpu(name) if name else None), dynamic, largest, threads)
    written = overhead_term(overhead, dynamic)
    assert overhead.low <= overhead.total <= overhead.high
    assert sum(part.bytes for part in written.parts) == written.bytes == overhead.total
