"""Token-by-token generation, as `generate` of transformers runs it."""

from contextlib import AbstractContextManager
from typing import Any, Final

import torch

from planner.errors import TraceError
from planner.trace.request import TraceRequest
from planner.trace.worker.building.build import BuiltRun
from planner.trace.worker.hugging_face.networks import is_hugging_face, parameters_of_forward
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.tensors import tensors_in

_CACHES: Final = ("past_key_values", "cache_params")
"""Names under which networks take and return their cache."""


def generates_tokens(built: BuiltRun, request: TraceRequest) -> bool:
    """Return whether the run is prefill and decoding with a cache, rather than one forward pass.

    Raises:
        TraceError: If tokens are requested, but the network cannot generate.
    """
    can_generate = len(built.modules) == 1 and is_hugging_face(built.module) and _can_generate(built.module)
    if request.decode_tokens and not can_generate:
        raise TraceError("load", "only causal networks from transformers can generate tokens", "Omit the tokens.")
    return can_generate and (request.target.kind == "config" or request.decode_tokens > 0)


def generate(
    built: BuiltRun, request: TraceRequest, watcher: RunObserver, autocast: AbstractContextManager[Any]
) -> None:
    """Run the prompt through the network, then `request.decode_tokens` tokens one by one, with the cache.

    **Source**: `transformers.generation.utils.GenerationMixin._sample`: only the last logits are computed if the
    network supports it, and they are copied to fp32.
    """
    model: Any = built.module
    parameters = parameters_of_forward(model)
    options: dict[str, Any] = {"use_cache": True} | ({"logits_to_keep": 1} if "logits_to_keep" in parameters else {})
    inputs = built.forward_call.arguments_by_name(parameters)
    has_encoder = model.config.is_encoder_decoder
    token_argument = "decoder_input_ids" if has_encoder else "input_ids"
    watcher.begin_phase("prefill", 0)
    with autocast:
        if has_encoder:
            options["encoder_outputs"] = _encoder_outputs(model, inputs, token_argument)
            inputs = {token_argument: inputs[token_argument]}
        cache, token = _run_pass(model, inputs | options, watcher)
        for number in range(request.decode_tokens):
            watcher.begin_phase("decode", number)
            cache, token = _run_pass(model, {token_argument: token} | cache | options, watcher)


def _can_generate(model: Any) -> bool:
    return bool(model.can_generate()) and not {*_CACHES}.isdisjoint(parameters_of_forward(model))


def _encoder_outputs(model: Any, inputs: dict[str, Any], decoder_tokens: str) -> Any:
    """Run the encoder on the inputs of an encoder-decoder network, and return its outputs."""
    return model.get_encoder()(**{name: value for name, value in inputs.items() if name != decoder_tokens})


def _run_pass(model: Any, inputs: dict[str, Any], watcher: RunObserver) -> tuple[dict[str, Any], torch.Tensor]:
    """Return the cache after one pass, by argument name, and the next token."""
    output = model(**inputs)
    cache = {name: value for name in _CACHES if (value := getattr(output, name, None)) is not None}
    watcher.label(tensors_in(cache), "kv_cache")
    logits = output.logits[:, -1].to(dtype=torch.float32, copy=True)
    return cache, logits.argmax(dim=-1, keepdim=True)
