"""Memory behavior of gpt-fast: caches, masks and tables of positions of a chosen length, one sequence at a time.

**Source**: pytorch/ao at 0bc5b00, torchao/_models/llama/model.py and generate.py.
"""

from collections.abc import Hashable, Iterator
from typing import Final

from planner.errors import SpecError
from planner.memory.inference.kv_cache import kv_cache_term, without_windows
from planner.memory.inference.scratch import scratch_term
from planner.memory.logits import output_logits_term, output_width
from planner.memory.parallel.layer_splitting import stage_layers
from planner.memory.phases import PhaseSnapshots, Snapshot
from planner.memory.precision import inference_precision
from planner.memory.result import Term
from planner.memory.segments import unsplit_weight_bytes
from planner.memory.software.base import ServingMemory
from planner.memory.software.transformers import ANY_VERSION
from planner.memory.terms import format_symbol, library_symbol, measured_term, model_symbol, term, workload_symbol
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture, Attention, Mlp
from planner.units import round_up
from planner.workload.software.gpt_fast import GptFastSettings
from planner.workload.workload import Inference

_FLOAT: Final = 4
_STEP: Final = 8
"""Multiple to which the length of caches is rounded up (`find_multiple(max_seq_length, 8)`)."""
_MASK_SOURCE: Final = "model.py setup_caches: torch.tril(torch.ones(n, n, dtype=torch.bool)), or one row of it"
_POSITIONS_SOURCE: Final = "model.py precompute_freqs_cis: a cosine and a sine for each position of the model"
_ATTENTION_SOURCE: Final = (
    "model.py Attention.forward (repeat_interleave), AffineQuantizedKVCache.update; generate.py decode_n_tokens "
    "(SDPBackend.MATH): half types become fp32, and the keys times the root of the scale are one more copy"
)
_LOGITS_SOURCE: Final = "generate.py prefill: the head reads the whole prompt"


class GptFast(ServingMemory):
    """Generating with gpt-fast."""

    split_note = "gpt-fast has no layer split; the layers are counted as evenly divided."

    spread = ANY_VERSION

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of generation: load, prefill, decoding.

        **Formula**: weights + cache + mask + positions, beside a second mask before the cache is made, one layer's
        attention over the whole cache, or the logits of the prompt.
        """
        return _timeline(architecture, workload)

    def notes(self, workload: Inference) -> Iterator[str]:
        """Yield a note if sequences wait."""
        if workload.batch > 1:
            yield f"gpt-fast generates one sequence at a time: {workload.batch - 1:,} of {workload.batch:,} wait."

    def split_layers(
        self, architecture: Architecture, workload: Inference, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers of each stage, as even as possible."""
        return stage_layers(architecture.depth, workload.parallel.pipeline)


SERVING: Final = GptFast()


def _timeline(architecture: Architecture, workload: Inference) -> PhaseSnapshots:
    layers = [group.layer for group in architecture.main.groups]
    if not all(isinstance(layer.mixer, Attention) and isinstance(layer.feed_forward, Mlp) for layer in layers):
        reason = "gpt-fast estimates support only decoders with attention and dense feed-forward blocks"
        raise SpecError("profile", reason, "Choose the profile hf.")
    settings = workload.settings_as(GptFastSettings)
    precision, scheme = inference_precision(workload), workload.weights or "bf16"
    prompt, element = workload.prompt_length or 1, precision.compute_bytes
    tokens = round_up(workload.context_length or 1, _STEP)
    quantized = bool(settings.kv_cache_quantization)
    weights = weights_term(architecture, scheme)
    cache = _cache_term(architecture, tokens, element) if quantized else _plain_cache(architecture, tokens, workload)
    mask = _mask_term(tokens, linear=bool(settings.linear_causal_mask))
    before = [weights, mask, _positions_term(architecture, element)]
    kept = [*before, cache]
    attention = max(
        (
            _attention_term(layer.mixer, tokens, element, quantized)
            for layer in layers
            if isinstance(layer.mixer, Attention)
        ),
        key=lambda one: one.bytes,
    )
    scratch = scratch_term(architecture, 1, prompt, precision, "sdpa")
    width = output_width(architecture)
    logits = [output_logits_term(width, prompt, element, _LOGITS_SOURCE)] if width else []
    return PhaseSnapshots(
        (
            Snapshot("load", [*before, mask], "the causal mask is made before the caches"),
            Snapshot("prefill", [*kept, scratch], "layers read the whole prompt at once"),
            Snapshot("prefill", [*kept, *logits], "the output head computes the logits of the whole prompt"),
            Snapshot("decode", [*kept, attention], "a layer attends to the whole cache, however much of it is filled"),
        ),
        dynamic=max(attention.bytes, scratch.bytes),
        unsplit_bytes=unsplit_weight_bytes(architecture, scheme),
    )


def _plain_cache(architecture: Architecture, tokens: int, workload: Inference) -> Term:
    cache = kv_cache_term(without_windows(architecture), 1, tokens, 0, workload.kv_cache)
    assert cache is not None, "each layer has attention"
    return cache


def _cache_term(architecture: Architecture, tokens: int, element_bytes: int) -> Term:
    """Return the memory of a cache in int8 with a scale for each token and head."""
    elements = scales = 0
    for group in architecture.main.groups:
        mixer = group.layer.mixer
        assert isinstance(mixer, Attention)
        elements += group.count * 2 * mixer.kv_dim
        scales += group.count * 2 * mixer.kv_heads
    return term(
        "kv_cache",
        tokens * (elements + scales * element_bytes),
        "n × (e + k × w)",
        (
            workload_symbol("n", tokens, "tokens of the cache"),
            model_symbol("e", elements, "elements per token, all layers together, of one byte each"),
            model_symbol("k", scales, "scales per token: one for each head's key and value"),
            format_symbol("w", element_bytes, "bytes per scale"),
        ),
        "torchao/_models/llama/model.py AffineQuantizedKVCache: k_cache_scale of (batch, heads, length, 1)",
    )


def _mask_term(tokens: int, *, linear: bool) -> Term:
    size, formula = (tokens, "n") if linear else (tokens * tokens, "n × n")
    return term("buffers", size, formula, (workload_symbol("n", tokens, "tokens of the cache"),), _MASK_SOURCE)


def _positions_term(architecture: Architecture, element_bytes: int) -> Term:
    mixer = architecture.main.groups[0].layer.mixer
    width = mixer.head_dim if isinstance(mixer, Attention) else 0
    positions = architecture.max_context or 0
    return term(
        "buffers",
        positions * width * element_bytes,
        "N × d × w",
        (
            model_symbol("N", positions, "positions of the model"),
            model_symbol("d", width, "cosines and sines per position"),
            format_symbol("w", element_bytes, "bytes per element"),
        ),
        _POSITIONS_SOURCE,
    )


def _attention_term(mixer: Attention, tokens: int, element_bytes: int, quantized: bool) -> Term:
    """Return what one layer makes of the whole cache for one token.

    **Formula**: n · q · (2 w + 2 · 4 + 4), the fp32 copies only of half types, and n · 2 kv · w where a cache in int8
    is first written out.
    """
    copied = 2 * _FLOAT if element_bytes < _FLOAT else 0
    written = 2 * mixer.kv_dim * element_bytes if quantized else 0
    each = mixer.q_dim * (2 * element_bytes + copied + _FLOAT) + written
    return measured_term(
        "temporaries",
        tokens * each,
        "n × c",
        (
            workload_symbol("n", tokens, "tokens of the cache"),
            library_symbol(
                "c", each, "bytes per token of keys and values for each head, of fp32 copies and scaled keys"
            ),
        ),
        _ATTENTION_SOURCE,
    )
