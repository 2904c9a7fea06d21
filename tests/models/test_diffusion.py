"""Modules of a U-Net in their order, and the networks of a diffusion pipeline."""

import pytest

from planner.errors import SpecError
from planner.models.diffusion import Component, ImageDecoder, UNet, find_networks
from planner.models.layers import Tensor

UNET = UNet(
    channels=(2, 4),
    depths=(1, 0),
    heads=(1, 2),
    mid_depth=1,
    layers=1,
    latent_channels=4,
    text_width=8,
    sample_size=64,
)
DECODER = ImageDecoder(channels=(2, 4, 4), layers=1, latent_channels=4, sample_size=512)
TENSORS = (Tensor(name="a", shape=(2, 3), role="linear"), Tensor(name="b", shape=(5,), role="bias"))


def test_a_unet_goes_down_through_the_middle_and_up_with_skip_connections():
    steps = [(step.kind, step.level, step.into, step.out, step.skip) for step in UNET.steps()]
    assert steps == [
        ("resnet", 0, 2, 2, 0), ("transformer", 0, 2, 2, 0), ("down", 0, 2, 2, 0), ("resnet", 1, 2, 4, 0),
        ("mid", 1, 4, 4, 0),
        ("resnet", 1, 4 + 4, 4, 4), ("resnet", 1, 4 + 2, 4, 2), ("up", 1, 4, 4, 0),
        ("resnet", 0, 4 + 2, 2, 2), ("transformer", 0, 2, 2, 0),
        ("resnet", 0, 2 + 2, 2, 2), ("transformer", 0, 2, 2, 0),
    ]  # fmt: skip


def test_each_level_but_one_doubles_the_side_of_the_image():
    assert DECODER.scale == 4


def test_a_pipeline_needs_a_denoiser_and_a_decoder():
    unet = Component(name="unet", part="denoiser", tensors=TENSORS, network=UNET)
    vae = Component(name="vae", part="image-decoder", tensors=TENSORS, network=DECODER)
    assert find_networks((vae, unet)) == (UNET, DECODER)
    with pytest.raises(ValueError, match="a denoiser and a decoder"):
        find_networks((unet,))


def test_a_component_counts_its_parameters_and_its_largest_tensor():
    component = Component(name="unet", part="denoiser", tensors=TENSORS)
    assert (component.parameters, component.largest_tensor) == (11, 6)


def test_a_prompt_may_be_one_token() -> None:
    assert Component(name="a", part="text", tensors=(), tokens=1).tokens == 1
    with pytest.raises(SpecError, match="tokens"):
        Component(name="a", part="text", tensors=(), tokens=0)
