"""Images that are read: by encoders at other sizes than their own, and as a part of a prompt."""

import pytest

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.models.architecture import (
    DEFAULT_SIDE,
    embeds_images,
    image_elements,
    image_patches,
    image_tokens,
    with_image_size,
)
from planner.models.readers.config_json import read_config
from planner.workload.defaults import with_defaults
from planner.workload.training import Training
from planner.workload.workload import Inference

TEXT = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 1000,
}
TOWER = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6, "num_attention_heads": 8}
LLAVA = read_config(
    {
        "model_type": "llava",
        "vision_config": {**TOWER, "model_type": "clip_vision_model", "image_size": 336, "patch_size": 14},
        "text_config": {**TEXT, "model_type": "llama"},
    },
    "test",
)
GEMMA3 = read_config(
    {
        "model_type": "gemma3",
        "vision_config": {**TOWER, "image_size": 448, "patch_size": 14, "vision_use_head": False},
        "text_config": {**TEXT, "num_key_value_heads": 1, "head_dim": 64},
    },
    "test",
)
QWEN2_VL = read_config(
    {
        "model_type": "qwen2_vl",
        "vision_config": {"depth": 6, "embed_dim": 512, "hidden_size": 256, "num_heads": 8, "patch_size": 14},
        "text_config": {**TEXT, "num_key_value_heads": 2},
    },
    "test",
)
MLLAMA = read_config({"model_type": "mllama"}, "test")
VIT = read_config(
    {"model_type": "vit", **TOWER, "image_size": 224, "patch_size": 16, "architectures": ["ViTForImageClassification"]},
    "test",
)


def reading(architecture, **asked):
    """Return the activations and buffers while the tower reads the images."""
    filled = with_defaults(Inference(**asked), architecture, 1)
    snapshot = next(one for one in fullest_timeline(architecture, filled).snapshots if "tower" in one.explanation)
    return sum(term.bytes for term in snapshot.written() if term.name in ("activations", "buffers"))


@pytest.mark.parametrize(
    ("architecture", "prompt", "traced"),
    # `gpu-planner trace` of transformers 5.23's classes, bf16, two sequences with an image each; peak of the forward
    # pass beside parameters, buffers and inputs, and the pixels: 2 × 3 × 336² or 448² numbers of 2 bytes.
    [(LLAVA, 640, 19_562_496 + 1_354_752), (GEMMA3, 320, 25_498_624 + 2_408_448)],
)
def test_a_tower_holds_what_was_traced(architecture, prompt, traced):
    found = reading(architecture, batch=2, prompt_length=prompt, context_length=prompt)
    assert found == pytest.approx(traced, rel=0.001)


# Two images of 8 × 16 patches, bf16. Beside their pixels (3 × 2 × 14² each) and the embedded prompt of 100 tokens:
# Qwen's projection of queries, keys and values, six fp32 copies while it rotates, the layer's input and that normed,
# and cosines and sines of 64 numbers. Eager scores are those of one image, which is less.
PIXELS, PROMPT = 256 * 1176 * 2, 100 * 256 * 2
QWEN_ROTATES = PIXELS + PROMPT + 256 * (3 * 512 * 2 + 6 * 512 * 4 + 2 * 512 * 2 + 2 * 64 * 4)
READ = {"prompt_length": 100, "context_length": 100, "images": 2, "image_size": (224, 112)}
FP32 = {"weights": "fp32", "compute": "fp32", "kv_cache": "fp32"}


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_qwen_rotates_patches_in_fp32(attention):
    assert reading(QWEN2_VL, attention=attention, **READ) == QWEN_ROTATES


def test_in_fp32_qwen_rotates_without_copies():
    tower = QWEN2_VL.stacks[0]
    layer = tower.groups[0].layer
    narrow = layer.evolve(feed_forward=layer.feed_forward.evolve(intermediate=512))
    tower = tower.evolve(groups=(tower.groups[0].evolve(layer=narrow),))
    expected = 2 * (PIXELS + PROMPT) + 256 * (3 * 512 * 4 + 4 * 512 * 4 + 2 * 512 * 4 + 2 * 64 * 4)
    assert reading(QWEN2_VL.evolve(stacks=(tower, QWEN2_VL.main)), attention="sdpa", **READ, **FP32) == expected


def test_qwens_windows_need_no_masks():
    vision = {"depth": 4, "hidden_size": 512, "num_heads": 8, "out_hidden_size": 256, "window_size": 112}
    vision |= {"fullatt_block_indexes": [1], "intermediate_size": 1024, "patch_size": 14}
    text = {**TEXT, "num_key_value_heads": 2}
    windowed = read_config({"model_type": "qwen2_5_vl", "vision_config": vision, "text_config": text}, "test")
    assert reading(windowed, attention="sdpa", **READ) == QWEN_ROTATES


def test_pixtral_masks_all_pairs_of_patches():
    vision = {**TOWER, "model_type": "pixtral", "image_size": 448, "patch_size": 14}
    text = {**TEXT, "model_type": "mistral", "num_key_value_heads": 2}
    pixtral = read_config({"model_type": "mistral3", "vision_config": vision, "text_config": text}, "test")
    # Gate, up and their product beside five tensors of the stream, and a mask for 256² pairs.
    expected = 256 * 588 * 2 + PROMPT + 256 * (3 * 2048 + 5 * 512) * 2 + 256**2 * 2
    assert reading(pixtral, attention="sdpa", **READ) == expected


def beside_the_prompt(architecture, name, **asked):
    """Return the bytes of the terms `name` while layers read the whole prompt."""
    filled = with_defaults(Inference(**asked), architecture, 1)
    snapshot = next(
        one for one in fullest_timeline(architecture, filled).snapshots if "whole prompt" in one.explanation
    )
    return sum(term.bytes for term in snapshot.written() if term.name == name)


def test_what_the_code_names_of_images_lives_while_the_prompt_is_read():
    # LLaVA: pixels, the features and their concatenation, the last hidden states and those that are projected.
    llava = beside_the_prompt(LLAVA, "buffers", prompt_length=640, context_length=640)
    assert llava == 3 * 336**2 * 2 + 2 * 576 * 256 * 2 + 2 * 577 * 512 * 2
    # Gemma 3: two masks of 320² booleans.
    gemma = beside_the_prompt(GEMMA3, "buffers", prompt_length=320, context_length=320)
    assert gemma == 3 * 448**2 * 2 + 256 * 256 * 2 + 1024 * 512 * 2 + 2 * 320**2


def test_a_masked_prompt_is_read_by_a_fused_kernel():
    text = {**TEXT, "num_key_value_heads": 2, "head_dim": 64}
    vision = {**TOWER, "image_size": 28, "patch_size": 14, "vision_use_head": False}
    gemma = read_config({"model_type": "paligemma", "vision_config": vision, "text_config": text}, "test")
    asked = {"prompt_length": 1000, "context_length": 1000, **FP32}
    # Queries, attention's output, repeated keys and values beside three of the stream; a bias for each pair.
    assert beside_the_prompt(gemma, "activations", images=1, **asked) == 1000 * 4 * (7 * 256 + 1000)
    # Without a mask, grouped heads in fp32 are matrix products: 4 heads × 1000² scores, softmax and its result.
    assert beside_the_prompt(gemma, "activations", images=0, **asked) > 4 * 1000**2 * 3 * 4


@pytest.mark.parametrize(
    ("architecture", "size", "patches", "tokens"),
    [
        (LLAVA, None, 577, 576),
        (GEMMA3, None, 1024, 256),
        (QWEN2_VL, (448, 224), 512, 128),
        (QWEN2_VL, (450, 224), 544, 136),
        (QWEN2_VL, None, (2 * 37) ** 2, 37**2),
    ],
)
def test_an_image_becomes_so_many_tokens(architecture, size, patches, tokens):
    tower = architecture.stacks[0]
    assert (image_patches(tower, size), image_tokens(tower, size)) == (patches, tokens)
    assert DEFAULT_SIDE == 1024


def test_a_prompt_has_room_for_its_images():
    filled = with_defaults(Inference(prompt_length=16, context_length=32, images=3), LLAVA, 1)
    assert (filled.images, filled.prompt_length, filled.context_length) == (3, 3 * 576 + 1, 3 * 576 + 1)
    one = estimate_memory(LLAVA, Inference(batch=4))
    assert not any("images" in note for note in one.notes)
    assert estimate_memory(LLAVA, Inference(batch=4, images=8)).total_bytes > one.total_bytes


def test_without_images_the_tower_only_takes_its_parameters():
    found = estimate_memory(LLAVA, Inference(images=0))
    assert any("but no images and no activations of the tower" in note for note in found.notes)
    assert with_defaults(Inference(profile="vllm"), LLAVA, 1).images == 0


def test_images_are_refused_where_nothing_reads_them():
    text = read_config({**TEXT, "model_type": "llama"}, "test")
    for architecture, asked, reason in (
        (text, {"images": 1}, "does not accept images in its prompt"),
        (text, {"image_size": 224}, "does not accept images"),
        (MLLAMA, {"images": 1}, "does not accept images in its prompt"),
        (LLAVA, {"images": 1, "profile": "vllm"}, "has its own image processing"),
    ):
        with pytest.raises(SpecError, match=reason):
            with_defaults(Inference(**asked), architecture, 1)
    assert not embeds_images(MLLAMA)
    assert not embeds_images(text)


FAMILIES = ("vit", "deit", "dinov2", "beit", "clip_vision_model", "siglip_vision_model")
QUICK = "vit"


@pytest.mark.parametrize(
    "model_type", [pytest.param(name, marks=() if name == QUICK else pytest.mark.oracle) for name in FAMILIES]
)
def test_an_encoder_peaks_as_traced(model_type):
    from traced_families import Family, compare_reading

    sizes = {"num_key_value_heads": 8, "image_size": 64, "patch_size": 8}
    traced, predicted = compare_reading(Family(model_type, sizes), Inference(weights="bf16", compute="bf16", batch=8))
    assert predicted == pytest.approx(traced, rel=0.0002)


@pytest.mark.parametrize("compute", ["bf16", "amp-bf16"])
@pytest.mark.parametrize("model_type", ["dinov2", "beit", "deit"])
@pytest.mark.oracle
def test_an_encoder_trains_as_traced(model_type, compute):
    from traced_families import Family, compare

    found = compare(Family(model_type, {"num_key_value_heads": 8}), Training(compute=compute, micro_batch=4))
    assert found.predicted_peak == pytest.approx(found.traced_peak, rel=0.01)
    assert found.predicted_saved == pytest.approx(found.traced_saved, rel=0.035)


def test_what_a_learned_vector_scales_is_kept():
    vit = VIT.evolve(stacks=(_scaled(VIT.main),))
    plain, scaled = (
        next(share.bytes for share in one.peak.shares if share.name == "activations")
        for one in (estimate_memory(net, Training(micro_batch=8, compute="bf16")) for net in (VIT, vit))
    )
    assert scaled - plain == 8 * 197 * 6 * 2 * 2 * 512


def _scaled(stack):
    groups = tuple(group.evolve(layer=group.layer.evolve(scaled=True)) for group in stack.groups)
    return stack.evolve(groups=groups)


@pytest.mark.parametrize(("size", "positions"), [((224, 224), 197), ((384, 384), 577), ((448, 224), 393)])
def test_an_encoder_reads_other_sizes(size, positions):
    assert with_image_size(VIT, size).fixed_length == positions
    small, large = (estimate_memory(VIT, Inference(batch=8, image_size=one)) for one in ((32, 32), size))
    assert small.total_bytes < large.total_bytes


def test_training_keeps_more_of_larger_images():
    usual, large = (estimate_memory(VIT, Training(micro_batch=8, image_size=size)) for size in (None, "448x448"))
    saved = [next(share.bytes for share in one.peak.shares if share.name == "activations") for one in (usual, large)]
    assert saved[1] / saved[0] == pytest.approx(785 / 197, rel=0.05)


def test_sizes_that_cannot_be():
    resnet = VIT.evolve(stacks=(VIT.main.evolve(before=()),))
    for architecture, size, reason in ((VIT, (8, 224), "smaller than a patch"), (resnet, (64, 64), "into patches")):
        with pytest.raises(SpecError, match=reason):
            with_image_size(architecture, size)
    assert with_image_size(LLAVA, (64, 64)) is LLAVA
    assert image_elements(VIT.main, 197) == 224 * 224 * 3
    assert image_elements(resnet.main, 197) == 0
