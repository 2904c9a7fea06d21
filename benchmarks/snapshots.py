"""A memory snapshot of PyTorch against the model of its caching allocator: block by block, to the address.

The format is that of `torch.cuda.memory._snapshot`, as its documentation has it, with the actions `segment_map` and
`segment_unmap` of expandable segments.
"""

import pickle
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from planner.memory.segments import SMALL_BYTES, SMALL_SEGMENT_BYTES, block_size_bytes
from planner.trace.allocator import BlockPool, CachingAllocator, MemoryBlock
from planner.trace.allocator_settings import AllocatorSettings

Entry = dict[str, Any]
GROWS = ("segment_alloc", "segment_map")
SHRINKS = ("segment_free", "segment_unmap")


class Outcome(NamedTuple):
    """Agreement of model and card on one device; `difference` is empty if they agree completely."""

    device: int
    settings: str
    allocations: int
    reserved_bytes: int
    peak_reserved_bytes: int
    peak_allocated_bytes: int
    difference: str


class _PlainUnpickler(pickle.Unpickler):
    """Unpickler that reads only dictionaries, lists, numbers and texts, the types in a snapshot."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"a snapshot has no {module}.{name}")


class _GivenPool(BlockPool):
    """Pool that places segments at the addresses that they had on the card."""

    def __init__(self, like: BlockPool, places: deque[int]) -> None:
        super().__init__(like.page_bytes)
        self.places = places

    def new_segment(self, size: int, mapped: bool = True) -> MemoryBlock:
        if mapped and self.places:
            return MemoryBlock(self, self.places.popleft(), size)
        return super().new_segment(size, mapped)


def load_snapshot(path: Path) -> Entry:
    """Return the snapshot that `torch.cuda.memory._dump_snapshot` wrote to `path`."""
    with path.open("rb") as file:
        snapshot: Entry = _PlainUnpickler(file).load()
    return snapshot


def compare(snapshot: Entry, capacity_bytes: int | None = None) -> Iterator[Outcome]:
    """Replay the recorded history of each device in a snapshot, and yield the outcome.

    `capacity_bytes` is the process's limit on the card's memory; it is inferred if the card ran out of memory.
    If it is unknown, memory returned to the card is attributed to `torch.cuda.empty_cache`.
    """
    settings = AllocatorSettings.parse(_settings_text(snapshot))
    for device, trace in enumerate(snapshot["device_traces"]):
        if trace:
            segments = [segment for segment in snapshot["segments"] if segment.get("device", 0) == device]
            yield _Comparison(settings, segments, trace, capacity_bytes).outcome(device)


def _settings_text(snapshot: Entry) -> str:
    known = snapshot.get("allocator_settings", {})
    return str(known.get("PYTORCH_CUDA_ALLOC_CONF") or known.get("PYTORCH_ALLOC_CONF") or "")


class _Comparison:
    def __init__(
        self, settings: AllocatorSettings, segments: list[Entry], trace: list[Entry], capacity: int | None
    ) -> None:
        self._settings, self._segments, self._trace = settings, segments, trace
        places, alive = _before(segments, trace, settings)
        self._reserved = self._peak = sum(size for size, _ in places.values())
        self._capacity = capacity if capacity is not None else _capacity_where_it_ran_out(trace, self._reserved)
        self._model = CachingAllocator(settings, self._capacity)
        self._places: deque[int] = deque()
        if not settings.expandable_segments:
            self._model.small = _GivenPool(self._model.small, self._places)
            self._model.large = _GivenPool(self._model.large, self._places)
        self._blocks = _rebuild(self._model, places, alive)
        self._offsets: dict[BlockPool, int] = {}
        self._starts_within = bool(places)
        self._peak_allocated = self._model.allocated_bytes

    def outcome(self, device: int) -> Outcome:
        difference = self._refusal() or self._first_difference() or self._difference_at_the_end()
        return Outcome(
            device=device,
            settings=self._settings.text,
            allocations=sum(entry["action"] == "alloc" for entry in self._trace),
            reserved_bytes=self._reserved,
            peak_reserved_bytes=self._peak,
            peak_allocated_bytes=self._peak_allocated,
            difference=difference,
        )

    def _refusal(self) -> str:
        if len({entry.get("stream", 0) for entry in self._trace}) > 1:
            return "not compared: the run used several streams"
        if self._starts_within and self._settings.expandable_segments:
            return "not compared: the recording of expandable segments began after the first allocation"
        return ""

    def _first_difference(self) -> str:
        for number, (before, entry) in enumerate(pairwise([{"action": ""}, *self._trace])):
            found = self._step(before["action"], entry)
            if found:
                return f"event {number:,}, {entry['action']} of {entry['size']:,} B: {found}"
        return ""

    def _step(self, before: str, entry: Entry) -> str:
        action = entry["action"]
        if action in GROWS:
            self._reserved += entry["size"]
            self._peak = max(self._peak, self._reserved)
            self._places.append(entry["addr"])
        elif action in SHRINKS:
            if self._capacity is None and before not in SHRINKS:
                self._model.empty_cache()
            self._reserved -= entry["size"]
        elif action == "alloc":
            return self._allocate(entry)
        elif action == "free_completed":
            self._model.free(self._blocks.pop(entry["addr"]))
        elif action == "oom" and self._model.malloc(entry["size"]) is not None:
            return "the model has memory left"
        return ""

    def _allocate(self, entry: Entry) -> str:
        block = self._model.malloc(entry["size"])
        if block is None:
            return "the model has no memory left"
        self._blocks[entry["addr"]] = block
        self._peak_allocated = max(self._peak_allocated, self._model.allocated_bytes)
        # Where the driver puts an expandable segment is its own choice; from there on all is ours.
        start = entry["addr"] - block.address if self._settings.expandable_segments else 0
        if block.address + self._offsets.setdefault(block.pool, start) != entry["addr"]:
            return "the model chose another block"
        if self._model.reserved_bytes != self._reserved:
            return f"the model reserves {self._model.reserved_bytes:,} B, the card {self._reserved:,} B"
        return ""

    def _difference_at_the_end(self) -> str:
        model = (self._model.reserved_bytes, self._model.allocated_bytes, self._model.segments)
        reserved = sum(segment["total_size"] for segment in self._segments)
        allocated = sum(segment["allocated_size"] for segment in self._segments)
        card = (reserved, allocated, len(self._segments))
        return "" if model == card else f"reserved, allocated, segments at the end: the model {model}, the card {card}"


def _capacity_where_it_ran_out(trace: list[Entry], reserved: int) -> int | None:
    for entry in trace:
        sign = (entry["action"] in GROWS) - (entry["action"] in SHRINKS)
        reserved += sign * entry["size"]
        if entry["action"] == "oom":
            return reserved + int(entry["device_free"])
    return None


def _before(
    segments: list[Entry], trace: list[Entry], settings: AllocatorSettings
) -> tuple[dict[int, tuple[int, bool]], dict[int, int]]:
    """Return the segments (size, small or not) and the blocks in use at the beginning of the recording, by address."""
    places = {item["address"]: (item["total_size"], item["segment_type"] == "small") for item in segments}
    alive = {
        block["address"]: block["size"]
        for segment in segments
        for block in segment["blocks"]
        if block["state"].startswith("active")
    }
    if settings.expandable_segments:
        known = {entry["addr"] for entry in trace if entry["action"] == "alloc"}
        return ({} if known >= alive.keys() else places), {}
    for entry in reversed(trace):
        match entry["action"]:
            case "alloc":
                del alive[entry["addr"]]
            case "free_completed":
                alive[entry["addr"]] = block_size_bytes(entry["size"], settings.roundup_power2_divisions or 1)
            case "segment_alloc":
                del places[entry["addr"]]
            case "segment_free":
                places[entry["addr"]] = (entry["size"], entry["size"] == SMALL_SEGMENT_BYTES)
    return places, alive


def _rebuild(
    model: CachingAllocator, places: dict[int, tuple[int, bool]], alive: dict[int, int]
) -> dict[int, MemoryBlock]:
    """Add the earlier segments and blocks to the model; return the blocks in use by address."""
    used: dict[int, MemoryBlock] = {}
    for start, (size, is_small) in places.items():
        inside = [address for address in sorted(alive) if start <= address < start + size]
        rest = MemoryBlock(model.small if is_small else model.large, start, size)
        model.reserved_bytes += size
        model.segments += 1
        for address, following in pairwise([*inside, start + size]):
            if address > rest.address:
                rest.pool.add(rest.cut_front(address - rest.address))
            taken = alive[address]
            if not is_small and following - address - taken <= SMALL_BYTES:
                taken = following - address
            block = rest if taken == rest.size else rest.cut_front(taken)
            block.allocated = True
            model.allocated_bytes += taken
            used[address] = block
        if not rest.allocated:
            rest.pool.add(rest)
    model.max_reserved_bytes = model.reserved_bytes
    return used
