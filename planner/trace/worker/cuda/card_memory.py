"""Memory of the simulated cards at any moment of a trace, as PyTorch's allocator on them would report it."""

from typing import Any, Final

from planner.trace.allocator import CachingAllocator, MemoryBlock
from planner.trace.allocator_settings import DEFAULT_SETTINGS
from planner.trace.worker.ledger import AllocationLedger

_POOLS: Final = ("all", "small_pool", "large_pool")
_COUNTED: Final = ("allocation", "segment", "active", "inactive_split", "inactive_split_bytes")
_SIZES: Final = ("allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes")
_NUMBERS: Final = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")


class _OneCard:
    """Allocator of one card, with the most bytes since the peaks were reset."""

    def __init__(self) -> None:
        self.allocator = CachingAllocator(DEFAULT_SETTINGS)
        self.most_allocated_bytes = self.most_reserved_bytes = 0

    def note_peaks(self) -> None:
        """Count what is allocated and reserved now to the peaks."""
        self.most_allocated_bytes = max(self.most_allocated_bytes, self.allocator.allocated_bytes)
        self.most_reserved_bytes = max(self.most_reserved_bytes, self.allocator.reserved_bytes)

    def reset_peaks(self) -> None:
        """Begin new peaks with what is allocated and reserved now."""
        self.most_allocated_bytes = self.most_reserved_bytes = 0
        self.note_peaks()


class CardMemory:
    """Memory of the cards while a ledger records: nothing is followed until a program asks for the first time."""

    def __init__(self, ledger: AllocationLedger) -> None:
        self._ledger = ledger
        self._cards: dict[int, _OneCard] = {}
        self._blocks: dict[int, tuple[_OneCard, MemoryBlock]] = {}

    def allocate(self, entry: int, size: int, card: int) -> None:
        """Note an allocation."""
        one = self._cards.setdefault(card, _OneCard())
        block = one.allocator.malloc(size)
        if block is not None:
            self._blocks[entry] = one, block
        one.note_peaks()

    def free(self, entry: int) -> None:
        """Note that an allocation was freed."""
        one, block = self._blocks.pop(entry)
        one.allocator.free(block)

    def _card(self, card: int) -> _OneCard:
        """Return the allocator of a card as it is now."""
        if self._ledger.observer is not self:
            self._cards, self._blocks = {}, {}
            for entry, size, where in self._ledger.changes():
                if where is None:
                    self.free(entry)
                else:
                    self.allocate(entry, size, where)
            self._ledger.observer = self
        return self._cards.setdefault(card, _OneCard())

    @property
    def events(self) -> int:
        """Return the number of allocations and frees so far."""
        return self._ledger.events

    def empty_cache(self) -> None:
        """Give back what is reserved and free."""
        self._card(0)
        for one in self._cards.values():
            one.allocator.empty_cache()

    def reset_peaks(self, card: int) -> None:
        """Begin new peaks."""
        self._card(card).reset_peaks()

    def reserved_bytes(self, card: int) -> int:
        """Return how many bytes a card's allocator has reserved."""
        return self._card(card).allocator.reserved_bytes

    def statistics(self, card: int) -> dict[str, Any]:
        """Return the statistics of a card's allocator, summed over its pools.

        **Source**: `THCPModule_memoryStats` of torch/csrc/cuda/Module.cpp.
        """
        one = self._card(card)
        allocated = {"current": one.allocator.allocated_bytes, "peak": one.most_allocated_bytes}
        reserved = {"current": one.allocator.reserved_bytes, "peak": one.most_reserved_bytes}
        nothing = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}
        sizes = {name: nothing | (reserved if name == "reserved_bytes" else allocated) for name in _SIZES}
        by_pool = dict.fromkeys(_COUNTED, nothing) | sizes
        return {
            **{name: dict.fromkeys(_POOLS, nothing) | {"all": figures} for name, figures in by_pool.items()},
            **dict.fromkeys(_NUMBERS, 0),
            **dict.fromkeys(("oversize_allocations", "oversize_segments"), nothing),
            "max_split_size": -1,
        }
