"""Denoisers and autoencoders of diffusers, of small sizes."""

from typing import Any, Final

import diffusers
import torch
from torch import nn

Named = tuple[nn.Module, dict[str, Any]]

_BLOCKS: Final = {
    "block_out_channels": (32, 64),
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    "layers_per_block": 1,
    "norm_num_groups": 8,
}
_STATES: Final = (2, 77, 64)


def unconditional() -> Named:
    """Return a small U-Net of images."""
    module = diffusers.UNet2DModel(sample_size=32, attention_head_dim=8, **_BLOCKS)
    return module, {"sample": torch.randn(4, 3, 32, 32), "timestep": torch.tensor([10, 20, 30, 40])}


def conditional(**options: Any) -> Named:
    """Return a small U-Net of latents with a text, as in Stable Diffusion."""
    module = diffusers.UNet2DConditionModel(
        sample_size=32,
        block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        cross_attention_dim=64,
        attention_head_dim=8,
        norm_num_groups=8,
        **options,
    )
    inputs = {"sample": torch.randn(2, 4, 32, 32), "timestep": torch.tensor([10, 20])}
    return module, inputs | {"encoder_hidden_states": torch.randn(_STATES)}


def video_unet() -> Named:
    """Return a small U-Net of videos with a text."""
    module = diffusers.UNet3DConditionModel(
        sample_size=16,
        block_out_channels=(32, 64),
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
        layers_per_block=1,
        cross_attention_dim=64,
        attention_head_dim=8,
        norm_num_groups=8,
    )
    inputs = {"sample": torch.randn(2, 4, 4, 16, 16), "timestep": torch.tensor([10, 20])}
    return module, inputs | {"encoder_hidden_states": torch.randn(_STATES)}


def sequence_unet() -> Named:
    """Return a small U-Net of one-dimensional signals."""
    module = diffusers.UNet1DModel(
        sample_size=1024,
        in_channels=2,
        out_channels=2,
        extra_in_channels=64,
        block_out_channels=(32, 32, 64),
    )
    return module, {"sample": torch.randn(2, 2, 1024), "timestep": torch.tensor([10, 20])}


def autoencoder() -> Named:
    """Return a small variational autoencoder of images."""
    module = diffusers.AutoencoderKL(
        block_out_channels=(32, 64),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
        norm_num_groups=8,
    )
    return module, {"sample": torch.randn(2, 3, 64, 64), "sample_posterior": True}


def tiny_autoencoder() -> Named:
    """Return the tiny autoencoder of images."""
    return diffusers.AutoencoderTiny(), {"sample": torch.randn(1, 3, 64, 64)}


def quantized_autoencoder() -> Named:
    """Return a small autoencoder whose latents are entries of a table."""
    module = diffusers.VQModel(block_out_channels=(32,), norm_num_groups=8, num_vq_embeddings=64)
    return module, {"sample": torch.randn(2, 3, 32, 32)}


def dit() -> Named:
    """Return a small DiT, conditioned on classes."""
    module = diffusers.DiTTransformer2DModel(
        num_attention_heads=4, attention_head_dim=32, in_channels=4, num_layers=3, sample_size=16, norm_num_groups=4
    )
    return module, {
        "hidden_states": torch.randn(4, 4, 16, 16),
        "timestep": torch.tensor([10, 20, 30, 40]),
        "class_labels": torch.tensor([1, 2, 3, 4]),
    }


def pixart() -> Named:
    """Return a small PixArt transformer, conditioned on a text."""
    module = diffusers.PixArtTransformer2DModel(
        num_attention_heads=4,
        attention_head_dim=32,
        cross_attention_dim=128,
        num_layers=3,
        sample_size=16,
        caption_channels=64,
        use_additional_conditions=False,
    )
    return module, {
        "hidden_states": torch.randn(2, 4, 16, 16),
        "encoder_hidden_states": torch.randn(_STATES),
        "timestep": torch.tensor([10, 20]),
        "added_cond_kwargs": {"resolution": None, "aspect_ratio": None},
    }


def stable_diffusion_3() -> Named:
    """Return a small transformer of Stable Diffusion 3."""
    module = diffusers.SD3Transformer2DModel(
        sample_size=16,
        num_layers=3,
        num_attention_heads=4,
        attention_head_dim=32,
        in_channels=4,
        out_channels=4,
        joint_attention_dim=64,
        caption_projection_dim=128,
        pooled_projection_dim=96,
        pos_embed_max_size=16,
    )
    return module, {
        "hidden_states": torch.randn(2, 4, 16, 16),
        "encoder_hidden_states": torch.randn(_STATES),
        "pooled_projections": torch.randn(2, 96),
        "timestep": torch.tensor([10, 20]),
    }


def flux() -> Named:
    """Return a small transformer of Flux."""
    module = diffusers.FluxTransformer2DModel(
        in_channels=16,
        num_layers=2,
        num_single_layers=2,
        attention_head_dim=32,
        num_attention_heads=4,
        joint_attention_dim=64,
        pooled_projection_dim=96,
        axes_dims_rope=(8, 12, 12),
    )
    return module, {
        "hidden_states": torch.randn(2, 64, 16),
        "encoder_hidden_states": torch.randn(_STATES),
        "pooled_projections": torch.randn(2, 96),
        "timestep": torch.tensor([0.1, 0.2]),
        "img_ids": torch.zeros(64, 3),
        "txt_ids": torch.zeros(77, 3),
        "guidance": None,
    }


def controlnet() -> Named:
    """Return a small ControlNet."""
    module = diffusers.ControlNetModel(
        block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        layers_per_block=1,
        cross_attention_dim=64,
        attention_head_dim=8,
        norm_num_groups=8,
        conditioning_embedding_out_channels=(16, 32),
    )
    return module, {
        "sample": torch.randn(2, 4, 32, 32),
        "timestep": torch.tensor([10, 20]),
        "encoder_hidden_states": torch.randn(_STATES),
        "controlnet_cond": torch.randn(2, 3, 64, 64),
    }
