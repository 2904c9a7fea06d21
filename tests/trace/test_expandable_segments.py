"""Expandable segments, worked out by hand in MiB: pages of 2 for small requests and of 20 for large ones."""

import pytest

from planner.trace.allocator import CachingAllocator
from planner.trace.allocator_settings import AllocatorSettings

MIB = 1 << 20


@pytest.fixture
def card():
    return CachingAllocator(AllocatorSettings(expandable_segments=True))


def limited(capacity):
    return CachingAllocator(AllocatorSettings(expandable_segments=True), capacity * MIB)


def free_ranges(pool):
    return sorted((address / MIB, (address + size) / MIB) for size, address, _ in pool.free)


def test_memory_is_mapped_in_whole_pages(card):
    card.malloc(1)
    assert card.reserved_bytes == 2 * MIB
    card.malloc(5 * MIB)
    assert card.reserved_bytes == 22 * MIB
    # The 15 left grow by one page to 35, and 30 are taken: 50 would be reserved without expandable segments.
    card.malloc(30 * MIB)
    assert card.reserved_bytes == 42 * MIB
    assert (card.segments, free_ranges(card.large)) == (2, [(35, 40)])


def test_any_rest_of_512_bytes_is_split_off(card):
    card.malloc(20 * MIB - 512)
    assert [size for size, _, _ in card.large.free] == [512]


def test_emptying_unmaps_only_pages_without_any_use(card):
    card.malloc(5 * MIB)
    freed = card.malloc(50 * MIB)
    card.malloc(25 * MIB)
    card.free(freed)
    assert (card.reserved_bytes, free_ranges(card.large)) == (80 * MIB, [(5, 55)])
    card.empty_cache()
    # The page from 20 to 40 lies wholly in the free range; what is left of it on both sides stays.
    assert (card.reserved_bytes, card.segments, free_ranges(card.large)) == (60 * MIB, 2, [(5, 20), (40, 55)])
    # To empty again changes nothing.
    card.empty_cache()
    assert (card.reserved_bytes, card.segments) == (60 * MIB, 2)


def test_a_gap_is_filled_where_the_request_has_room(card):
    card.malloc(5 * MIB)
    freed = card.malloc(50 * MIB)
    card.malloc(25 * MIB)
    card.free(freed)
    card.empty_cache()
    # 45 fit between 5 and 55 once the page is mapped again; one segment results.
    assert card.malloc(45 * MIB).address == 5 * MIB
    assert (card.reserved_bytes, card.segments, free_ranges(card.large)) == (80 * MIB, 1, [(50, 55)])


def test_a_gap_that_is_too_narrow_is_passed_over(card):
    card.malloc(5 * MIB)
    freed = card.malloc(50 * MIB)
    card.malloc(25 * MIB)
    card.free(freed)
    card.empty_cache()
    # 60 do not fit between 5 and 55: they come behind the 80, where nothing is free before them.
    assert card.malloc(60 * MIB).address == 80 * MIB
    assert (card.reserved_bytes, card.segments) == (120 * MIB, 2)


def test_a_block_that_can_grow_is_left_for_larger_requests(card):
    low, rest = card.malloc(12 * MIB), card.malloc(18 * MIB)
    card.free(low)
    # Free: 0 to 12, which cannot grow, and 30 to 40, which can. 9 go into the larger block.
    assert card.malloc(9 * MIB).address == 0
    assert rest.address == 12 * MIB


def test_all_goes_back_when_all_is_free(card):
    blocks = [card.malloc(size * MIB) for size in (1, 5, 30, 70)]
    for block in blocks:
        card.free(block)
    card.empty_cache()
    assert (card.reserved_bytes, card.allocated_bytes, card.segments) == (0, 0, 0)
    assert (card.large.unmapped, card.small.unmapped) == ([], [])


def test_the_first_page_may_not_fit():
    card = limited(10)
    assert card.malloc(5 * MIB) is None
    assert card.reserved_bytes == 0
    assert card.malloc(1) is not None


def test_growing_fails_when_the_card_is_full():
    card = limited(50)
    card.malloc(15 * MIB)
    # 5 are left and 25 more make 40 in pages: 20 + 40 > 50.
    assert card.malloc(30 * MIB) is None
    assert (card.allocated_bytes, card.reserved_bytes) == (15 * MIB, 20 * MIB)


def test_what_was_mapped_before_the_failure_counts_in_the_peak():
    card = limited(70)
    card.malloc(20 * MIB)
    gap, end = card.malloc(20 * MIB), card.malloc(20 * MIB)
    card.free(gap)
    card.empty_cache()
    card.free(end)
    # 50 have room from 20 on: the gap is mapped (60 in all), the page behind would make 80 > 70. Then all that is
    # free is given back, 20 remain, and 60 more are still too much.
    assert card.malloc(50 * MIB) is None
    assert (card.reserved_bytes, card.max_reserved_bytes) == (20 * MIB, 60 * MIB)


def test_another_segment_begins_when_the_addresses_run_out():
    card = limited(80)
    blocks = [card.malloc(20 * MIB) for _ in range(4)]
    card.free(blocks[0])
    card.free(blocks[2])
    # Addresses go to 80 + 10, in pages 100: 40 have room in none of 0 to 20, 40 to 60 and 80 to 100. The new segment
    # needs 40 of 0 left; the free pages are given back, and it gets them.
    assert card.malloc(40 * MIB).address == 100 * MIB
    assert (card.reserved_bytes, card.segments) == (80 * MIB, 3)


def test_max_split_and_garbage_collection_leave_expandable_segments_alone():
    settings = "expandable_segments:True,max_split_size_mb:20,garbage_collection_threshold:0.1"
    card = CachingAllocator(AllocatorSettings.parse(settings), 100 * MIB)
    card.free(card.malloc(60 * MIB))
    # The free 60 may not be handed out for less than 20, but they are where the segment grows.
    assert card.malloc(5 * MIB).address == 0
    assert card.reserved_bytes == 60 * MIB
    # 80 fit after the 5: 55 are mapped and 25 more make 2 pages: 100 in all.
    assert card.malloc(80 * MIB).address == 5 * MIB
    assert card.malloc(30 * MIB) is None
