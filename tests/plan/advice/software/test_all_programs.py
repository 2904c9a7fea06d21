"""Ladders of the program that runs a plan."""

import pytest

from planner.plan.advice.software import engine_sequences
from planner.plan.plan import ModelChoice
from planner.workload.software.vllm import VllmSettings
from planner.workload.workload import Inference

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")


@pytest.mark.parametrize(
    ("profile", "levers"),
    [("vllm", ["pieces", "slots"]), ("llama.cpp", ["pieces", "offload"]), ("hf", [])],
)
def test_each_engine_has_its_own_sequences(catalog, profile, levers):
    architecture = catalog.models.model(LLAMA.id)
    found = tuple(engine_sequences(Inference(profile=profile, batch=3), architecture))
    assert [sequence.lever for sequence in found] == levers
    assert all(list(sequence.values) == sorted(sequence.values, reverse=True) for sequence in found)
    assert all(sequence.change(sequence.values[0]).source for sequence in found)


def test_sequences_start_at_the_engines_settings(catalog):
    architecture = catalog.models.model(LLAMA.id)
    engine = VllmSettings(max_num_batched_tokens=1000, max_num_seqs=100)
    tokens, sequences = engine_sequences(Inference(profile="vllm", batch=20, engine=engine), architecture)
    assert (tokens.values[0], sequences.values) == (512, [64, 32])
    moe = catalog.models.model("openai/gpt-oss-20b")
    experts = tuple(engine_sequences(Inference(profile="llama.cpp", engine={"n_cpu_moe": 4}), moe))[1]
    assert (experts.values[0], experts.values[-1]) == (5, 24)
    layers = tuple(engine_sequences(Inference(profile="llama.cpp", gpu_layers=7), architecture))[1]
    assert list(layers.values) == [6, 5, 4, 3, 2, 1, 0]
