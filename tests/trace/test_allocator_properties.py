from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from recordings import Recorder

from planner.memory.segments import block_size_bytes
from planner.trace.allocator import CachingAllocator
from planner.trace.allocator_settings import AllocatorSettings
from planner.trace.analysis.live_memory import live_memory
from planner.trace.replay import replay

MIB = 1 << 20

SIZES = st.one_of(
    st.integers(1, 4096),
    st.integers(1, 2 * MIB),
    st.integers(MIB, 64 * MIB),
    st.sampled_from([512, MIB, MIB + 1, 2 * MIB, 10 * MIB - 512, 10 * MIB, 20 * MIB, 22 * MIB, 40 * MIB]),
)
STEPS = st.lists(SIZES | st.integers(-8, -1) | st.just(0), max_size=60)
"""A size is allocated; −1 frees what was made last, −2 the one before, …; 0 empties the cache."""
SETTINGS = st.builds(
    AllocatorSettings,
    expandable_segments=st.booleans(),
    max_split_size_bytes=st.sampled_from([None, 20 * MIB, 32 * MIB]),
    garbage_collection_threshold=st.sampled_from([None, 0.1, 0.5, 0.9]),
    roundup_power2_divisions=st.sampled_from([None, 1, 4]),
)
CAPACITIES = st.none() | st.integers(0, 400 * MIB)


def check(allocator, alive, capacity):
    """Assert what always holds: bytes add up, blocks neither overlap nor could be merged."""
    pools = (allocator.small, allocator.large)
    free = [block for pool in pools for _, _, block in pool.free]
    assert allocator.allocated_bytes == sum(block.size for block in alive)
    assert allocator.reserved_bytes == allocator.allocated_bytes + sum(block.size for block in free)
    assert capacity is None or allocator.max_reserved_bytes <= capacity
    assert allocator.largest_free_block_bytes == max((block.size for block in free), default=0)
    for block in free:
        assert not any(other and other.mapped and not other.allocated for other in (block.previous, block.next))
    ranges = defaultdict(list)
    for block in [*alive, *free, *(block for pool in pools for _, block in pool.unmapped)]:
        ranges[block.pool].append((block.address, block.address + block.size))
    for of_pool in map(sorted, ranges.values()):
        assert all(end <= start for (_, end), (start, _) in pairwise(of_pool))


@given(STEPS, SETTINGS, CAPACITIES)
def test_counters_match_the_blocks_and_all_memory_is_released(steps, settings, capacity):
    allocator, alive = CachingAllocator(settings, capacity), []
    for step in steps:
        if step > 0:
            block = allocator.malloc(step)
            if block is not None:
                assert block.size >= block_size_bytes(step, settings.roundup_power2_divisions or 1)
                alive.append(block)
        elif step == 0:
            allocator.empty_cache()
        elif alive:
            allocator.free(alive.pop(max(step, -len(alive))))
        check(allocator, alive, capacity)
    while alive:
        allocator.free(alive.pop())
        check(allocator, alive, capacity)
    free = [block for pool in (allocator.small, allocator.large) for _, _, block in pool.free]
    # Every segment, or range of pages, is one free block again.
    assert len(free) == allocator.segments
    assert settings.expandable_segments or not any(block.is_split for block in free)
    allocator.empty_cache()
    assert (allocator.reserved_bytes, allocator.allocated_bytes, allocator.segments) == (0, 0, 0)
    assert (allocator.small.free, allocator.large.free) == ([], [])


@given(STEPS, SETTINGS, CAPACITIES)
def test_a_failed_request_changes_no_block_in_use(steps, settings, capacity):
    allocator, alive = CachingAllocator(settings, capacity), {}
    for step in (size for size in steps if size > 0):
        block = allocator.malloc(step)
        if block is not None:
            alive[block] = (block.address, block.size)
        assert all((block.address, block.size) == place for block, place in alive.items())


def recorded(steps):
    recorder, alive = Recorder(), []
    for step in steps:
        if step > 0:
            alive.append(recorder.make(step))
        elif step < 0 and alive:
            recorder.free(alive.pop(max(step, -len(alive))))
    return recorder.recording().allocations


@given(STEPS, SETTINGS)
def test_a_card_with_the_reserved_memory_serves_the_run_unchanged(steps, settings):
    allocations = recorded(steps)
    settings = settings.evolve(garbage_collection_threshold=None)
    unlimited = replay(allocations, settings)
    assert unlimited.out_of_memory is None
    assert unlimited.reserved_bytes >= unlimited.peak_allocated_bytes >= unlimited.allocated_bytes
    assert replay(allocations, settings, unlimited.reserved_bytes) == unlimited


@given(STEPS, SETTINGS, st.integers(0, 400 * MIB))
def test_a_card_below_the_live_memory_runs_out(steps, settings, capacity):
    allocations = recorded(steps)
    rounded = [block_size_bytes(size, settings.roundup_power2_divisions or 1) for size in allocations.bytes]
    needed = max(live_memory(allocations.evolve(bytes=tuple(rounded))).totals)
    allocated = replay(allocations, settings).peak_allocated_bytes
    # Expandable segments split every block to what is needed; else up to 1 MiB more is handed out with it.
    assert allocated == needed if settings.expandable_segments else allocated >= needed
    replayed = replay(allocations, settings, capacity)
    assert replayed.reserved_bytes <= capacity
    failed = replayed.out_of_memory
    assert failed is not None or needed <= capacity
    if failed is not None:
        assert failed.bytes == allocations.bytes[failed.index]
        assert failed.allocated_bytes <= failed.reserved_bytes <= capacity
