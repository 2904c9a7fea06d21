"""Networks of Hugging Face transformers, built from their configuration, never with weights or remote code."""

import inspect
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import nn

from planner.errors import TraceError
from planner.installation import extra_command
from planner.trace.request import TraceRequest

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
