"""What vLLM's profiling step and sampler reserve, by hand and as its logs print it."""

import pytest
from small_models import bundled, llama
from vllm_cases import alive, setup

from planner.memory.software.vllm import sampler_term
from planner.memory.software.vllm.setup import CardClass, CardSetup, setup_of
from planner.units import GIB
from planner.workload.workload import Inference


@pytest.mark.parametrize(("version", "per_logit"), [("0.33", 14), ("0.19", 14), ("0.11", 38)])
def test_sampling_for_the_most_sequences_decides_the_peak(version: str, per_logit: int):
    # logits 2, fp32 copy 4, then 8 (masked logits and probabilities), or 32 where they are sorted with their indices
    model = bundled().models.model("Qwen/Qwen3-0.6B")
    assert sampler_term(model, setup(version=version)).bytes == 1024 * 151_936 * per_logit
    assert sampler_term(model, setup(version=version, max_num_seqs=1)).bytes == 151_936 * per_logit


@pytest.mark.parametrize(("name", "measured_gib"), [("openai/gpt-oss-120b", 7.38), ("Qwen/Qwen3-0.6B", 5.56)])
def test_the_profiled_peak_of_vllm_011_on_an_h100(name: str, measured_gib: float):
    # llm-d-planner docs/empirical-vllm-memory-results.md: torch peak increase
    shares = alive(bundled().models.model(name), "decode", engine={"version": "0.11"}, context_length=16_000)
    assert (shares["activations"] + shares["logits"]) / GIB == pytest.approx(measured_gib, rel=0.01)


def test_fp32_has_no_copy_and_models_without_a_vocabulary_sample_nothing():
    model = llama()
    fp32 = setup_of(Inference(profile="vllm", compute="fp32", context_length=10), CardSetup(CardClass.OTHER))
    assert sampler_term(model, fp32).bytes == fp32.sequences * 32_000 * 12
    headless = model.evolve(head=())
    assert sampler_term(headless, setup()) is None
    assert "buffers" not in alive(headless, "decode", engine={"enforce_eager": True})


def test_tables_of_penalties_stay_for_good_and_graphs_are_an_assumption():
    eager = alive(llama(), "decode", engine={"enforce_eager": True})
    assert eager["buffers"] == 1024 * 4 * (32_000 + 1000)
    assert alive(llama(), "decode")["buffers"] - eager["buffers"] == GIB // 2
    assert "buffers" not in alive(llama(), "decode", engine={"enforce_eager": True, "version": "0.19"})
