"""Networks of Hugging Face's transformers that take more than tokens, with small configurations."""

from typing import Any

import torch
import transformers
from torch import nn

Named = tuple[nn.Module, dict[str, Any]]


def vit() -> Named:
    """Return a small vision transformer, with labels."""
    config = transformers.ViTConfig(
        hidden_size=384, num_hidden_layers=8, num_attention_heads=6, intermediate_size=1536, num_labels=100
    )
    inputs = {"pixel_values": torch.randn(8, 3, 224, 224), "labels": torch.randint(100, (8,))}
    return transformers.ViTForImageClassification(config), inputs


def swin() -> Named:
    """Return a Swin transformer of half the depth of its tiny form, with labels."""
    config = transformers.SwinConfig(embed_dim=96, depths=[2, 2, 2, 2], num_heads=[3, 6, 12, 24], num_labels=100)
    inputs = {"pixel_values": torch.randn(4, 3, 224, 224), "labels": torch.randint(100, (4,))}
    return transformers.SwinForImageClassification(config), inputs


def clip() -> Named:
    """Return a small CLIP with its contrastive loss."""
    text = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 4}
    image = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6, "num_attention_heads": 6}
    config = transformers.CLIPConfig(
        text_config=text | {"vocab_size": 16_000}, vision_config=image | {"image_size": 160, "patch_size": 16}
    )
    inputs = {
        "input_ids": torch.randint(16_000, (16, 32)),
        "pixel_values": torch.randn(16, 3, 160, 160),
        "return_loss": True,
    }
    return transformers.CLIPModel(config), inputs


def whisper() -> Named:
    """Return a Whisper of the tiny size."""
    config = transformers.WhisperConfig(
        d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6,
        encoder_ffn_dim=1536, decoder_ffn_dim=1536, vocab_size=16_000, max_source_positions=400,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )  # fmt: skip
    config.use_cache = False
    inputs = {"input_features": torch.randn(4, 80, 800), "labels": torch.randint(16_000, (4, 64))}
    return transformers.WhisperForConditionalGeneration(config), inputs


def wav2vec2() -> Named:
    """Return a small wav2vec 2.0 encoder of sound."""
    config = transformers.Wav2Vec2Config(
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        mask_time_prob=0.0,
        layerdrop=0.0,
    )
    return transformers.Wav2Vec2Model(config), {"input_values": torch.randn(4, 16_000)}


def detr_decoder() -> Named:
    """Return the plain transformer of PyTorch, encoder and decoder."""
    module = nn.Transformer(256, 8, 3, 3, 1024, batch_first=True)
    return module, {"src": torch.randn(8, 196, 256), "tgt": torch.randn(8, 50, 256)}
