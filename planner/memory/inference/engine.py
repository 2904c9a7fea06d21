"""Bytes that a token or a sequence takes in the cache of an engine, by kind of layer, and the pages that hold them."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import KV_FORMATS
from planner.memory.inference.draft import cached_groups
from planner.memory.inference.prefix import held_pages
from planner.memory.result import Term, TermName
from planner.memory.terms import library_symbol, model_symbol, term, workload_symbol
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, StateMixer
from planner.units import ceil_div

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


@lru_cache(maxsize=512)
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
