"""Sequences worked out by hand from the documented behavior; all sizes in MiB where no unit is given."""

from planner.trace.allocator import CachingAllocator
from planner.trace.allocator_settings import AllocatorSettings

MIB = 1 << 20


def allocator(settings="", capacity=None):
    return CachingAllocator(AllocatorSettings.parse(settings), None if capacity is None else capacity * MIB)


def free_sizes(pool):
    return [size / MIB for size, _, _ in pool.free]


def test_one_byte_takes_a_block_of_512_bytes():
    card = allocator()
    card.malloc(1)
    assert (card.allocated_bytes, card.reserved_bytes, card.segments) == (512, 2 * MIB, 1)
    assert card.largest_free_block_bytes == 2 * MIB - 512


def test_small_requests_share_segments_of_2_mib():
    card = allocator()
    # 2 MiB / 512 B = 4096 blocks fill one segment to the last byte; one more needs another.
    for _ in range(4096):
        card.malloc(512)
    assert (card.reserved_bytes, card.segments, card.largest_free_block_bytes) == (2 * MIB, 1, 0)
    card.malloc(512)
    assert (card.reserved_bytes, card.segments) == (4 * MIB, 2)


def test_one_mebibyte_is_small_and_one_byte_more_is_large():
    card = allocator()
    card.malloc(MIB)
    assert card.reserved_bytes == 2 * MIB
    card.malloc(MIB + 1)
    # The pools do not share: the large one takes 20 MiB although the small one has 1 MiB left.
    assert card.reserved_bytes == 22 * MIB
    assert card.allocated_bytes == 2 * MIB + 512


def test_the_rest_of_a_large_segment_serves_the_next_requests():
    card = allocator()
    card.malloc(8 * MIB)
    card.malloc(9 * MIB)
    # 20 − 8 − 9 = 3 are left; 4 do not fit and take 20 more, of which 16 are left.
    card.malloc(4 * MIB)
    assert (card.reserved_bytes, free_sizes(card.large)) == (40 * MIB, [3, 16])


def test_a_rest_of_up_to_1_mib_is_not_split_off_a_large_block():
    card = allocator()
    card.free(card.malloc(20 * MIB))
    block = card.malloc(19 * MIB)
    assert (card.allocated_bytes, card.large.free) == (20 * MIB, [])
    card.free(block)
    # 20 − 18.5 = 1.5 is more than 1 MiB, and is.
    card.malloc(19 * MIB - MIB // 2)
    assert free_sizes(card.large) == [1.5]


def test_a_small_block_is_split_down_to_512_bytes():
    card = allocator()
    card.malloc(MIB)
    card.malloc(MIB - 512)
    assert [size for size, _, _ in card.small.free] == [512]


def test_free_neighbours_merge_on_both_sides():
    card = allocator()
    first, second, third = (card.malloc(4 * MIB) for _ in range(3))
    # 4 + 4 + 4 + 8 free. Freeing the first leaves 4 and 8; the third merges with 8 to 12; the second with both to 20.
    card.free(first)
    assert free_sizes(card.large) == [4, 8]
    card.free(third)
    assert free_sizes(card.large) == [4, 12]
    card.free(second)
    assert free_sizes(card.large) == [20]
    assert not card.large.free[0][2].is_split


def test_a_freed_block_between_used_blocks_does_not_merge():
    card = allocator()
    blocks = [card.malloc(5 * MIB) for _ in range(4)]
    card.free(blocks[1])
    assert free_sizes(card.large) == [5]
    # What it left is a fragment: 6 need a segment of their own.
    card.malloc(6 * MIB)
    assert card.reserved_bytes == 40 * MIB


def test_the_smallest_fitting_block_with_the_lowest_address_is_taken():
    card = allocator()
    blocks = [card.malloc(size * MIB) for size in (14, 12, 16, 12)]
    for block in reversed(blocks):
        card.free(block)
    assert free_sizes(card.large) == [12, 12, 14, 16]
    # Addresses: 14 at 0, 12 at 14, 16 at 26, 12 at 42.
    assert card.malloc(11 * MIB + 1).address == 14 * MIB
    assert card.malloc(11 * MIB + 1).address == 42 * MIB
    assert card.malloc(11 * MIB + 1).address == 0


def test_emptying_the_cache_releases_only_whole_segments():
    card = allocator()
    kept, given = card.malloc(4 * MIB), card.malloc(12 * MIB)
    alone, small = card.malloc(30 * MIB), card.malloc(1)
    for block in (given, alone, small):
        card.free(block)
    card.empty_cache()
    # 30 and the small 2 go; the segment of 20 keeps 16 free beside the 4.
    assert (card.reserved_bytes, card.segments, free_sizes(card.large)) == (20 * MIB, 1, [16])
    card.free(kept)
    card.empty_cache()
    assert (card.reserved_bytes, card.segments, card.largest_free_block_bytes) == (0, 0, 0)


def test_roundup_counts_as_allocated():
    card = allocator("roundup_power2_divisions:4")
    # Between 64 and 128 the steps are 16: 84 become 96.
    card.malloc(84 * MIB)
    assert (card.allocated_bytes, card.reserved_bytes) == (96 * MIB, 96 * MIB)


def test_blocks_above_max_split_are_kept_for_requests_above_it():
    card = allocator("max_split_size_mb:20")
    card.free(card.malloc(30 * MIB))
    # 15 are below the limit and may not take from the 30: 16 more.
    card.malloc(15 * MIB)
    assert card.reserved_bytes == 46 * MIB
    # 25 take the 30 whole: 30 < 25 + 20.
    card.malloc(25 * MIB)
    assert (card.reserved_bytes, card.allocated_bytes) == (46 * MIB, 46 * MIB)


def test_a_block_larger_by_20_mib_is_too_large_to_be_taken_whole():
    card = allocator("max_split_size_mb:20")
    card.free(card.malloc(46 * MIB))
    card.malloc(26 * MIB)
    # 46 ≥ 26 + 20: it stays, and 26 more are asked for.
    assert (card.reserved_bytes, free_sizes(card.large)) == (72 * MIB, [46])
    card.malloc(26 * MIB + 1)
    # 46 < 26 MiB + 512 B + 20 MiB.
    assert (card.reserved_bytes, free_sizes(card.large)) == (72 * MIB, [])


def test_a_request_below_max_split_still_splits_its_segment():
    card = allocator("max_split_size_mb:20")
    card.malloc(4 * MIB)
    card.malloc(5 * MIB)
    assert (card.reserved_bytes, free_sizes(card.large)) == (20 * MIB, [11])
