"""vLLM's pages, profiling step and pool, with the arithmetic and with what its logs printed."""

from small_models import bundled

from planner.memory.estimate import estimate_memory, fits_on
from planner.workload.workload import Inference

LLAMA_3 = "meta-llama/Llama-3.1-8B"


def test_the_whole_catalog_has_the_verdicts_of_single_estimates():
    model, workload = bundled().models.model(LLAMA_3), Inference(profile="vllm")
    hardware = bundled().hardware
    cards = [(gpu, hardware.usable_memory(gpu)) for gpu in hardware.gpus]
    for (gpu, available), fit in zip(cards, fits_on(model, workload, cards), strict=True):
        single = estimate_memory(model, workload, gpu, available)
        assert (fit.verdict, fit.total_bytes, fit.free_bytes) == (single.verdict, single.total_bytes, single.free_bytes)


def test_notes_say_what_was_assumed():
    model = bundled().models.model("google/gemma-3-27b-it")
    notes = " ".join(estimate_memory(model, Inference(profile="vllm", engine={"enforce_eager": True})).notes)
    assert "at most 256 sequences and 2,048 tokens" in notes
    assert "without CUDA graphs" in notes
    assert "70 layers" in notes
    assert "vLLM 0.19" in " ".join(estimate_memory(model, Inference(profile="vllm", engine={"version": 0.19})).notes)
