"""How many tokens and sequences the cache of vLLM holds on a card."""

from collections.abc import Iterator

from planner.hardware.usable import UsableMemory
from planner.memory.phases import PagePool
from planner.memory.result import CachePool
from planner.units import GIB
from planner.workload.workload import Inference, Training


def cache_pool(pool: PagePool, usable: UsableMemory) -> CachePool:
    """Return what is left for the cache of the share of the card that the engine takes, and what that holds.

    **Formula**: pages = ⌊(u · C − beside) / page⌋; sequences = pages / pages a sequence; tokens = sequences · their
    length. C is the total that a process sees (79.19 GiB on an H100 with 80 GB), not the label.

    **Source**: vLLM 0.33 v1/worker/gpu_worker.py determine_available_memory, v1/core/kv_cache_utils.py
    get_max_concurrency_for_kv_cache_config.
    """
    available = max(int(pool.utilization * usable.bytes) - pool.beside_bytes, 0)
    pages = available // pool.page_bytes
    sequences = pages / pool.pages
    return CachePool(
        bytes=pages * pool.page_bytes,
        tokens=int(sequences * pool.tokens),
        sequences=round(sequences, 2),
        utilization=pool.utilization,
    )


def pool_notes(pool: CachePool | None, workload: Training | Inference) -> Iterator[str]:
    """Say what `pool` holds, and where it is too small for `workload`."""
    if pool is None or not isinstance(workload, Inference):
        return
    length = workload.context_length or 1
    yield (
        f"Taking {pool.utilization:.0%} of the card leaves {pool.bytes / GIB:,.2f} GiB for the cache: {pool.tokens:,} "
        f"tokens, or {pool.sequences:,.2f} sequences of {length:,}."
    )
    if pool.sequences < workload.batch:
        yield f"That is not enough for {workload.batch:,} at once: raise memory_utilization, or let them wait."
