"""Transformers of x-transformers with their options."""

from typing import Any

import torch
import x_transformers
from torch import nn

_WORDS = 4000


def language_model(length: int = 128, batch: int = 4, **options: Any) -> tuple[nn.Module, torch.Tensor]:
    """Return an autoregressive language model, which computes its own loss."""
    layers = x_transformers.Decoder(dim=128, depth=3, heads=4, **options)
    module = x_transformers.TransformerWrapper(num_tokens=_WORDS, max_seq_len=length, attn_layers=layers)
    return x_transformers.AutoregressiveWrapper(module), torch.randint(_WORDS, (batch, length))


def masked_encoder(**options: Any) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return an encoder of texts of different lengths."""
    layers = x_transformers.Encoder(dim=128, depth=3, heads=4, **options)
    module = x_transformers.TransformerWrapper(num_tokens=_WORDS, max_seq_len=128, attn_layers=layers)
    mask = torch.arange(128) < torch.tensor([128, 100, 80, 60]).unsqueeze(1)
    return module, {"x": torch.randint(_WORDS, (4, 128)), "mask": mask}


def image_classifier() -> tuple[nn.Module, torch.Tensor]:
    """Return a vision transformer."""
    layers = x_transformers.Encoder(dim=128, depth=3, heads=4)
    module = x_transformers.ViTransformerWrapper(image_size=64, patch_size=8, num_classes=10, attn_layers=layers)
    return module, torch.randn(4, 3, 64, 64)


def encoder_decoder() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return a model that reads one text and writes another, with its own loss."""
    module = x_transformers.XTransformer(
        dim=128, enc_num_tokens=_WORDS, enc_depth=2, enc_heads=4, enc_max_seq_len=128, dec_num_tokens=_WORDS,
        dec_depth=2, dec_heads=4, dec_max_seq_len=64,
    )  # fmt: skip
    return module, (torch.randint(_WORDS, (4, 128)), torch.randint(_WORDS, (4, 64)))


def continuous() -> tuple[nn.Module, torch.Tensor]:
    """Return a transformer of sequences of vectors."""
    layers = x_transformers.Encoder(dim=128, depth=3, heads=4, rotary_pos_emb=True)
    module = x_transformers.ContinuousTransformerWrapper(dim_in=32, dim_out=8, max_seq_len=256, attn_layers=layers)
    return module, torch.randn(4, 256, 32)
