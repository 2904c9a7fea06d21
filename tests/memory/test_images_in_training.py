"""Images in the training sequences of a vision-language model: what a tower and its projector keep of them."""

import pytest
from test_images_in_prompts import LLAVA, MLLAMA, TEXT, TOWER

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, fullest_timeline, resolve_workload
from planner.models.architecture import with_training_images
from planner.models.readers.config_json import read_config
from planner.performance.flops import forward_work, frozen_tower_work
from planner.plan.trace_request import training_fields
from planner.workload.training import Lora, Training

CLIP = {**TOWER, "model_type": "clip_vision_model", "image_size": 336, "patch_size": 14}
PLAIN = {"compute": "bf16", "optimizer": "sgd", "sequence_length": 640}


def resolved(architecture, **asked):
    return resolve_workload(architecture, Training(**{**PLAIN, **asked}), 1)


def parts_of(architecture, phase="forward", **asked):
    """Return the bytes of each term at the end of `phase`."""
    snapshots = fullest_timeline(*resolved(architecture, **asked)).snapshots
    last = [one for one in snapshots if one.name == phase][-1]
    return {term.name: term.bytes for term in last.terms}


def kept(architecture, **asked):
    return parts_of(architecture, **asked)["activations"]


# Each of CLIP's layers keeps of a patch: inputs of two norms, their statistics and their outputs; queries, keys, values
# and attention's output, and a sum for each head; three tensors of quick-GELU. Of LLaVA's six layers five are read.
LAYER = 2 * (2 * 512 + 8 + 2 * 512) + 4 * 2 * 512 + 4 * 8 + 3 * 2 * 2048
# The pixels of a patch, and the norm before the layers.
BEFORE = 3 * 14**2 * 2 + 2 * 512 + 8
# What the projector's first product, its GELU and its second product read of each token.
PROJECTOR = 2 * (512 + 256 + 256)


@pytest.mark.parametrize(
    ("frozen", "more"),
    [("none", 577 * (5 * LAYER + BEFORE) + 576 * PROJECTOR), ("tower", 576 * PROJECTOR), ("all", 0)],
)
def test_a_tower_keeps_what_its_operators_read(frozen, more):
    text = kept(LLAVA, images=0, frozen_vision=frozen)
    assert kept(LLAVA, images=1, frozen_vision=frozen) - text == more
    pixels = parts_of(LLAVA, images=1, frozen_vision=frozen).get("buffers", 0)
    assert pixels == (0 if frozen == "none" else 3 * 336**2 * 2)


# `gpu-planner trace` of transformers 5.23's classes with images, in bf16 with SGD: two sequences with an image each.
TRACED = [
    ("llava", 640, {}, 346_641_452),
    ("llava", 640, {"method": "lora"}, 432_571_276),
    ("llava", 640, {"activation_checkpointing": "full"}, 209_178_596),
    ("gemma3", 320, {}, 353_781_182),
    ("gemma3", 320, {"method": "lora"}, 505_759_166),
    ("gemma3", 320, {"activation_checkpointing": "full"}, 143_702_118),
    ("qwen2_vl", 320, {}, 296_837_836),
    ("qwen2_vl", 320, {"method": "lora"}, 350_945_996),
    ("qwen2_vl", 320, {"activation_checkpointing": "full"}, 155_698_424),
]
LARGE = {
    "llava": {"vision_config": CLIP, "text_config": {"model_type": "llama"}},
    "gemma3": {
        "vision_config": {**TOWER, "image_size": 448, "patch_size": 14, "vision_use_head": False},
        "text_config": {"num_key_value_heads": 1, "head_dim": 64},
    },
    "qwen2_vl": {
        "vision_config": {"depth": 6, "embed_dim": 512, "hidden_size": 256, "num_heads": 8, "patch_size": 14},
        "text_config": {"num_key_value_heads": 2},
    },
}


@pytest.mark.parametrize(("model_type", "length", "options", "traced"), TRACED)
def test_a_step_with_images_peaks_as_traced(model_type, length, options, traced):
    parts = LARGE[model_type]
    text = {**TEXT, "vocab_size": 8000, **parts["text_config"]}
    architecture = read_config({"model_type": model_type, **parts, "text_config": text}, "test")
    size = (448, 224) if model_type == "qwen2_vl" else None
    asked = {"sequence_length": length, "micro_batch": 2, "images": 1, "image_size": size, **options}
    lora = Lora(rank=8) if options.get("method") else None
    peak = fullest_timeline(*resolved(architecture, **asked, lora=lora)).peak()
    # Where the peak is in the tower, its largest layer stands for the one that is reached last.
    assert peak.total == pytest.approx(traced, rel=0.035 if "layer" in peak.explanation else 0.01)


def test_without_images_a_tower_gets_no_gradients():
    states = {"optimizer": "adamw"}
    alone, read = (parts_of(LLAVA, "step", images=count, **states) for count in (0, 1))
    trained = LLAVA.main.parameters + sum(tensor.parameters for tensor in LLAVA.head)
    assert alone["optimizer_states"] == 2 * 2 * trained
    # The sixth layer and the norm behind it are not read.
    unread = LLAVA.stacks[0].groups[0].layer.parameters + 2 * 512
    assert read["optimizer_states"] == 2 * 2 * (LLAVA.parameters - unread)


def test_a_frozen_tower_has_no_adapters():
    names = {"method": "lora", "lora": Lora(rank=8), "images": 1}
    whole, tower, every = (parts_of(LLAVA, frozen_vision=one, **names)["adapters"] for one in ("none", "tower", "all"))
    assert tower - every == 8 * 4 * ((512 + 256) + (256 + 256))
    assert whole - tower == 6 * 8 * 4 * (4 * (512 + 512) + 2 * (512 + 2048))


def test_checkpoints_let_the_patches_require_a_gradient():
    asked = {"images": 1, "frozen_vision": "all", "activation_checkpointing": "full"}
    # The input of each layer, and what the norm before them and the GELU of the projector read.
    more = kept(LLAVA, **asked) - kept(LLAVA, **asked | {"images": 0})
    assert more == 577 * (5 * 512 * 2 + 2 * 512 + 8) + 576 * 2 * 256


def test_tokens_of_an_image_that_see_each_other_need_a_mask():
    # In fp32, without a mask, grouped heads are matrix products that keep all scores.
    vision = {**TOWER, "image_size": 28, "patch_size": 14, "vision_use_head": False}
    text = {**TEXT, "num_key_value_heads": 2, "head_dim": 64}
    gemma = read_config({"model_type": "paligemma", "vision_config": vision, "text_config": text}, "test")
    masked, plain = (kept(gemma, images=count, compute="fp32", frozen_vision="all") for count in (1, 0))
    # Two layers: 4 heads of scores in fp32 and three copies of the queries, instead of a mask of 32 bits.
    assert plain - masked > 2 * 640**2 * 4 * (4 - 2)


def test_windows_of_an_image_are_scored_by_themselves():
    vision = {"depth": 2, "hidden_size": 512, "num_heads": 8, "out_hidden_size": 256, "window_size": 112}
    vision |= {"fullatt_block_indexes": [1], "intermediate_size": 1024, "patch_size": 14}
    config = {"model_type": "qwen2_5_vl", "vision_config": vision, "text_config": {**TEXT, "num_key_value_heads": 2}}
    windowed, images = read_config(config, "test"), {"images": 1, "image_size": (448, 224)}
    whole = read_config({**config, "vision_config": vision | {"fullatt_block_indexes": [0, 1]}}, "test")
    more = kept(whole, attention="eager", **images) - kept(windowed, attention="eager", **images)
    # Of each head fp32 and 16-bit probabilities: 512 patches see each other, or 64 of a window.
    assert more == 512 * (512 - 64) * 8 * (4 + 2)
    assert kept(whole, **images) == kept(windowed, **images)


def test_pixtral_trains_all_images_as_one_sequence():
    vision = {**TOWER, "model_type": "pixtral", "image_size": 448, "patch_size": 14}
    text = {**TEXT, "model_type": "mistral", "num_key_value_heads": 2}
    pixtral = read_config({"model_type": "mistral3", "vision_config": vision, "text_config": text}, "test")
    asked = {"attention": "eager", "image_size": (224, 224)}
    one, two = (kept(pixtral, images=count, **asked) for count in (1, 2))
    # Beside twice as much of everything else, the scores of 512² instead of 2 · 256² pairs.
    scores = 6 * 8 * (4 + 2) * 256**2
    assert two - 2 * one == 2 * scores - kept(pixtral, images=0, **asked)


def test_a_sequence_has_room_for_its_images():
    assert resolved(LLAVA, images=3).workload.sequence_length == 3 * 576 + 1
    assert resolved(LLAVA).workload.images == 0
    assert not any("no images" in note for note in estimate_memory(LLAVA, Training(images=1)).notes)
    assert any("set images" in note for note in estimate_memory(LLAVA, Training()).notes)


def test_images_are_refused_where_nothing_reads_them():
    for architecture, asked, reason in (
        (MLLAMA, {"images": 1}, "does not accept images in its sequences"),
        (MLLAMA, {"frozen_vision": "all"}, "does not accept images in its sequences"),
    ):
        with pytest.raises(SpecError, match=reason):
            resolved(architecture, **asked)
    assert with_training_images(MLLAMA, 1, None, "none", adapts=False) is MLLAMA
    with pytest.raises(SpecError, match="text alone"):
        training_fields(resolved(LLAVA, images=1).workload, LLAVA, 1)


def test_layers_that_nobody_reads_are_counted_from_either_end():
    def unread(**changes):
        config = {"model_type": "llava", "vision_config": CLIP, "text_config": {**TEXT, "model_type": "llama"}}
        return read_config({**config, **changes}, "test").stacks[0].images.unread_layers

    assert unread() == 1
    assert [unread(vision_feature_layer=layer) for layer in (-1, -3, 2, [-2, -5])] == [0, 2, 4, 0]
    # A tower of which nobody reads a layer stays whole.
    tower = LLAVA.stacks[0]
    far = LLAVA.evolve(stacks=(tower.evolve(images=tower.images.evolve(unread_layers=6)), LLAVA.main))
    assert len(with_training_images(far, 1, None, "none", adapts=False).stacks) == 2


def test_a_frozen_tower_runs_forward_alone():
    trained, frozen = (resolved(LLAVA, images=2, frozen_vision=one).architecture for one in ("none", "all"))
    layer = 2 * 577 * 2 * (4 * 512**2 + 2 * 512 * 2048)
    patches = 2 * 577 * 2 * 588 * 512
    text = forward_work(frozen, 1, 1153).layer_flops
    assert forward_work(trained, 1, 1153).layer_flops - text == 5 * layer + patches
    alone = frozen_tower_work(frozen, 1)
    assert alone.layer_flops == 5 * layer + patches
    assert alone.attention_flops == 5 * 2 * 577 * 4 * 512 * 577
    assert frozen_tower_work(trained, 1) is None
