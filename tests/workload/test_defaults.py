"""Defaults that depend on the model."""

import pytest
from small_models import DEEPSEEK, GPT2, MIXTRAL, bundled, llama, other, small_llama

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.models.catalog import load_models
from planner.paths import catalog_dir
from planner.workload.defaults import resolve_parallel, with_defaults
from planner.workload.parallel import Parallel
from planner.workload.training import Lora, Training
from planner.workload.workload import Inference

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
    with pytest.raises(SpecError, match="data parallelism of 8 needs as many GPUs, not 2"):
        with_defaults(Training(parallel=Parallel(data=8)), small_llama(), count=2)


CATALOG = load_models(catalog_dir() / "models")


FLUX = CATALOG.model("black-forest-labs/FLUX.1-dev")


def test_settings_that_pipelines_lack_are_refused():
    for workload, reason in (
        (Training(image_size=1000), "not multiples of 16"),
        (Training(method="qlora"), "QLoRA of a denoiser is not estimated"),
        (Training(parallel=Parallel(tensor=1, zero=3)), "sharded training of a pipeline"),
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


def test_the_training_of_a_denoiser_starts_as_in_its_script() -> None:
    sd15 = CATALOG.model("stable-diffusion-v1-5/stable-diffusion-v1-5")
    filled = with_defaults(Training(method="lora"), sd15, 1)
    assert isinstance(filled, Training)
    assert (filled.weights, filled.image_size, filled.precomputed) == ("bf16", (512, 512), "none")
    assert (filled.loss, filled.sequence_length, filled.optimizer_step) == (None, None, "fused")
    assert filled.lora == Lora(rank=16, targets=("to_k", "to_q", "to_v", "to_out.0"))
    named = Lora(targets=("attn1.to_q",), adapter_dtype="bf16")
    assert with_defaults(Training(method="lora", lora=named), sd15, 1).lora == named
    flux = with_defaults(Training(method="lora", lora=Lora(rank=4)), FLUX, 1)
    assert isinstance(flux, Training)
    assert flux.precomputed == "prompts"
    assert flux.lora is not None
    assert (flux.lora.rank, len(flux.lora.targets)) == (4, 12)
    assert with_defaults(Training(method="lora"), small_llama(), 1).lora == Lora(targets="all-linear")
    assert with_defaults(Training(precomputed="none"), FLUX, 1).weights == "fp32"


def test_what_only_pipelines_compute_beforehand_is_refused_elsewhere() -> None:
    with pytest.raises(SpecError, match="only image pipelines have prompts"):
        with_defaults(Training(precomputed="all"), small_llama(), 1)


LLAMA = small_llama(num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=2)
ROUTED = other("mixtral", MIXTRAL, num_hidden_layers=2)
LATENT = other("deepseek_v3", DEEPSEEK)


def training(**parallel):
    return Training(parallel=Parallel(**parallel))


def inference(profile="hf", **parallel):
    return Inference(profile=profile, parallel=Parallel(**parallel))


@pytest.mark.parametrize(("cards", "replicas"), [(4, 1), (8, 2), (64, 16)])
def test_cards_that_are_left_are_replicas(cards, replicas):
    assert resolve_parallel(training(tensor=2, pipeline=2), LLAMA, cards).data == replicas


def test_replicas_may_be_named():
    assert resolve_parallel(training(tensor=2, data=3), LLAMA, 6).data == 3
    assert resolve_parallel(training(), LLAMA, 6).data == 6


@pytest.mark.parametrize(
    ("parallel", "cards", "field", "said"),
    [
        ({"tensor": 3}, 4, "parallel", "4 GPUs are not a multiple of tensor 3"),
        ({"tensor": 2, "pipeline": 3}, 8, "parallel", "8 GPUs are not a multiple of tensor 2 × pipeline 3"),
        ({"data": 2, "tensor": 2}, 8, "parallel", "data 2 × tensor 2 needs 4 GPUs, not 8"),
        ({"data": 2}, 8, "parallel.data", "data parallelism of 2 needs as many GPUs, not 8"),
        ({"tensor": 8}, 8, "parallel.tensor", "4 attention heads are not divisible by 8"),
        ({"pipeline": 8}, 8, "parallel.pipeline", "6 layers cannot fill 8 stages"),
        ({"pipeline": 2, "interleave": 2}, 2, "parallel.interleave", "6 layers cannot be divided into 4 equal groups"),
        (
            {"pipeline": 2, "pipeline_layers": (2, 3)},
            2,
            "parallel.pipeline_layers",
            "have 5 layers in total, but the model has 6",
        ),
        ({"expert": 2}, 2, "parallel.expert", "no routed experts"),
    ],
)
def test_a_llama_is_not_shared_so(parallel, cards, field, said):
    with pytest.raises(SpecError, match=said) as caught:
        resolve_parallel(training(**parallel), LLAMA, cards)
    assert caught.value.field == field


def test_degrees_that_go_are_taken():
    assert resolve_parallel(training(pipeline=3, interleave=2), LLAMA, 3).interleave == 2
    assert resolve_parallel(training(pipeline=4, pipeline_layers=(1, 1, 2, 2)), LLAMA, 4).pipeline_layers == (
        1,
        1,
        2,
        2,
    )
    assert resolve_parallel(training(tensor=4), LLAMA, 4).tensor == 4
    assert resolve_parallel(training(expert=8), ROUTED, 16).data == 16
    assert resolve_parallel(training(tensor=2), LATENT, 2).data == 1


@pytest.mark.parametrize(
    ("network", "parallel", "cards", "said"),
    [
        (
            small_llama(num_attention_heads=12, num_key_value_heads=4, hidden_size=96),
            {"tensor": 6},
            6,
            "neither divided",
        ),
        (
            small_llama(intermediate_size=150, num_attention_heads=4),
            {"tensor": 4},
            4,
            "width of 150 is not divisible by 4",
        ),
        (ROUTED, {"expert": 3}, 3, "8 experts are not divisible by 3"),
        (ROUTED, {"expert": 4, "data": 2, "tensor": 2}, 4, "2, is not divisible by 4"),
        (other("gpt2", GPT2), {"tensor": 8}, 8, "12 attention heads are not divisible by 8"),
    ],
)
def test_other_networks_are_not_shared_so(network, parallel, cards, said):
    with pytest.raises(SpecError, match=said):
        resolve_parallel(training(**parallel), network, cards)


def test_two_towers_are_not_cut_into_stages():
    t5 = bundled().models.model("google-t5/t5-11b")
    with pytest.raises(SpecError, match="encoder-decoder model"):
        resolve_parallel(training(pipeline=2), t5, 2)


def test_inputs_of_fixed_length_are_not_shared():
    vit = bundled().models.model("google/vit-base-patch16-224")
    with pytest.raises(SpecError, match="fixed length"):
        resolve_parallel(training(context=2), vit, 2)


def test_a_pipeline_of_networks_is_not_shared():
    pipeline = LLAMA.model_copy(update={"kind": "diffusion"})
    with pytest.raises(SpecError, match="diffusion pipeline"):
        resolve_parallel(inference(tensor=2), pipeline, 2)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Training(attention="eager", parallel=Parallel(context=2)), "ring attention with flash"),
        (training(offload="optimizer"), "optimizer states needs ZeRO"),
        (Training(profile="litgpt"), "LitGPT cannot be estimated on several GPUs"),
        (training(zero=2, offload="parameters"), "parameters needs ZeRO-3 or FSDP"),
        (
            Training(profile="torchtune", parallel=Parallel(zero=3, offload="nvme")),
            "torchtune can only offload optimizer or",
        ),
        (Training(profile="deepspeed", parallel=Parallel(zero=2, pipeline=2)), "ZeRO up to stage 1 in a pipeline"),
        (Training(profile="megatron", parallel=Parallel(zero=2)), "supports ZeRO up to stage 1"),
        (inference(zero=1), "ZeRO shards training states"),
        (inference(offload="nvme"), "offload nvme is for training only"),
        (inference("llama.cpp", offload="parameters"), "does not use this setting"),
        (inference(sequence=True, tensor=2), "for training only"),
    ],
)
def test_software_does_not_do_everything(workload, said):
    with pytest.raises(SpecError, match=said):
        resolve_parallel(workload, LLAMA, 2)


@pytest.mark.parametrize(
    "workload",
    [
        Training(attention="flash", parallel=Parallel(context=2)),
        training(zero=3, offload="parameters"),
        Training(profile="deepspeed", parallel=Parallel(zero=1, pipeline=2)),
        Training(profile="megatron", parallel=Parallel(zero=1)),
        inference(offload="parameters"),
        inference("vllm", tensor=2),
    ],
)
def test_software_does_this(workload):
    assert resolve_parallel(workload, LLAMA, 2).model_shards * resolve_parallel(workload, LLAMA, 2).data == 2
