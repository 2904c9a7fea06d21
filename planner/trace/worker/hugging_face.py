"""Networks of Hugging Face transformers from their configuration, without weights and remote code, and their inputs."""

import inspect
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import nn

from planner.errors import TraceError
from planner.installation import extra_command
from planner.trace.request import TraceRequest
from planner.trace.worker.targets import random_integers

_STAGE: Final = "load"
_AUTO_CLASSES: Final = (
    "AutoModelForSpeechSeq2Seq",
    "AutoModelForSeq2SeqLM",
    "AutoModelForMaskedLM",
    "AutoModelForCausalLM",
    "AutoModelForZeroShotImageClassification",
    "AutoModelForImageClassification",
    "AutoModelForImageTextToText",
    "AutoModelForPreTraining",
    "AutoModel",
)
"""Auto classes, in the order in which they are tried if a configuration names no class: encoders such as BERT are
available as decoders too."""
_FAKE_TENSOR_CHECKS: Final = ("is_fake_tensor",)
"""Functions of `transformers.utils.import_utils` that make transformers treat fake tensors differently."""

_CACHES: Final = ("cache", "past_key_values", "cache_params")
"""Names under which networks take and return their cache: the first since transformers 5.24, the others before it."""


def build_network(request: TraceRequest, dtype: torch.dtype | None) -> Any:
    """Build the network that the configuration in `request` describes, in `dtype` (None: the configuration's dtype).

    Raises:
        TraceError: If transformers does not support the model type, or the configuration describes no valid network.
    """
    transformers = _import_transformers()
    fields = _config_fields(request)
    config = _make_config(transformers, fields, request.target.place)
    for config_part in (config, config.get_text_config()):
        config_part.use_cache = request.task == "inference"
    network_class = _network_class(transformers, config, fields)
    if network_class.config_class is config.sub_configs.get("text_config"):
        # A composite model's decoder alone is built from its part on text, as `AutoModelForCausalLM` does.
        config = config.get_text_config()
    # Networks without sdpa attention fall back to eager only if nothing is requested.
    options: dict[str, Any] = {"attn_implementation": "eager"} if request.attention == "eager" else {}
    if dtype is not None:
        options["dtype"] = dtype
    try:
        return network_class._from_config(config, **options)
    except Exception as error:  # Networks fail in many ways at sizes that do not fit together
        raise TraceError(
            _STAGE, f"{network_class.__name__}: {error.__cause__ or error}", "Check the configuration."
        ) from error


def states_quantization(request: TraceRequest) -> bool:
    """Return whether the configuration in `request` is of a quantized checkpoint, whose weights are built as plain."""
    return bool(json.loads(request.target.config or "{}").get("quantization_config"))


def is_hugging_face(module: nn.Module) -> bool:
    """Return whether `module` is a network of transformers."""
    transformers = sys.modules.get("transformers")
    return transformers is not None and isinstance(module, transformers.PreTrainedModel)


def parameters_of_forward(module: nn.Module) -> list[str]:
    """Return the names of the parameters of the module's `forward`, in order."""
    return list(inspect.signature(module.forward).parameters)


def cache_names(module: nn.Module) -> list[str]:
    """Return the names under which the network takes its cache, and returns it for the next pass.

    Outputs answer to names besides these, since transformers keeps old ones for a while. XLM and Flaubert take a
    dictionary as their `cache`, which they never return: they are no decoders.
    """
    parameters = inspect.signature(module.forward).parameters
    return [name for name in _CACHES if name in parameters and "dict[" not in str(parameters[name].annotation)]


def enable_network_checkpointing(module: Any, arguments: dict[str, Any]) -> None:
    """Enable the checkpointing of a transformers network with `arguments` of torch.utils.checkpoint.

    Raises:
        TraceError: If the network does not support it.
    """
    try:
        if hasattr(module, "activation_checkpointing_enable"):
            module.activation_checkpointing_enable(activation_checkpointing_kwargs=arguments)
        else:
            module.gradient_checkpointing_enable(gradient_checkpointing_kwargs=arguments)
    except ValueError as error:
        raise TraceError("load", str(error), "Trace it without activation checkpointing.") from error


@contextmanager
def hide_fake_tensors() -> Iterator[None]:
    """Hide from transformers that tensors are fake: it would create masks that a real run does not need."""
    if "transformers" not in sys.modules:
        yield
        return
    from transformers.utils import import_utils

    originals = {name: getattr(import_utils, name) for name in _FAKE_TENSOR_CHECKS if hasattr(import_utils, name)}
    for name in originals:
        setattr(import_utils, name, lambda _value: False)
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(import_utils, name, original)


def _import_transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise TraceError(_STAGE, "transformers is not installed", f"Install it: {extra_command('torch')}") from error
    return transformers


def _config_fields(request: TraceRequest) -> dict[str, Any]:
    """Return the fields of the configuration in `request`."""
    try:
        config_fields = json.loads(request.target.config or "")
    except ValueError as error:
        raise TraceError(_STAGE, f"the configuration of {request.target.place} is not JSON: {error}") from error
    if not isinstance(config_fields, dict) or not isinstance(config_fields.get("model_type"), str):
        raise TraceError(
            _STAGE, f"the configuration of {request.target.place} has no model_type", "Check that it is a config.json."
        )
    # References to remote code and quantized weights matter only for loading, which is never done here.
    return {name: value for name, value in config_fields.items() if name not in ("auto_map", "quantization_config")}


def _make_config(transformers: Any, fields: dict[str, Any], place: str) -> Any:
    """Return the transformers configuration object for the configuration's fields."""
    model_type = fields["model_type"]
    if model_type not in transformers.CONFIG_MAPPING:
        raise TraceError(
            _STAGE,
            f"transformers {transformers.__version__} does not support the model type {model_type!r} of {place}",
            "Update transformers, or trace the module from its own file.",
        )
    try:
        return transformers.CONFIG_MAPPING[model_type].from_dict(fields)
    except Exception as error:  # The exception for wrong fields differs between versions
        reason = f"the configuration of {place}: {error.__cause__ or error}"
        raise TraceError(_STAGE, reason, "Check its fields.") from error


def _network_class(transformers: Any, config: Any, fields: dict[str, Any]) -> Any:
    """Return the transformers class of the network that the configuration describes."""
    for name in fields.get("architectures") or ():
        network_class = getattr(transformers, name, None)
        if inspect.isclass(network_class) and issubclass(network_class, transformers.PreTrainedModel):
            return network_class
    for head in _AUTO_CLASSES:
        mapping = getattr(transformers, head)._model_mapping
        if type(config) in mapping:
            network_classes = mapping[type(config)]
            return network_classes[0] if isinstance(network_classes, list | tuple) else network_classes
    raise TraceError(_STAGE, f"transformers has no network for {fields['model_type']!r}")


_TRAINING_TOKENS: Final = 2_048
_PROMPT_TOKENS: Final = 4_096
"""Sequence lengths in tokens by task: the defaults of training and inference workloads."""
_AUDIO_SECONDS: Final = 10
_SAMPLES_PER_SECOND: Final = 16_000
"""Sampling rate in hertz, assumed for speech networks without a configured rate."""
_IMAGE_PIXELS: Final = 224
"""Width and height in pixels of ImageNet's crops, assumed for networks without a configured image size."""
_COLOR_CHANNELS: Final = 3
_FRAMES_PER_SECOND: Final = 100
"""Frames of a spectrogram in a second: one each 10 ms, as all speech networks of transformers read them."""
_MEL_BINS: Final = 80
_FEATURE_WIDTHS: Final = ("feature_projection_input_dim", "input_dim", "input_feat_per_channel", "num_mel_bins")
"""Names of the width of one frame."""
_PATCHES: Final = 2_048
"""Patches of an image for networks that read images as patches of any number: their processors' default."""
_QUERY_TOKENS: Final = 32
"""Tokens of the instruction that a query transformer reads beside the image."""
_MEDIA: Final = {
    "input_features": "audio",
    "input_values": "audio",
    "pixel_values": "image",
    "flattened_patches": "image",
}
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
    parameters = inspect.signature(model.forward).parameters
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
    model: Any, parameters: Mapping[str, inspect.Parameter], batch: int, length: int, note: Callable[[str], None]
) -> dict[str, Any]:
    """Return generated inputs by parameter name: token ids, images or audio, without labels.

    A network that generates text from token ids alone gets no images and no audio.
    """
    config = model.config
    inputs: dict[str, Any] = {}
    if "input_ids" in parameters:
        inputs["input_ids"] = random_integers((batch, length), config.get_text_config().vocab_size)
    makers: dict[str, Callable[[], torch.Tensor]] = {
        "input_features": lambda: _audio_features(model, batch, note),
        "input_values": lambda: _waveform(model, batch, note),
        "pixel_values": lambda: _images(model, parameters, batch, note),
        "flattened_patches": lambda: _random_floats(model, batch, _PATCHES, _flattened_patch_width(config)),
    }
    left_out = []
    for name, make in makers.items():
        if name not in parameters:
            continue
        if "input_ids" in inputs and model.can_generate() and _is_optional(model, parameters[name]):
            left_out.append(_MEDIA[name])
        else:
            inputs[name] = make()
    if left_out:
        note(f"The network receives only text, no {' and no '.join(dict.fromkeys(left_out))}.")
    if "spatial_shapes" in parameters and "pixel_values" in inputs:
        side = math.isqrt(inputs["pixel_values"].shape[1])
        inputs["spatial_shapes"] = torch.tensor([[side, side]] * batch)
        inputs["pixel_attention_mask"] = torch.ones((batch, inputs["pixel_values"].shape[1]), dtype=torch.int64)
    if "qformer_input_ids" in parameters:
        inputs["qformer_input_ids"] = random_integers((batch, _QUERY_TOKENS), config.qformer_config.vocab_size)
    _place_image_tokens(inputs, config)
    return inputs


def _is_optional(model: Any, parameter: inspect.Parameter) -> bool:
    """Return whether `forward` runs without the parameter: it has a default, and is not what the network is about."""
    return parameter.default is not inspect.Parameter.empty and parameter.name != model.main_input_name


def _place_image_tokens(inputs: dict[str, Any], config: Any) -> None:
    """Put the tokens that the query transformer's output replaces in front of the text (BLIP-2)."""
    token, count = getattr(config, "image_token_index", None), getattr(config, "num_query_tokens", 0)
    if token is not None and count and {"input_ids", "pixel_values"} <= inputs.keys():
        batch = inputs["input_ids"].shape[0]
        inputs["input_ids"] = torch.cat([torch.full((batch, count), token), inputs["input_ids"]], dim=1)


def _audio_features(model: Any, batch: int, note: Callable[[str], None]) -> torch.Tensor:
    """Return random spectrograms: of the length that the encoder always reads (Whisper), else of a few seconds."""
    config = model.config
    if hasattr(config, "max_source_positions") and hasattr(config, "num_mel_bins"):
        return _random_floats(model, batch, config.num_mel_bins, _frame_count(config))
    note(
        f"The audio length is not specified; {_AUDIO_SECONDS} seconds are assumed: --input input_features=… changes it."
    )
    parts = (config, *(getattr(config, name) for name in config.sub_configs if hasattr(config, name)))
    width = next(
        (value for part in parts for name in _FEATURE_WIDTHS if isinstance(value := getattr(part, name, None), int)),
        _MEL_BINS,
    )
    return _random_floats(model, batch, _AUDIO_SECONDS * _FRAMES_PER_SECOND, width)


def _images(
    model: Any, parameters: Mapping[str, inspect.Parameter], batch: int, note: Callable[[str], None]
) -> torch.Tensor:
    """Return random images or videos, or flattened patches if the network takes images of any size (NaFlex)."""
    config = _vision_config(model.config)
    if "spatial_shapes" in parameters:
        return _random_floats(model, batch, config.num_patches, config.num_channels * config.patch_size**2)
    frames = (config.num_frames,) if hasattr(config, "tubelet_size") else ()
    return _random_floats(model, batch, *frames, *_image_shape(config, note))


def _vision_config(config: Any) -> Any:
    """Return the configuration of the part that reads images: a tower, an encoder, or the network itself."""
    parts = (getattr(config, name, None) for name in ("vision_config", "encoder"))
    return next((part for part in parts if hasattr(part, "to_dict")), config)


def _flattened_patch_width(config: Any) -> int:
    """Return the width of a flattened patch with its row and column (Pix2Struct, Kosmos-2.5)."""
    return int(config.vision_config.patch_embed_hidden_size) + 2


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


def _make_labels(model: Any, parameters: Mapping[str, inspect.Parameter], batch: int, length: int) -> dict[str, Any]:
    """Return random labels for training, if `forward` takes any."""
    name = type(model).__name__
    if "return_loss" in parameters:
        return {"return_loss": True}
    if parameters.keys() >= {"start_positions", "end_positions"}:
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
    size = _stated_image_size(config)
    if size is None:
        size = _IMAGE_PIXELS
        note(f"The image size is not specified; {size} × {size} pixels are assumed: --input pixel_values=… changes it.")
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return int(getattr(config, "num_channels", _COLOR_CHANNELS)), height, width


def _stated_image_size(config: Any) -> Any:
    """Return the image size that a configuration states, or that of its image tower, or None."""
    size = getattr(config, "image_size", None)
    parts = [getattr(config, name, None) for name in ("vision_config", "backbone_config")]
    return next((found for found in (size, *map(_stated_image_size, filter(None, parts))) if found is not None), None)


def _random_floats(model: Any, *shape: int) -> torch.Tensor:
    """Return random numbers of this shape in the dtype of `model`."""
    return torch.randn(shape, dtype=model.dtype, generator=torch.Generator().manual_seed(0))
