"""Parameters, active parameters and stored format of a whole network, computed by hand."""

import pytest
from small_models import bundled

from planner.dtypes import AS_STORED
from planner.errors import SpecError
from planner.models.architecture import (
    Architecture,
    Layer,
    LayerGroup,
    Moe,
    Norm,
    Stack,
    StoredTensors,
    Tensor,
    embeds_images,
    image_elements,
    image_patches,
    image_tokens,
    with_image_size,
)  # fmt: skip

EXPERTS = Tensor(name="experts", shape=(10,), role="expert", copies=8)
ROUTER = Tensor(name="router", shape=(8, 2), role="router")
HEAD = Tensor(name="head", shape=(3, 2), role="head")
LAYER = Layer(
    feed_forward=Moe(experts=8, top_k=2, intermediate=5), norm=Norm(kind="rms"), norm_count=1, tensors=(EXPERTS, ROUTER)
)
STACK = Stack(name="decoder", hidden=2, groups=(LayerGroup(layer=LAYER, count=3),))
MODEL = Architecture(model_type="m", kind="decoder", hidden=2, stacks=(STACK,), head=(HEAD,))


def test_active_parameters_leave_out_the_experts_that_are_not_selected():
    assert MODEL.parameters == 3 * (80 + 16) + 6
    assert MODEL.active_parameters == MODEL.parameters - 3 * 60
    assert (MODEL.depth, MODEL.has_variable_length, MODEL.fixed_length) == (3, True, None)


@pytest.mark.parametrize(
    ("formats", "dtype", "quantization", "expected"),
    [
        ((), None, None, "bf16"),
        ((), "fp16", None, "fp16"),
        (("BF16",), "bf16", None, "bf16"),
        (("BF16", "F32"), "bf16", None, AS_STORED),
        (("F8_E4M3", "BF16"), "bf16", "fp8", "fp8"),
    ],
)
def test_the_weight_format_is_the_stored_one(formats, dtype, quantization, expected):
    stored = tuple(StoredTensors(format=name, place="layers", elements=1, bytes=2) for name in formats)
    model = MODEL.evolve(stored=stored, stored_dtype=dtype, quantization=quantization)
    assert (model.stored_as, model.stored_bytes) == (expected, 2 * len(formats))


def test_a_pipeline_has_components_and_other_networks_have_stacks():
    for changes in ({"stacks": ()}, {"kind": "diffusion"}):
        with pytest.raises(SpecError, match="a diffusion pipeline needs components"):
            MODEL.evolve(**changes)


def test_matrices_that_may_have_an_adapter_are_named():
    llama = bundled().models.model("meta-llama/Llama-3.2-1B")
    projections = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert llama.adaptable_names == (*projections, "embed_tokens", "lm_head")
    image = next(record for record in bundled().models.records if record.kind == "diffusion")
    assert bundled().models.model(image.id).adaptable_names == ("embed_tokens", "lm_head")


def test_layers_with_routed_experts_are_numbered():
    assert MODEL.expert_layers == (0, 1, 2)
    assert bundled().models.model("stabilityai/stable-diffusion-xl-base-1.0").expert_layers == ()


def test_a_network_has_a_head_of_its_own_unless_it_says_otherwise():
    model = bundled().models.model("meta-llama/Llama-3.1-8B")
    stated = {name: getattr(model, name) for name in model.model_fields_set - {"tied_head"}}
    assert Architecture(**stated).tied_head is False


IMAGE_LAYER = LayerGroup(layer=Layer(norm=Norm(kind="rms"), norm_count=0, tensors=()), count=1)
PATCH = Tensor(name="patch", shape=(8, 3, 14, 14), role="conv")
FIXED = Stack(name="vision", hidden=8, groups=(IMAGE_LAYER,), before=(PATCH,), positions=16 * 16 + 1)
FREE = FIXED.evolve(positions=None, merge=4)
ENCODER = Architecture(model_type="vit", kind="vision-encoder", hidden=8, stacks=(FIXED,))


def test_a_fixed_tower_has_its_own_length_and_a_free_one_that_of_the_image():
    assert image_patches(FIXED, (28, 28)) == 257
    assert image_patches(FREE, (28, 56)) == 2 * 4
    assert image_patches(FREE, (30, 56)) == 4 * 4  # the width is rounded up to two merged squares


def test_merged_patches_make_one_token():
    assert image_tokens(FREE, (56, 56)) == 16 // 4
    assert image_tokens(FIXED, None) == 257


def test_the_class_token_is_not_part_of_the_image():
    assert image_elements(FIXED, 257) == 256 * 3 * 14 * 14
    assert image_elements(FIXED.evolve(before=()), 257) == 0


def test_another_image_size_changes_the_length_and_keeps_the_class_token():
    assert with_image_size(ENCODER, (28, 42)).main.positions == 2 * 3 + 1
    assert with_image_size(ENCODER, (41, 55)).main.positions == 2 * 3 + 1  # what is less than a patch is cut off
    assert with_image_size(ENCODER, None) is ENCODER
    with pytest.raises(SpecError, match="smaller than a patch"):
        with_image_size(ENCODER, (13, 28))


def test_only_models_with_merged_patches_turn_images_into_prompt_tokens():
    assert not embeds_images(ENCODER)
    text = FREE.evolve(name="decoder", before=(), merge=None)
    model = ENCODER.evolve(kind="vision-language", stacks=(FREE, text))
    assert embeds_images(model)
    assert not embeds_images(model.evolve(stacks=(FREE.evolve(merge=None), text)))
