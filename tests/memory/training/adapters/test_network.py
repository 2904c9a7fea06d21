"""What a partly trained network saves behind its layers, and holds in its backward pass."""

import pytest
from small_models import bundled
from traced_families import COMMON, FAMILIES
from tuned_networks import kept, needed, network

from planner.models.readers.config_json import read_config

MAMBA = {
    "model_type": "mamba",
    "vocab_size": 1000,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "state_size": 16,
    "conv_kernel": 4,
    "time_step_rank": 8,
}


VISION_LANGUAGE = "Qwen/Qwen2-VL-2B-Instruct"


def test_networks_without_feed_forward_blocks_or_attention_are_adapted_too():
    mamba = read_config(MAMBA, "mamba")
    lora, full = (needed(mamba, method=method, compute="bf16") for method in ("lora", "full"))
    assert lora.total_bytes < full.total_bytes
    some = needed(mamba, method="lora", compute="bf16", lora={"targets": ("out_proj",)})
    assert kept(some) < kept(lora)


@pytest.mark.parametrize("name", ["llama", "gpt_neox", "deepseek_v3"])
def test_eager_attention_under_adapters_holds_the_scores_of_its_backward_pass(name):
    eager, fused = (
        needed(network(name), method="lora", attention=kind, sequence_length=1024) for kind in ("eager", "sdpa")
    )
    assert eager.total_bytes > fused.total_bytes


def test_what_stands_behind_the_layers_keeps_its_input_and_result():
    family = FAMILIES["bert"]
    common = COMMON | family.sizes | {"model_type": "bert"}
    masked, bare = (
        read_config(common | {"architectures": [kind]}, "bert") for kind in ("BertForMaskedLM", "BertModel")
    )
    assert kept(needed(masked, method="lora")) > kept(needed(bare, method="lora"))


def test_towers_of_vision_language_models_are_adapted_but_not_run():
    model = bundled().models.model(VISION_LANGUAGE)
    text = needed(model, method="lora", compute="bf16")
    assert kept(text) > 0
    assert text.term("adapters").bytes > 0
