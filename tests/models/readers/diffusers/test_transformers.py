"""Denoising transformers: parameters of FLUX, Stable Diffusion 3 and PixArt by their options."""

from contextlib import nullcontext

import pytest
from made_pipelines import PIPELINE, VAE

from planner.errors import ModelFileError
from planner.models.readers.config_json import read_config


def test_stable_diffusion_3_5_has_a_second_attention():
    transformer = {
        "_class_name": "SD3Transformer2DModel",
        "num_layers": 3,
        "num_attention_heads": 2,
        "attention_head_dim": 8,
        "joint_attention_dim": 32,
        "pooled_projection_dim": 16,
        "pos_embed_max_size": 8,
    }
    one = read_config({**PIPELINE, "components": {"transformer": transformer, "vae": VAE}}, "test")
    twice = {**transformer, "dual_attention_layers": [0, 1], "qk_norm": "rms_norm"}
    two = read_config({**PIPELINE, "components": {"transformer": twice, "vae": VAE}}, "test")
    hidden = 16
    second = 4 * (hidden * hidden + hidden) + 3 * hidden * hidden + 3 * hidden
    assert two.parameters - one.parameters == 2 * second + 2 * 2 * 8 + 3 * 4 * 8
    assert one.components[0].buffers == 8 * 8 * hidden
    for side, refused in ((4096, False), (4097, True)):
        components = {"transformer": {**transformer, "pos_embed_max_size": side}, "vae": VAE}
        with pytest.raises(ModelFileError, match="pos_embed_max_size") if refused else nullcontext():
            read_config({**PIPELINE, "components": components}, "test")


def test_pixart_can_embed_the_image_size():
    transformer = {"_class_name": "PixArtTransformer2DModel", "num_layers": 1, "caption_channels": 32}
    plain = read_config(
        {**PIPELINE, "components": {"transformer": {**transformer, "use_additional_conditions": False}, "vae": VAE}},
        "test",
    )
    told = read_config({**PIPELINE, "components": {"transformer": transformer, "vae": VAE}}, "test")
    assert told.parameters - plain.parameters == 2 * ((256 * 384 + 384) + (384 * 384 + 384))


def test_flux_without_single_blocks():
    transformer = {"_class_name": "FluxTransformer2DModel", "num_layers": 1, "num_single_layers": 0}
    found = read_config({**PIPELINE, "components": {"transformer": transformer, "vae": VAE}}, "test")
    assert not any(tensor.name.startswith("single") for tensor in found.components[0].tensors)
