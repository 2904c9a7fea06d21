"""Patches and tokens of images, computed by hand."""

import pytest

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.models.images import embeds_images, image_elements, image_patches, image_tokens, with_image_size
from planner.models.layers import Layer, LayerGroup, Norm, Stack, Tensor

LAYER = LayerGroup(layer=Layer(norm=Norm(kind="rms"), norm_count=0, tensors=()), count=1)
PATCH = Tensor(name="patch", shape=(8, 3, 14, 14), role="conv")
FIXED = Stack(name="vision", hidden=8, groups=(LAYER,), before=(PATCH,), positions=16 * 16 + 1)
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
