"""Memory of a network that drafts, by hand: weights, its share of each page, and the logits of all checked tokens."""

import pytest
from small_models import DEEPSEEK, llama, other, small_llama

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, resolve_workload
from planner.memory.inference.draft import cached_groups, draft_term, verified_rows
from planner.memory.inference.engine import engine_cache_bytes
from planner.memory.parallel.ranks import ranks
from planner.memory.parallel.tensor import tensor_share
from planner.models.drafts import with_draft
from planner.workload.workload import Inference

EAGLE = {"method": "eagle", "tokens": 3}
HEAD_PARAMETERS = 4 * 4096**2 + 3 * 4096 * 11_008 + 2 * 4096 + 2 * 4096**2


def held(profile, architecture=None, **fields):
    workload = Inference(profile=profile, batch=2, context_length=1024, **fields)
    return estimate_memory(architecture or llama(), workload)


def of_term(result, name):
    return next((share.bytes for share in result.peak.shares if share.name == name), 0)


@pytest.mark.parametrize("profile", ["vllm", "sglang"])
def test_an_eagle_head_adds_its_weights_and_one_layer_to_the_cache(profile):
    plain, drafted = held(profile), held(profile, speculation=EAGLE)
    assert of_term(drafted, "draft") == 2 * HEAD_PARAMETERS
    assert of_term(plain, "draft") == 0
    token = 2 * 4096 * 2  # keys and values of one layer in 16 bits
    assert of_term(drafted, "kv_cache") - of_term(plain, "kv_cache") == 2 * 1024 * token


def test_a_smaller_model_adds_its_own_layers_to_each_token():
    target = llama(vocab_size=1000)
    drafted = with_draft(target, "model", small_llama())
    small = small_llama().main.groups[0].layer.mixer
    assert engine_cache_bytes(drafted, "bf16", 2).token == 32 * 2 * 4096 * 2 + 2 * 2 * small.kv_dim * 2
    assert cached_groups(target) == target.main.groups


def test_tensorrt_counts_the_head_before_its_cache():
    workload = {"speculation": {"method": "eagle3"}, "engine": {"max_batch_size": 8}}
    drafted = held("tensorrt-llm", weights="bf16", **workload)
    layer = (3 * 2 + 1) * 4096**2 + 3 * 4096 * 11_008 + 2 * 4096
    assert of_term(drafted, "draft") == 2 * (layer + 3 * 4096**2 + 32_000 * 4096)


def test_vllm_checks_more_logits_than_its_profile_samples():
    """Few sequences a step: 256 · (k + 1) rows of 32,000 logits in 16 bits, and a copy of at most 1 GiB in fp32."""
    workload = Inference(profile="vllm", batch=256, context_length=256, speculation={**EAGLE, "tokens": 15})
    drafted = estimate_memory(llama(), workload)
    rows = 256 * 16
    logits = next(share.bytes for phase in drafted.phases for share in phase.shares if share.name == "logits")
    assert logits == rows * 32_000 * 2 + min(rows * 32_000 * 4, 2**30)
    encoder = Inference(profile="vllm", batch=2, context_length=256)
    assert verified_rows(encoder, 5) == 5


def test_llama_cpp_gives_the_draft_a_context_of_its_own():
    target, small = llama(vocab_size=1000), small_llama()
    fields = {"weights": "Q8_0", "context_length": 512, "engine": {"slots": 1}, "kv_cache": "q8_0"}
    own = estimate_memory(small, Inference(profile="llama.cpp", **{**fields, "kv_cache": "fp16"}))
    drafted = estimate_memory(
        with_draft(target, "model", small),
        Inference(profile="llama.cpp", **fields, speculation={"model": "small", "tokens": 3}),
    )
    assert of_term(drafted, "draft") == sum(of_term(own, name) for name in ("weights", "kv_cache", "activations"))
    plain = estimate_memory(target, Inference(profile="llama.cpp", **fields))
    assert drafted.host_bytes is not None
    assert plain.host_bytes is not None
    assert drafted.host_bytes > plain.host_bytes


def test_a_prediction_layer_has_the_format_of_the_model():
    model = other("deepseek_v3", DEEPSEEK, num_nextn_predict_layers=1)
    resolved = resolve_workload(model, Inference(profile="vllm", weights="fp8", speculation={"method": "mtp"}), 1)
    found = draft_term(*resolved)
    assert found is not None
    assert found.symbols[-1].meaning.endswith("weights in fp8")
    assert found.bytes < 1.1 * resolved.architecture.draft.parameters


def test_cards_divide_a_draft_if_its_heads_allow_it():
    drafted = with_draft(llama(), "eagle")
    halves = tensor_share(drafted, 2).draft
    assert halves.main.groups[0].layer.mixer.heads == 16
    assert tensor_share(drafted, 3).draft is drafted.draft


def test_the_last_stage_of_a_pipeline_drafts():
    workload = Inference(profile="vllm", speculation=EAGLE, parallel={"pipeline": 2})
    resolved = resolve_workload(llama(), workload, 2)
    stages = [rank.stage.architecture.draft for rank in ranks(*resolved)]
    assert stages[0] is None
    assert stages[1].parameters == HEAD_PARAMETERS


def test_the_network_of_a_draft_model_has_to_be_given():
    with pytest.raises(SpecError, match="is not known here"):
        resolve_workload(llama(), Inference(profile="vllm", speculation={"model": "some"}), 1)
