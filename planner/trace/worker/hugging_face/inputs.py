"""Inputs of transformers networks, derived from their configuration."""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn

from planner.errors import TraceError
from planner.trace.request import TraceRequest
from planner.trace.worker.building.inputs import random_integers
from planner.trace.worker.hugging_face.networks import parameters_of_forward

_TRAINING_TOKENS: Final = 2_048
_PROMPT_TOKENS: Final = 4_096
"""Sequence lengths in tokens by task: the defaults of training and inference workloads."""
_AUDIO_SECONDS: Final = 10
_SAMPLES_PER_SECOND: Final = 16_000
"""Sampling rate in hertz, assumed for speech networks without a configured rate."""
_IMAGE_PIXELS: Final = 224
"""Width and height in pixels of ImageNet's crops, assumed for networks without a configured image size."""
_COLOR_CHANNELS: Final = 3
_POSITION_FIELDS: Final = (
    "max_position_embeddings",
    "max_target_positions",
    "n_positions",
    "max_sequence_length",
    "seq_length",
)
_ONE_LABEL_SUFFIXES: Final = (
    "ForSequenceClassification",
    "ForImageClassification",
    "ForVideoClassification",
    "ForAudioClassification",
    "ForNextSentencePrediction",
)
"""Suffixes of network classes that take one label per example; other classes take one per token."""


def make_inputs(model: Any, request: TraceRequest, note: Callable[[str], None]) -> dict[str, Any]:
    """Return generated inputs for a call of `model`, with labels for training.

    Raises:
        TraceError: If the network's inputs are unknown, or it has too few positions for the tokens.
    """
    parameters = parameters_of_forward(model)
    batch, length = request.batch or 1, _sequence_length(model, request)
    inputs = _main_inputs(model, parameters, batch, length, note)
    if not inputs:
        raise TraceError(
            "load", f"the inputs of {type(model).__name__} are not known", "Specify them: --input NAME=SHAPE:DTYPE."
        )
    if request.task == "training":
        return inputs | _make_labels(model, parameters, batch, length)
    if model.config.is_encoder_decoder and "decoder_input_ids" in parameters:
        inputs["decoder_input_ids"] = torch.full((batch, 1), _start_token_id(model.config))
    return inputs


def _main_inputs(
    model: Any, parameters: list[str], batch: int, length: int, note: Callable[[str], None]
) -> dict[str, Any]:
    """Return generated inputs by parameter name: token ids, images or audio, without labels."""
    config = model.config
    inputs: dict[str, Any] = {}
    if "input_features" in parameters and hasattr(config, "num_mel_bins"):
        inputs["input_features"] = _random_floats(model, batch, config.num_mel_bins, _frame_count(config))
    elif "input_ids" in parameters:
        inputs["input_ids"] = random_integers((batch, length), config.get_text_config().vocab_size)
    if "input_values" in parameters:
        inputs["input_values"] = _waveform(model, batch, note)
    if "pixel_values" in parameters:
        if "input_ids" in inputs and model.can_generate():
            note("The network receives only text, no image.")
        else:
            inputs["pixel_values"] = _random_floats(
                model, batch, *_image_shape(getattr(config, "vision_config", config), note)
            )
    return inputs


def _sequence_length(model: Any, request: TraceRequest) -> int:
    """Return the requested or default sequence length in tokens."""
    max_positions = _max_positions(model)
    decoded_tokens = 0 if model.config.is_encoder_decoder else request.decode_tokens
    if request.sequence_length is None:
        default_length = _TRAINING_TOKENS if request.task == "training" else _PROMPT_TOKENS
        return default_length if max_positions is None else max(1, min(default_length, max_positions - decoded_tokens))
    needed_positions = request.sequence_length + decoded_tokens
    if max_positions is not None and needed_positions > max_positions and _learns_positions(model):
        raise TraceError(
            "load",
            f"{type(model).__name__} has learned positions for {max_positions:,} tokens, not {needed_positions:,}",
            f"Use at most {max_positions:,} tokens: --seq.",
        )
    return request.sequence_length


def _max_positions(model: Any) -> int | None:
    """Return the number of positions that the network has, or None if it sets no limit."""
    config = model.config.get_text_config()
    limit = next((value for name in _POSITION_FIELDS if isinstance(value := getattr(config, name, None), int)), None)
    if limit is None:
        return None
    # RoBERTa and similar models count positions from the position after padding.
    offset = any(hasattr(module, "create_position_ids_from_inputs_embeds") for module in model.modules())
    return limit - config.pad_token_id - 1 if offset and config.pad_token_id is not None else limit


def _learns_positions(model: nn.Module) -> bool:
    """Return whether positions are a learned embedding, by the module names common in transformers."""
    return any(
        isinstance(module, nn.Embedding) and path.rpartition(".")[2].startswith(("position", "embed_position", "wpe"))
        for path, module in model.named_modules()
    )


def _make_labels(model: Any, parameters: list[str], batch: int, length: int) -> dict[str, Any]:
    """Return random labels for training, if `forward` takes any."""
    name = type(model).__name__
    if "return_loss" in parameters:
        return {"return_loss": True}
    if {"start_positions", "end_positions"}.issubset(parameters):
        return {place: random_integers((batch,), length) for place in ("start_positions", "end_positions")}
    if "labels" not in parameters:
        return {}
    if name.endswith(_ONE_LABEL_SUFFIXES):
        return {"labels": random_integers((batch,), model.config.num_labels)}
    high = (
        model.config.num_labels
        if name.endswith("ForTokenClassification")
        else model.config.get_text_config().vocab_size
    )
    return {"labels": random_integers((batch, length), high)}


def _start_token_id(config: Any) -> int:
    token = getattr(config, "decoder_start_token_id", None)
    return token if isinstance(token, int) else 0


def _frame_count(config: Any) -> int:
    """Return the number of audio frames that the encoder takes: two per position, because of a strided convolution."""
    return 2 * int(config.max_source_positions)


def _waveform(model: Any, batch: int, note: Callable[[str], None]) -> torch.Tensor:
    """Return a random waveform per example, or per channel if the network has audio channels."""
    samples = _AUDIO_SECONDS * int(getattr(model.config, "sampling_rate", _SAMPLES_PER_SECOND))
    channels = getattr(model.config, "audio_channels", None)
    note(f"The audio length is not specified; {_AUDIO_SECONDS} seconds are assumed: --input input_values=… changes it.")
    return _random_floats(model, batch, *(() if channels is None else (int(channels),)), samples)


def _image_shape(config: Any, note: Callable[[str], None]) -> tuple[int, int, int]:
    """Return the channels, height and width of the images, in pixels."""
    size = getattr(config, "image_size", None)
    if size is None:
        size = _IMAGE_PIXELS
        note(f"The image size is not specified; {size} × {size} pixels are assumed: --input pixel_values=… changes it.")
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return int(getattr(config, "num_channels", _COLOR_CHANNELS)), height, width


def _random_floats(model: Any, *shape: int) -> torch.Tensor:
    """Return random numbers of this shape in the dtype of `model`."""
    return torch.randn(shape, dtype=model.dtype, generator=torch.Generator().manual_seed(0))
