"""Memory of an engine that serves requests from a paged cache: cache, largest step, sampler, adapters and draft."""

from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import KV_FORMATS
from planner.memory.logits import output_width
from planner.memory.result import Term, TermName
from planner.memory.terms import library_symbol, model_symbol, term, workload_symbol
from planner.memory.weights import is_gguf, weights_term
from planner.models.architecture import (
    VOCABULARY_NAMES,
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    Mlp,
    Moe,
    StateMixer,
    Tensor,
)
from planner.models.layers import LayerGroup
from planner.units import ceil_div
from planner.workload.workload import Inference

_SPARSE_FP8_BYTES: Final = 656
"""Bytes per token of sparse latent attention in fp8_ds_mla: 512 fp8 numbers, 4 fp32 scales, 64 bf16 rotary ones."""
_INDEX_GROUP: Final = 128
"""Elements per fp32 scale in the indexer's key cache, which is always in fp8."""
_FLOAT: Final = 4


def attention_token_bytes(mixer: Attention, kv_format: str) -> int:
    """Return the bytes of a token's keys and values in one attention layer."""
    return 2 * mixer.kv_dim * int(KV_FORMATS[kv_format]) // 8


def latent_token_bytes(mixer: LatentAttention, kv_format: str) -> tuple[int, ...]:
    """Return the bytes of a token in one layer of latent attention: its latent, and with sparse attention its index.

    **Source**: vLLM 0.33 v1/kv_cache_interface.py (fp8_ds_mla); SGLang 0.5.23 kv_cache_configurator.py
    `calculate_mla_kv_cache_dim` and pool_configurator.py `_compute_dsa_indexer_cell_size`, which agree.
    """
    packed = mixer.indexer_dim and kv_format == "fp8"
    token = _SPARSE_FP8_BYTES if packed else mixer.latent_dim * int(KV_FORMATS[kv_format]) // 8
    if not mixer.indexer_dim:
        return (token,)
    return token, mixer.indexer_dim + _FLOAT * ceil_div(mixer.indexer_dim, _INDEX_GROUP)


def state_bytes(mixer: StateMixer, element_bytes: int) -> int:
    """Return the bytes of one layer's recurrent state: convolution and scan.

    Gated delta nets have `mamba_ssm_dtype` float32 in their configurations.
    """
    scan = _FLOAT if mixer.name == "gated-delta-net" else element_bytes
    return mixer.conv_inputs_kept * element_bytes + mixer.recurrent_state_elements * scan


class CachedBytes(NamedTuple):
    """Bytes that a network caches of a token, in all layers that keep every token and in all with a window.

    `window` is the longest window, 0 without one, and `state` the bytes of a sequence's recurrent states.
    """

    token: int
    windowed: int
    window: int
    state: int


def engine_cache_bytes(architecture: Architecture, kv_format: str, element_bytes: int) -> CachedBytes:
    """Return what `architecture` caches of each token and sequence, with activations of `element_bytes` per number."""
    token = windowed = window = state = 0
    for group in cached_groups(architecture) if architecture.kind != "encoder" else ():
        for mixer in _cached_mixers(group.layer):
            if isinstance(mixer, StateMixer):
                state += group.count * state_bytes(mixer, element_bytes)
            elif isinstance(mixer, LatentAttention):
                token += group.count * sum(latent_token_bytes(mixer, kv_format))
            elif mixer.window:
                windowed += group.count * attention_token_bytes(mixer, kv_format)
                window = max(window, mixer.window)
            else:
                token += group.count * attention_token_bytes(mixer, kv_format)
    return CachedBytes(token, windowed, window, state)


def _cached_mixers(layer: Layer) -> list[Attention | LatentAttention | StateMixer]:
    """Return the mixers of `layer` that keep something of each token or sequence."""
    mixers = (layer.mixer, layer.second_mixer)
    kept = [mixer for mixer in mixers if isinstance(mixer, Attention | LatentAttention | StateMixer)]
    return [mixer for mixer in kept if not (isinstance(mixer, Attention) and mixer.kv_shared)]


def engine_pages_term(
    name: TermName, sequences: int, pages: int, page_bytes: int, limit: str, source: str, shared: int = 0
) -> Term | None:
    """Return the memory of `pages` cache pages for each of `sequences` sequences, None without pages.

    `limit` is the engine's setting that limits the number of sequences, and a page has the given bytes in all layers;
    `shared` pages of a common beginning are there once.
    """
    if not pages or not page_bytes:
        return None
    common = (library_symbol("s", shared, "pages of the common beginning, which are there once"),) if shared else ()
    return term(
        name,
        held_pages(sequences, pages, shared) * page_bytes,
        "(B × (p − s) + s) × g" if shared else "B × p × g",
        (
            workload_symbol("B", sequences, f"number of concurrent sequences, at most {limit}"),
            *common,
            library_symbol("p", pages, "cache pages per sequence"),
            model_symbol("g", page_bytes, "bytes per page of all its layers"),
        ),
        source,
    )


def waiting_notes(batch: int, sequences: int) -> tuple[str, ...]:
    """Return a note on requests that wait where an engine runs at most `sequences` at once, none if all run."""
    if batch <= sequences:
        return ()
    return (
        f"{batch - sequences:,} of {batch:,} requests wait because no more than {sequences:,} run at the same time.",
    )


def shared_pages(workload: Inference, page_tokens: int, pages: int) -> int:
    """Return the pages of `page_tokens` tokens that all sequences of `workload` have in common, of their `pages`.

    **Formula**: ⌊p / t⌋ whole pages of p common tokens, and at least one page of each sequence is its own.

    **Source**: vLLM 0.33 v1/core/kv_cache_manager.py `get_computed_blocks`: whole blocks, and never the last token.
    """
    return min(workload.common_prefix // page_tokens, pages - 1)


def held_pages(sequences: int, pages: int, shared: int) -> int:
    """Return the pages of `sequences` sequences of `pages` each, of which they share `shared`."""
    return sequences * (pages - shared) + (shared if sequences else 0)


def cache_in_ram(workload: Inference) -> int | None:
    """Return the bytes of RAM for the KV cache that leaves one card, None if none is kept there.

    **Source**: vLLM 0.33 config/cache.py, `kv_offloading_size`: the total of all cards of a replica.
    """
    parallel = workload.parallel
    return ceil_div(workload.cache_in_ram_bytes, parallel.tensor * parallel.pipeline) or None


STEP_SOURCE: Final = "vLLM 0.33 model_executor: tensors alive at once in a layer, in its widest block"
_FORWARD_SHARE: Final = 0.25
"""Assumed relative deviation of compiled layers' memory from the sum of their tensors."""


def engine_step_term(architecture: Architecture, tokens: int, element_bytes: int, setting: str) -> Term:
    """Return the activation memory of a step with `tokens` tokens, a number that the engine's `setting` limits.

    **Formula**: T · w · max over layers of 2h + q + 2kv + q (attention) and 2h + 3i (feed-forward; 2i without a gate;
    experts k · (max(2i, h) + i) + h beside the shared one's).

    **Assumes** tensors of the computing format and no compilation that keeps less.
    """
    per_token = _widest_layer_elements(architecture)
    count = tokens * per_token * element_bytes
    return term(
        "activations",
        count,
        "T × a × w",
        (
            library_symbol("T", tokens, f"tokens in the largest step ({setting})"),
            model_symbol("a", per_token, "live numbers per token in the widest layer"),
            library_symbol("w", element_bytes, "bytes per element"),
        ),
        STEP_SOURCE,
        certainty="assumed",
        low_bytes=int(count * (1 - _FORWARD_SHARE)),
        high_bytes=int(count * (1 + _FORWARD_SHARE)),
    )


def engine_sampler_terms(architecture: Architecture, rows: int, source: str) -> list[Term]:
    """Return the memory of sampling from `rows` rows of logits in fp32 with probabilities; none without logits."""
    width = output_width(architecture)
    if not width:
        return []
    symbols = (
        workload_symbol("n", rows, "rows of logits: running requests, times the tokens that are checked of each"),
        model_symbol("V", width, "output width: logits per token"),
    )
    return [term("logits", rows * width * 8, "n × V × 8", symbols, source, certainty="measured")]


@lru_cache(maxsize=256)
def _widest_layer_elements(architecture: Architecture) -> int:
    """Return the elements per token alive at once in the layer that needs most."""
    return max(_layer_elements(group.layer, architecture.hidden) for group in architecture.main.groups)


def _layer_elements(layer: Layer, hidden: int) -> int:
    """Return the elements per token alive at once in one layer, two hidden widths included."""
    mixed = max(_mixer_elements(mixer) for mixer in (layer.mixer, layer.second_mixer))
    return 2 * hidden + max(mixed, _feed_forward_elements(layer.feed_forward, hidden))


def _mixer_elements(mixer: object) -> int:
    """Return the elements per token alive at once in a mixer such as attention."""
    if isinstance(mixer, Attention):
        return 2 * mixer.q_dim + 2 * mixer.kv_dim
    if isinstance(mixer, LatentAttention):
        query_key = mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
        expanded = mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
        return 2 * query_key + expanded + mixer.heads * mixer.v_head_dim + mixer.latent_dim
    return 4 * mixer.inner_dim if isinstance(mixer, StateMixer) else 0


def _feed_forward_elements(block: Mlp | Moe | None, hidden: int) -> int:
    """Return the elements per token alive at once in a feed-forward block."""
    if isinstance(block, Moe):
        wide = (2 if block.gated else 1) * block.intermediate
        routed = block.top_k * (max(wide, hidden) + max(block.intermediate, 0)) + hidden + block.experts
        return routed + (3 if block.gated else 2) * block.shared_intermediate
    return (3 if block.gated else 2) * block.intermediate if block else 0


_GATE_AND_UP: Final = "gate_up"


def served_adapters_term(
    architecture: Architecture, workload: Inference, rank: int, element_bytes: int, source: str, *, embeds: bool = False
) -> Term | None:
    """Return the memory of the adapters that `workload` serves, reserved for `rank`; None if it serves none.

    With `embeds`, embedding and output head may have adapters, too, whose rows are not divided over cards.

    **Formula**: n · r · w · Σ over the matrices (inputs + outputs); gate and up projection in one have two inputs.
    """
    own = workload.adapters
    if not own.slots:
        return None
    width = _adapted_width(architecture, own.targets)
    if embeds:
        width += _vocabulary_width(architecture, own.targets)
    return term(
        "adapters",
        own.slots * rank * width * element_bytes,
        "n × r × D × w",
        (
            workload_symbol("n", own.slots, "adapters on the GPU at once"),
            library_symbol("r", rank, "rank that is reserved for each"),
            model_symbol("D", width, "inputs and outputs of all matrices with an adapter"),
            library_symbol("w", element_bytes, "bytes per element"),
        ),
        source,
    )


def _adapted_width(architecture: Architecture, targets: str | tuple[str, ...]) -> int:
    return sum(
        group.count * tensor.copies * (tensor.shape[0] + tensor.shape[1] * (2 if _GATE_AND_UP in tensor.name else 1))
        for group in architecture.main.groups
        for tensor in group.layer.tensors
        if len(tensor.shape) > 1 and tensor.role in ("linear", "expert") and _is_target(tensor, targets)
    )


def _is_target(tensor: Tensor, targets: str | tuple[str, ...]) -> bool:
    return targets == "all-linear" or tensor.name.removesuffix(".weight").rpartition(".")[2] in targets


def _vocabulary_width(architecture: Architecture, targets: str | tuple[str, ...]) -> int:
    """Return inputs and outputs of embedding and output head, each with all rows of the vocabulary."""
    rows = (architecture.vocabulary or 0) * architecture.tensor_cards + architecture.hidden
    return sum(rows for name in VOCABULARY_NAMES if targets == "all-linear" or name in targets)


_DRAFT_SOURCE = (
    "the draft's own tensors: MTP layers in the model's format, EAGLE heads and smaller models in that of their files "
    "(vLLM 0.33 config/speculative.py, `quantization`), in llama.cpp as the model's GGUF file"
)


def draft_format(architecture: Architecture, workload: Inference) -> str:
    """Return the format of the draft's weights, for `workload` with its defaults filled in."""
    assert architecture.draft is not None
    weights = workload.weights or "bf16"
    if workload.speculation.method == "mtp" or is_gguf(architecture, weights):
        return weights
    return architecture.draft.stored_as


def draft_term(architecture: Architecture, workload: Inference) -> Term | None:
    """Return the memory of the draft's weights, None without a network that drafts."""
    if architecture.draft is None:
        return None
    name = draft_format(architecture, workload)
    found = weights_term(architecture.draft, name)
    k = library_symbol("k", workload.speculation.drafted, f"tokens drafted before each check, weights in {name}")
    return replace(found, name="draft", source=_DRAFT_SOURCE, symbols=(*found.symbols, k))


def cached_groups(architecture: Architecture) -> tuple[LayerGroup, ...]:
    """Return the layers of the main stack and of the draft, which keep their keys and values in the same pages.

    **Source**: vLLM 0.33 v1/worker/gpu/model_runner.py `get_kv_cache_spec` (layers of the speculator are layers of the
    model); SGLang 0.5.23 pool_configurator.py and kv_cache_configurator.py (a draft's pool has as many tokens).
    """
    own = architecture.main.groups
    return own if architecture.draft is None else (*own, *architecture.draft.main.groups)


def verified_rows(workload: Inference, sequences: int) -> int:
    """Return the rows of logits in a step of `sequences` sequences: the drafted tokens of each, and one more."""
    return sequences * (workload.speculation.drafted + 1)
