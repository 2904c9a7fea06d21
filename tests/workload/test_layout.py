"""Which ways to spread a workload go with a network, a number of cards and the software."""

import pytest
from small_models import DEEPSEEK, GPT2, MIXTRAL, bundled, other, small_llama

from planner.errors import SpecError
from planner.workload.layout import resolve_parallel
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

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
        ({"tensor": 3}, 4, "parallel", "4 cards are not a multiple of tensor 3"),
        ({"tensor": 2, "pipeline": 3}, 8, "parallel", "8 cards are not a multiple of tensor 2 × pipeline 3"),
        ({"data": 2, "tensor": 2}, 8, "parallel", "data 2 × tensor 2 needs 4 cards, not 8"),
        ({"data": 2}, 8, "parallel.data", "data parallelism of 2 needs as many cards, not 8"),
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
        (Training(profile="litgpt"), "LitGPT cannot be estimated on several cards"),
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
