"""Which engine runs what, and what the estimate refuses."""

import pytest
from pydantic import ValidationError

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory
from planner.models.architecture import StoredTensors
from planner.plan.catalog import Catalog
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

LLAMA = "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize(
    ("changes", "profile", "weights", "cache"),
    [
        ({}, "hf", "bf16", "bf16"),
        ({"weights": "Q4_K_M"}, "llama.cpp", "Q4_K_M", "fp16"),
        ({"gpu_layers": 3}, "llama.cpp", "BF16", "fp16"),
        ({"engine": {"n_ubatch": 64}}, "llama.cpp", "BF16", "fp16"),
        ({"engine": {"max_num_seqs": 64}}, "vllm", "bf16", "bf16"),
        ({"profile": "llama.cpp", "weights": "fp16", "kv_cache": "q8_0"}, "llama.cpp", "F16", "q8_0"),
        ({"profile": "hf", "weights": "F16"}, "hf", "fp16", "bf16"),
        ({"profile": "vllm", "weights": "Q4_K_M", "kv_cache": "fp8"}, "vllm", "Q4_K_M", "fp8"),
    ],
)
def test_the_engine_follows_from_the_weights_and_the_settings(
    catalog: Catalog, changes: dict[str, object], profile: str, weights: str, cache: str
):
    filled = with_defaults(Inference.model_validate(changes), catalog.models.model(LLAMA), 1)
    assert (filled.profile, filled.weights, filled.kv_cache) == (profile, weights, cache)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"profile": "hf", "weights": "Q4_K_M"}, "plain tensors"),
        ({"profile": "llama.cpp", "weights": "nf4"}, "GGUF"),
        ({"engine": {"max_num_seqs": 3}, "kv_cache": "q8_0"}, "no q8_0 KV cache"),
        ({"engine": {"max_num_seqs": 3}, "gpu_layers": 1}, "gpu_layers is a setting of llama.cpp"),
        ({"weights": "Q4_K_M", "kv_cache": "q8_0", "attention": "eager"}, "only with flash attention"),
    ],
)
def test_what_an_engine_does_not_run_is_refused(catalog: Catalog, changes: dict[str, object], reason: str):
    with pytest.raises(SpecError, match=reason):
        with_defaults(Inference.model_validate(changes), catalog.models.model(LLAMA), 1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"engine": {"n_gpus": 2}}, "n_gpus"),
        ({"profile": "hf", "engine": {"slots": 2}}, "slots is a setting of llama.cpp"),
        ({"profile": "vllm", "engine": {"n_ubatch": 2}}, "n_ubatch is a setting of llama.cpp"),
        ({"profile": "llama.cpp", "engine": {"block_size": 32}}, "block_size is a setting of vLLM"),
        ({"profile": "llama.cpp", "kv_cache": "fp8"}, "no fp8 KV cache"),
        ({"engine": {"memory_utilization": 1.5}}, "memory_utilization"),
    ],
)
def test_settings_of_another_engine_are_refused(changes: dict[str, object], reason: str):
    with pytest.raises(ValidationError, match=reason):
        Inference.model_validate(changes)


@pytest.mark.parametrize(
    ("changes", "word"), [({"profile": "vllm"}, "vLLM 0.33"), ({"weights": "Q8_0"}, "llama.cpp 0.5.0")]
)
def test_the_version_that_was_checked_is_said(catalog: Catalog, changes: dict[str, str], word: str):
    result = estimate_memory(catalog.models.model(LLAMA), Inference.model_validate(changes))
    assert any(word in note for note in result.notes)


def test_files_in_formats_without_a_name_are_no_gguf_file(catalog: Catalog):
    stored = (StoredTensors(format="F8_E4M3", place="layers", elements=1, bytes=1),)
    model = catalog.models.model(LLAMA).evolve(container="safetensors", stored=stored, stored_dtype="bf16")
    assert model.stored_as == "stored"
    with pytest.raises(SpecError, match="the formats of these files"):
        with_defaults(Inference(profile="llama.cpp"), model, 1)


@pytest.mark.parametrize("profile", ["vllm", "llama.cpp"])
def test_image_encoders_run_in_transformers_only(catalog: Catalog, profile: str):
    model = catalog.models.model("google/vit-base-patch16-224")
    with pytest.raises(SpecError, match="cannot run an image encoder on its own"):
        with_defaults(Inference(profile=profile), model, 1)
