"""Which ways to spread a workload go with a network, a number of cards and the software."""

import pytest
from small_models import DEEPSEEK, GPT2, MIXTRAL, bundled, other, small_llama

from planner.errors import SpecError
from planner.workload.layout import laid_out
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
    assert laid_out(training(tensor=2, pipeline=2), LLAMA, cards).data == replicas


def test_replicas_may_be_named():
    assert laid_out(training(tensor=2, data=3), LLAMA, 6).data == 3
    assert laid_out(training(), LLAMA, 6).data == 6


@pytest.mark.parametrize(
    ("parallel", "cards", "field", "said"),
    [
        ({"tensor": 3}, 4, "parallel", "4 cards are not a multiple of tensor 3"),
        ({"tensor": 2, "pipeline": 3}, 8, "parallel", "8 cards are not a multiple of tensor 2 × pipeline 3"),
        ({"data": 2, "tensor": 2}, 8, "parallel", "data 2 × tensor 2 are 4 cards, and there are 8"),
        ({"data": 2}, 8, "parallel.data", "2 replicas need as many cards, not 8"),
        ({"tensor": 8}, 8, "parallel.tensor", "4 heads cannot be divided by 8"),
        ({"pipeline": 8}, 8, "parallel.pipeline", "6 layers cannot fill 8 stages"),
        ({"pipeline": 2, "interleave": 2}, 2, "parallel.interleave", "6 layers cannot be divided into 4 even groups"),
        ({"pipeline": 2, "pipeline_layers": (2, 3)}, 2, "parallel.pipeline_layers", "have 5 layers, and the network 6"),
        ({"expert": 2}, 2, "parallel.expert", "no experts to share"),
    ],
)
def test_a_llama_is_not_shared_so(parallel, cards, field, said):
    with pytest.raises(SpecError, match=said) as caught:
        laid_out(training(**parallel), LLAMA, cards)
    assert caught.value.field == field


def test_degrees_that_go_are_taken():
    assert laid_out(training(pipeline=3, interleave=2), LLAMA, 3).interleave == 2
    assert laid_out(training(pipeline=4, pipeline_layers=(1, 1, 2, 2)), LLAMA, 4).pipeline_layers == (1, 1, 2, 2)
    assert laid_out(training(tensor=4), LLAMA, 4).tensor == 4
    assert laid_out(training(expert=8), ROUTED, 16).data == 16
    assert laid_out(training(tensor=2), LATENT, 2).data == 1


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
            "width of 150 cannot be divided by 4",
        ),
        (ROUTED, {"expert": 3}, 3, "8 experts cannot be divided by 3"),
        (ROUTED, {"expert": 4, "data": 2, "tensor": 2}, 4, "2 cannot be divided by 4"),
        (other("gpt2", GPT2), {"tensor": 8}, 8, "12 heads cannot be divided by 8"),
    ],
)
def test_other_networks_are_not_shared_so(network, parallel, cards, said):
    with pytest.raises(SpecError, match=said):
        laid_out(training(**parallel), network, cards)


def test_two_towers_are_not_cut_into_stages():
    t5 = bundled().models.model("google-t5/t5-11b")
    with pytest.raises(SpecError, match="encoder and a decoder"):
        laid_out(training(pipeline=2), t5, 2)


def test_inputs_of_fixed_length_are_not_shared():
    vit = bundled().models.model("google/vit-base-patch16-224")
    with pytest.raises(SpecError, match="fixed length"):
        laid_out(training(context=2), vit, 2)


def test_a_pipeline_of_networks_is_not_shared():
    pipeline = LLAMA.model_copy(update={"kind": "diffusion"})
    with pytest.raises(SpecError, match="diffusion pipeline"):
        laid_out(inference(tensor=2), pipeline, 2)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Training(attention="eager", parallel=Parallel(context=2)), "ring with flash attention"),
        (training(offload="optimizer"), "offloaded by ZeRO"),
        (Training(profile="litgpt"), "LitGPT on several cards"),
        (training(zero=2, offload="parameters"), "offloaded by ZeRO-3 and FSDP"),
        (
            Training(profile="torchtune", parallel=Parallel(zero=3, offload="nvme")),
            "torchtune offloads optimizer or",
        ),
        (Training(profile="deepspeed", parallel=Parallel(zero=2, pipeline=2)), "ZeRO 1 at most"),
        (Training(profile="megatron", parallel=Parallel(zero=2)), "shares up to ZeRO 1"),
        (inference(zero=1), "ZeRO shares what training keeps"),
        (inference(offload="nvme"), "no nvme to offload"),
        (inference("llama.cpp", offload="parameters"), "a way of its own"),
        (inference(sequence=True, tensor=2), "in training only"),
    ],
)
def test_software_does_not_do_everything(workload, said):
    with pytest.raises(SpecError, match=said):
        laid_out(workload, LLAMA, 2)


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
    assert laid_out(workload, LLAMA, 2).model_shards * laid_out(workload, LLAMA, 2).data == 2
