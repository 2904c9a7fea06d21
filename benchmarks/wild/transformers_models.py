"""Models of Hugging Face's transformers, by class, of small sizes."""

from typing import Any, Final

import torch
import torchvision_import  # noqa: F401  # before transformers, which looks for torchvision
import transformers
from torch import nn

Named = tuple[nn.Module, dict[str, Any]]

_VOCABULARY: Final = 8000
_TINY: Final = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512}


def network(architecture: str, **sizes: Any) -> nn.Module:
    """Return the network of the class `architecture`, of `sizes`."""
    module_class = getattr(transformers, architecture)
    configuration = module_class.config_class(**sizes)
    configuration.use_cache = False
    module: nn.Module = module_class(configuration)
    return module


def text(architecture: str, batch: int = 4, length: int = 96, labels: str = "tokens", **sizes: Any) -> Named:
    """Return a network for texts, with token ids and labels for each `tokens`, `sequence` or `span`."""
    for token in ("bos", "eos", "pad"):
        sizes.setdefault(f"{token}_token_id", 1)
    module = network(architecture, **({"vocab_size": _VOCABULARY} | sizes))
    ids = torch.randint(2, _VOCABULARY, (batch, length))
    answers = {
        "tokens": {"labels": ids.clone()},
        "sequence": {"labels": torch.zeros(batch, dtype=torch.int64)},
        "span": {"start_positions": torch.ones(batch, dtype=torch.int64), "end_positions": torch.full((batch,), 5)},
        "none": {},
    }
    return module, {"input_ids": ids, **answers[labels]}


def encoder(architecture: str, batch: int = 4, length: int = 96, labels: str = "tokens", **sizes: Any) -> Named:
    """Return a network like `text` with the usual names of sizes."""
    return text(architecture, batch, length, labels, **(_TINY | sizes))


def encoder_decoder(architecture: str, **sizes: Any) -> Named:
    """Return a network that reads one text and writes another."""
    named = {
        "d_model": 128, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512, "decoder_start_token_id": 1,
    }  # fmt: skip
    module, inputs = text(architecture, **(named | sizes))
    return module, inputs | {"labels": torch.randint(2, _VOCABULARY, (4, 32))}


def image(architecture: str, size: int = 96, batch: int = 4, labels: bool = True, **sizes: Any) -> Named:
    """Return a network for images with class labels."""
    module = network(architecture, **({"image_size": size, "num_labels": 10} | sizes))
    inputs = {"pixel_values": torch.randn(batch, 3, size, size)}
    return module, inputs | ({"labels": torch.randint(10, (batch,))} if labels else {})


def vision(architecture: str, **sizes: Any) -> Named:
    """Return a network like `image` with the usual names of sizes."""
    return image(architecture, **(_TINY | sizes))


def segformer() -> Named:
    """Return a small SegFormer, with a class for each pixel."""
    module = network("SegformerForSemanticSegmentation", num_labels=5, depths=[1, 1, 1, 1])
    return module, {"pixel_values": torch.randn(2, 3, 128, 128), "labels": torch.randint(5, (2, 128, 128))}


def sound(architecture: str, labels: bool = True, **sizes: Any) -> Named:
    """Return a network for sound, with a text for each."""
    module = network(architecture, **(_TINY | {"vocab_size": 40, "mask_time_prob": 0.0, "layerdrop": 0.0} | sizes))
    inputs = {"input_values": torch.randn(2, 8000)}
    return module, inputs | ({"labels": torch.randint(1, 40, (2, 8))} if labels else {})


def sound_classifier() -> Named:
    """Return a small audio spectrogram transformer."""
    module = network("ASTForAudioClassification", **_TINY, max_length=256, num_labels=10)
    return module, {"input_values": torch.randn(2, 256, 128), "labels": torch.randint(10, (2,))}


def whisper() -> Named:
    """Return a small Whisper."""
    module = network(
        "WhisperForConditionalGeneration", d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=512, decoder_ffn_dim=512, vocab_size=_VOCABULARY,
        max_source_positions=200, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    return module, {"input_features": torch.randn(2, 80, 400), "labels": torch.randint(_VOCABULARY, (2, 32))}


def _text_and_image(vocabulary: int = _VOCABULARY) -> dict[str, dict[str, Any]]:
    return {
        "text_config": _TINY | {"vocab_size": vocabulary, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
        "vision_config": _TINY | {"image_size": 64, "patch_size": 16},
    }


def contrastive(architecture: str) -> Named:
    """Return a network that compares texts with images, with its own loss."""
    module = network(architecture, **_text_and_image())
    return module, {
        "input_ids": torch.randint(3, _VOCABULARY, (8, 32)),
        "pixel_values": torch.randn(8, 3, 64, 64),
        "return_loss": True,
    }


def blip() -> Named:
    """Return a small BLIP, which describes images."""
    module = network("BlipForConditionalGeneration", **_text_and_image())
    ids = torch.randint(3, _VOCABULARY, (4, 32))
    return module, {"input_ids": ids, "pixel_values": torch.randn(4, 3, 64, 64), "labels": ids.clone()}


def llava() -> Named:
    """Return a small LLaVA, in whose texts an image takes the place of 16 tokens."""
    sizes = _text_and_image()
    language = transformers.LlamaConfig(**sizes["text_config"])
    configuration = transformers.LlavaConfig(
        text_config=language,
        vision_config=transformers.CLIPVisionConfig(**sizes["vision_config"]),
        image_token_index=7,
        image_seq_length=16,
    )
    ids = torch.randint(8, _VOCABULARY, (2, 64))
    ids[:, 1:17] = 7
    images = torch.randn(2, 3, 64, 64)
    return transformers.LlavaForConditionalGeneration(configuration), {
        "input_ids": ids,
        "pixel_values": images,
        "labels": ids.clone(),
    }


def vilt() -> Named:
    """Return a small ViLT, which answers questions on images."""
    module = network("ViltForQuestionAnswering", **_TINY, image_size=96, num_labels=10, vocab_size=_VOCABULARY)
    return module, {
        "input_ids": torch.randint(3, _VOCABULARY, (2, 16)),
        "pixel_values": torch.randn(2, 3, 96, 96),
        "pixel_mask": torch.ones(2, 96, 96, dtype=torch.int64),
        "labels": torch.rand(2, 10),
    }


def layoutlm() -> Named:
    """Return a small LayoutLM, for words with their places on a page."""
    module, inputs = encoder("LayoutLMForTokenClassification", num_labels=5)
    boxes = torch.arange(4).mul(50).expand(*inputs["input_ids"].shape, 4).contiguous()
    return module, inputs | {"bbox": boxes, "labels": inputs["labels"] % 5}


def time_series(architecture: str) -> Named:
    """Return a network that continues series of numbers."""
    module = network(
        architecture, num_input_channels=5, context_length=128, prediction_length=24, patch_length=8, patch_stride=8,
        d_model=64, num_hidden_layers=2, num_layers=2,
    )  # fmt: skip
    return module, {"past_values": torch.randn(8, 128, 5), "future_values": torch.randn(8, 24, 5)}


def decision() -> Named:
    """Return a small decision transformer, for states, actions and returns."""
    module = network("DecisionTransformerModel", state_dim=17, act_dim=4, hidden_size=128, n_layer=2, n_head=4)
    steps = (4, 20)
    return module, {
        "states": torch.randn(*steps, 17),
        "actions": torch.randn(*steps, 4),
        "rewards": torch.randn(*steps, 1),
        "returns_to_go": torch.randn(*steps, 1),
        "timesteps": torch.arange(20).expand(steps).contiguous(),
        "attention_mask": torch.ones(steps),
    }
