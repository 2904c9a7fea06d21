"""Small pipelines: their components' configurations, and folders of files as diffusers saves them."""

import json
from pathlib import Path

from made_files import safetensors_bytes, safetensors_header, tensor_bytes

from planner.models.architecture import Architecture

CLIP = {
    "model_type": "clip_text_model",
    "architectures": ["CLIPTextModel"],
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 77,
    "vocab_size": 100,
}
UNET = {
    "_class_name": "UNet2DConditionModel",
    "block_out_channels": [32, 64],
    "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
    "layers_per_block": 1,
    "cross_attention_dim": 32,
    "sample_size": 8,
}
VAE = {
    "_class_name": "AutoencoderKL",
    "block_out_channels": [32, 32, 64, 64],
    "layers_per_block": 1,
    "latent_channels": 4,
    "sample_size": 64,
}
PIPELINE = {
    "model_type": "diffusers",
    "_class_name": "StableDiffusionPipeline",
    "components": {"text_encoder": CLIP, "unet": UNET, "vae": VAE},
}
INDEX = {
    "_class_name": "StableDiffusionPipeline",
    "_diffusers_version": "0.40.0",
    "feature_extractor": [None, None],
    "scheduler": ["diffusers", "PNDMScheduler"],
    "requires_safety_checker": False,
    "text_encoder": ["transformers", "CLIPTextModel"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "unet": ["diffusers", "UNet2DConditionModel"],
    "vae": ["diffusers", "AutoencoderKL"],
}


def weights_of(parameters: int, dtype: str = "F16") -> bytes:
    """Return a safetensors file with one tensor of so many elements."""
    tensors = {"weight": (dtype, [parameters])}
    return safetensors_bytes(safetensors_header(tensors), tensor_bytes(tensors))


def pipeline_files(read: Architecture) -> dict[str, bytes]:
    """Return the files of `PIPELINE`, which was read as `read`: all weights but the text encoder's."""
    counts = {component.name: component.parameters for component in read.components}
    return {
        "model_index.json": json.dumps(INDEX).encode(),
        "scheduler/scheduler_config.json": b"{}",
        "text_encoder/config.json": json.dumps(CLIP).encode(),
        "unet/config.json": json.dumps(UNET).encode(),
        "unet/diffusion_pytorch_model.fp16.safetensors": weights_of(counts["unet"]),
        "vae/config.json": json.dumps(VAE).encode(),
        "vae/diffusion_pytorch_model.safetensors": weights_of(counts["vae"], "F32"),
    }


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    """Write `files` below `folder`, and return it."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
