"""Defaults that depend on the model."""

import pytest
from small_models import llama, other, small_llama

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.models.catalog import load_models
from planner.paths import catalog_dir
from planner.workload.defaults import with_defaults
from planner.workload.training import Training
from planner.workload.workload import Inference, Parallel

VIT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 224,
    "patch_size": 16,
}


def image_encoder() -> Architecture:
    return other("vit", VIT)


def test_the_defaults_of_inference():
    filled = with_defaults(Inference(), llama(max_position_embeddings=131_072), count=1)
    assert (filled.weights, filled.context_length, filled.prompt_length) == ("bf16", 4096, 4096)
    assert filled.parallel.data == 1


def test_a_model_of_short_context_is_not_asked_for_more():
    assert with_defaults(Inference(), llama(max_position_embeddings=512), count=1).context_length == 512
    assert with_defaults(Training(), llama(max_position_embeddings=512), count=1).sequence_length == 512


def test_a_long_context_leaves_the_prompt_at_its_default():
    filled = with_defaults(Inference(context_length=100_000), llama(max_position_embeddings=131_072), count=1)
    assert (filled.context_length, filled.prompt_length) == (100_000, 4096)


def test_the_context_holds_the_prompt():
    filled = with_defaults(Inference(prompt_length=3000, context_length=100), llama(), count=1)
    assert (filled.context_length, filled.prompt_length) == (3000, 3000)


def test_weights_are_as_stored():
    stored = small_llama().evolve(stored_dtype="fp16")
    assert with_defaults(Inference(), stored, count=1).weights == "fp16"
    assert with_defaults(Inference(), stored.evolve(quantization="mxfp4"), count=1).weights == "mxfp4"
    assert with_defaults(Inference(weights="nf4"), stored, count=1).weights == "nf4"


def test_an_image_has_the_length_it_has():
    tokens = (224 // 16) ** 2 + 1  # patches and the class token
    assert with_defaults(Inference(context_length=9), image_encoder(), count=1).context_length == tokens
    assert with_defaults(Training(sequence_length=9), image_encoder(), count=1).sequence_length == tokens


def test_every_card_is_a_replica():
    assert with_defaults(Training(), small_llama(), count=8).parallel.data == 8
    assert with_defaults(Training(parallel=Parallel(data=8)), small_llama(), count=8).parallel.data == 8


def test_replicas_without_cards_are_refused():
    with pytest.raises(SpecError, match="data parallelism of 8 needs as many cards, not 2"):
        with_defaults(Training(parallel=Parallel(data=8)), small_llama(), count=2)


CATALOG = load_models(catalog_dir() / "models")


FLUX = CATALOG.model("black-forest-labs/FLUX.1-dev")


def test_settings_that_pipelines_lack_are_refused():
    for workload, reason in (
        (Training(), "cannot be estimated by a formula"),
        (Inference(profile="vllm"), "no diffusion pipeline runs in vLLM"),
        (Inference(image_size=1001), "not multiples of 16"),
        (Inference(attention="eager"), "estimated for U-Nets only"),
        (Inference(weights="Q4_K_M"), "mix weight formats, which is not supported"),
        (Inference(engine={"n_ubatch": 256}), "n_ubatch is a setting of"),
        (Inference(weights="stored"), "files were not read"),
        (Inference(diffusion={"text_weights": "stored"}), "files were not read"),
    ):
        with pytest.raises(SpecError, match=reason):
            with_defaults(workload, FLUX, 1)


def test_unset_fields_are_filled_in_for_the_pipeline() -> None:
    filled = with_defaults(Inference(compute="fp16"), FLUX, 1)
    assert isinstance(filled, Inference)
    assert (filled.image_size, filled.weights, filled.diffusion.text_weights) == ((1024, 1024), "fp16", "fp16")
    assert filled.diffusion.guidance is False
