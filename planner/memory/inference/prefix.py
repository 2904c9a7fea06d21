"""Pages of the KV cache that requests with a common beginning share, and the part of the cache that is kept in RAM."""

from planner.units import ceil_div
from planner.workload.workload import Inference


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
