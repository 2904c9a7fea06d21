"""Where vLLM and llama.cpp run."""

import pytest
from small_models import llama

from planner.memory.software import memory_of
from planner.plan.catalog import Catalog
from planner.workload.workload import Inference

VLLM, LLAMA_CPP = Inference(profile="vllm"), Inference(profile="llama.cpp")
OF_2025 = VLLM.evolve(compute="fp16", engine={"version": "0.11"})


def reasons(catalog: Catalog, workload: Inference, name: str) -> str:
    return " ".join(memory_of(llama(), workload).unsupported_reasons(workload, catalog.hardware.gpu(name)))


@pytest.mark.parametrize(
    "name", ["rtx-4090", "h200-sxm-141gb", "radeon-rx-7900-xtx", "arc-b580", "apple-m2-ultra", "gtx-1070"]
)
def test_llama_cpp_runs_on_nearly_everything(catalog: Catalog, name: str):
    assert not reasons(catalog, LLAMA_CPP, name)


@pytest.mark.parametrize("name", ["tpu-v5e", "trainium2", "gaudi3"])
def test_llama_cpp_has_no_backend_for_accelerators_without_graphics(catalog: Catalog, name: str):
    assert reasons(catalog, LLAMA_CPP, name) == "llama.cpp has no backend for this GPU"


def test_llama_cpp_has_backends_that_are_not_described(catalog: Catalog):
    assert "CANN, which this estimate does not describe" in reasons(catalog, LLAMA_CPP, "ascend-910b")
    assert reasons(catalog, LLAMA_CPP, "groq-lpu") == "llama.cpp has no backend for this GPU"


@pytest.mark.parametrize(
    ("workload", "name", "reason"),
    [
        (VLLM, "rtx-4090", ""),
        (VLLM, "radeon-rx-7900-xtx", ""),
        (VLLM, "arc-b580", ""),
        (VLLM, "gtx-1070", "needs compute capability 7.5"),
        (VLLM, "tesla-v100-sxm2-16gb", "needs compute capability 7.5"),
        (VLLM, "tesla-t4", "bf16 from compute capability 8.0"),
        (VLLM.evolve(compute="fp16"), "tesla-t4", ""),
        (OF_2025, "tesla-v100-sxm2-16gb", ""),
        (VLLM, "radeon-rx-6800-xt", "RDNA 3 or newer"),
        (VLLM, "apple-m2-ultra", "vllm-metal"),
        (VLLM, "tpu-v5e", "plugin"),
        (VLLM, "gaudi3", "plugin"),
        (VLLM, "ascend-910b", "plugin"),
    ],
)
def test_vllm_needs_a_card_that_its_kernels_are_built_for(catalog: Catalog, workload, name: str, reason: str):
    said = reasons(catalog, workload, name)
    assert (reason in said) if reason else not said


def test_neither_is_told_that_it_is_not_pytorch(catalog: Catalog):
    for gpu in catalog.hardware.gpus:
        for workload in (VLLM, LLAMA_CPP):
            assert not any(
                "PyTorch" in reason for reason in memory_of(llama(), workload).unsupported_reasons(workload, gpu)
            )
