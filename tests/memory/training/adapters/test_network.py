"""What a partly trained network saves behind its layers, and holds in its backward pass."""

import pytest
from small_models import bundled, small_llama
from traced_families import COMMON, FAMILIES
from tuned_networks import kept, needed, network

from planner.memory.training.adapters.layer import saved_by_tuned_layer
from planner.memory.training.adapters.network import saved_by_tuned_network, tuned_backward_points
from planner.memory.training.adapters.settings import AdapterSettings, Formats, LayerSettings
from planner.memory.training.adapters.trained import LayerTuning, TunedLayers, tuning_of
from planner.memory.training.checkpointing import Checkpoints
from planner.memory.training.saved import BackwardPoint
from planner.models.readers.config_json import read_config
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

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


PLAIN = LayerSettings(Formats(2, 2, 2, 2, autocast=False), "sdpa", None)


def points(statuses, settings=PLAIN, *, checkpointed=False):
    """Return the points of the backward pass of a small llama's layer, of which `statuses` tells a tensor's status."""
    model = small_llama()
    layer = model.main.groups[0].layer
    tuning = LayerTuning(tuple(statuses(tensor.name) for tensor in layer.tensors))
    ledger = saved_by_tuned_layer(layer, 64, settings, tuning)
    return tuned_backward_points(
        TunedLayers(model.main, layer, tuning, 2), settings, ledger, 8, checkpointed=checkpointed
    )


def test_only_a_layer_that_is_recomputed_holds_the_gradients_that_wait():
    waiting = BackwardPoint((3 * 2 + 2) * 64)  # three times the stream and once what products read, in 16 bits
    assert waiting in points(lambda _: "trained", checkpointed=True)
    assert waiting not in points(lambda _: "trained")


def test_adapters_of_the_gate_make_their_result_twice():
    def adapted(name):
        return "adapted" if "gate" in name or "up" in name else "frozen"

    # B's output and its scaled copy in fp32, 160 wide, beside the stream and its normed values in 16 bits, 64 wide.
    made = BackwardPoint(2 * 4 * 160 + (2 + 2) * 64)
    adapters = AdapterSettings(8, 4, 4, dropout=False, dora=False, converts=True)
    assert made in points(adapted, PLAIN._replace(adapters=adapters))
    assert made not in points(adapted)
    cast = PLAIN._replace(formats=PLAIN.formats._replace(autocast=True), adapters=adapters._replace(read=2))
    assert BackwardPoint((2 + 2) * 64) in points(adapted, cast)  # B's output is in 16 bits, as what it is added to


@pytest.mark.parametrize(
    ("autocast", "read", "made"),
    [
        # 160 wide: the activation in 16 bits and its copy in fp32. 64 wide: the stream and its normed values, the
        # base's output, and in fp32 B's and its scaled copy.
        (False, 4, (2 + 4) * 160 + (2 + 2 + 2 + 2 * 4) * 64),
        # What is cast to 16 bits is dropout's result in fp32, beside the copy; the stream, normed values, output.
        (True, 2, (2 + 2 * 4) * 160 + (2 + 2 + 2) * 64),
    ],
)
def test_dropout_of_the_last_projection_holds_the_copy_that_it_reads(autocast, read, made):
    settings = PLAIN._replace(
        formats=PLAIN.formats._replace(autocast=autocast),
        adapters=AdapterSettings(8, 4, read, dropout=True, dora=False, converts=True),
    )
    found = points(lambda name: "adapted" if "down" in name else "frozen", settings)
    assert BackwardPoint(made) in found


def saved(model, kind="none", *trained):
    workload = with_defaults(Training(trainable=trained, compute="bf16", sequence_length=8), model, 1)
    return saved_by_tuned_network(model, tuning_of(model, workload), PLAIN, 1, 8, Checkpoints(kind))


def test_the_first_layer_keeps_its_input_beside_its_own_activations_as_a_checkpoint_alone():
    assert saved(small_llama(), "none", "*").first == 0
    assert saved(small_llama(), "full", "*").first == 8 * 2 * 64


def test_a_head_behind_a_trained_projection_reads_what_that_keeps_anyway():
    common = COMMON | FAMILIES["opt"].sizes | {"model_type": "opt", "word_embed_proj_dim": 256}
    found = saved(read_config(common, "opt"), "none", "*")
    # The norm's input and statistics, the projection's input of width 512, and its result of width 256.
    assert found.behind == 8 * ((2 * 512 + 8) + 2 * 512 + 2 * 256)
