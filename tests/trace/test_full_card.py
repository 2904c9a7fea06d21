"""What happens when the card has no more to give: documented paths, worked out by hand in MiB."""

import pytest

from planner.trace.allocator import CachingAllocator
from planner.trace.allocator_settings import AllocatorSettings

MIB = 1 << 20


def allocator(settings, capacity):
    return CachingAllocator(AllocatorSettings.parse(settings), capacity * MIB)


def free_sizes(pool):
    return [size / MIB for size, _, _ in pool.free]


def test_cached_segments_are_released_before_a_request_fails():
    card = allocator("", 30)
    card.free(card.malloc(16 * MIB))
    card.free(card.malloc(1))
    # 16 + 2 + 20 > 30: both cached segments go, and 20 remain.
    assert card.malloc(20 * MIB) is not None
    assert (card.reserved_bytes, card.max_reserved_bytes, card.segments) == (20 * MIB, 20 * MIB, 1)


def test_a_request_fails_when_nothing_can_be_released():
    card = allocator("", 30)
    card.malloc(16 * MIB)
    assert card.malloc(16 * MIB) is None
    assert (card.allocated_bytes, card.reserved_bytes) == (16 * MIB, 16 * MIB)


def test_the_card_can_be_filled_completely():
    card = allocator("", 30)
    assert card.malloc(10 * MIB) is not None
    assert card.malloc(20 * MIB) is not None
    assert card.malloc(1) is None


def test_partly_used_segments_cannot_be_released():
    card = allocator("", 40)
    card.malloc(4 * MIB)
    card.free(card.malloc(16 * MIB))
    # 20 are reserved, 16 of them free; 24 would fit into 40 − 4, but 20 + 24 > 40.
    assert card.malloc(24 * MIB) is None
    assert card.reserved_bytes == 20 * MIB


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
@pytest.mark.parametrize("capacity", [0, -5])
def test_a_card_without_memory_serves_nothing(settings, capacity):
    card = allocator(settings, capacity)
    assert card.malloc(1) is None
    assert card.reserved_bytes == 0


def test_with_max_split_the_oversize_segment_that_suffices_goes_first():
    card = allocator("max_split_size_mb:20", 60)
    card.free(card.malloc(50 * MIB))
    card.free(card.malloc(1))
    # 26 may not take the 50 (50 ≥ 26 + 20) and 52 + 26 > 60: the 50 go, the small 2 stay.
    card.malloc(26 * MIB)
    assert (card.reserved_bytes, card.max_reserved_bytes) == (28 * MIB, 52 * MIB)


def test_with_max_split_several_oversize_segments_go_largest_first():
    card = allocator("max_split_size_mb:20", 80)
    first, second, third = (card.malloc(size * MIB) for size in (22, 24, 20))
    for block in (first, second, third):
        card.free(block)
    # 40 fit into none: 24 and 22 go, which are 46 ≥ 40, and the 20 stay: 20 + 40.
    card.malloc(40 * MIB)
    assert (card.reserved_bytes, free_sizes(card.large)) == (60 * MIB, [20])


def test_with_max_split_all_goes_if_the_oversize_segments_do_not_suffice():
    card = allocator("max_split_size_mb:20", 60)
    card.free(card.malloc(22 * MIB))
    card.free(card.malloc(1))
    # 24 + 50 > 60: the 22 go, but 22 < 50; so everything goes.
    card.malloc(50 * MIB)
    assert card.reserved_bytes == 50 * MIB


def test_with_max_split_segments_below_it_are_left_to_the_last_step():
    card = allocator("max_split_size_mb:40", 60)
    card.free(card.malloc(30 * MIB))
    card.malloc(50 * MIB)
    assert card.reserved_bytes == 50 * MIB


def aged(settings, capacity):
    """Return a card with 30 free for two searches, 24 free for one, 32 in use, and the next search counted."""
    card = allocator(settings, capacity)
    old, young = card.malloc(30 * MIB), card.malloc(24 * MIB)
    card.free(old)
    card.malloc(32 * MIB)
    card.free(young)
    return card


def test_garbage_collection_frees_the_oldest_segments_first():
    card = aged("garbage_collection_threshold:0.4", 200)
    # 86 reserved > 0.4 × 200 = 80. Ages at the fourth search: 2 and 1, mean 1.5: the 30 go, which are ≥ 86 − 80.
    card.malloc(40 * MIB)
    assert (card.reserved_bytes, free_sizes(card.large)) == (96 * MIB, [24])


def test_garbage_collection_goes_on_until_enough_is_freed():
    card = aged("garbage_collection_threshold:0.275", 200)
    # 86 − 55 = 31 to free: the first round frees 30, the second, whose mean age is 1, the 24.
    card.malloc(40 * MIB)
    assert (card.reserved_bytes, free_sizes(card.large)) == (72 * MIB, [])


def test_garbage_collection_ends_when_all_is_freed():
    card = aged("garbage_collection_threshold:0.01", 1000)
    card.malloc(40 * MIB)
    assert card.reserved_bytes == 72 * MIB


def test_garbage_collection_waits_for_the_threshold():
    card = aged("garbage_collection_threshold:0.5", 200)
    card.malloc(40 * MIB)
    assert card.reserved_bytes == (86 + 40) * MIB


def test_without_a_capacity_nothing_is_collected():
    card = CachingAllocator(AllocatorSettings(garbage_collection_threshold=0.01))
    card.free(card.malloc(30 * MIB))
    card.malloc(40 * MIB)
    assert card.reserved_bytes == 70 * MIB
