"""The prefix cache: what is found again, what was overwritten, and what several requests share."""

from planner.serving.prefix_cache import PrefixCache
from planner.serving.traffic import CommonPrefix

SHARED = (CommonPrefix(1, 70),)


def used(cache, prefixes, free):
    blocks = cache.acquire(prefixes)
    cache.computed(prefixes)
    cache.release(prefixes, free - blocks)


def test_whole_blocks_are_found_again_but_never_the_last_token():
    cache = PrefixCache(16)
    assert cache.matched(SHARED, 100) == 0
    used(cache, SHARED, 50)
    assert cache.matched(SHARED, 100) == 64
    assert cache.matched(SHARED, 64) == 48


def test_a_beginning_that_is_still_read_is_not_found():
    cache = PrefixCache(16)
    assert cache.acquire(SHARED) == 4
    assert cache.matched(SHARED, 100) == 0
    assert cache.acquire(SHARED) == 0
    cache.computed(SHARED)
    assert cache.matched(SHARED, 100) == 64
    assert cache.release(SHARED, 10) == 0
    assert cache.release(SHARED, 10) == 4


def test_what_was_not_used_is_overwritten_from_its_end():
    cache = PrefixCache(16)
    used(cache, SHARED, 10)
    cache.taken += 6
    assert cache.matched(SHARED, 100) == 64
    cache.taken += 2
    assert cache.matched(SHARED, 100) == 32
    cache.taken += 9
    assert cache.matched(SHARED, 100) == 0
    assert cache.claim(SHARED) == (4, 4)
    assert cache.acquire(SHARED) == 4
    assert cache.matched(SHARED, 100) == 0


def test_beginnings_follow_each_other():
    cache, both = PrefixCache(16), (*SHARED, CommonPrefix(2, 130))
    assert cache.claim(both) == (8, 8)
    used(cache, both, 50)
    assert cache.matched(both, 200) == 128
    assert cache.matched(SHARED, 200) == 64
    cache.acquire(SHARED)
    assert cache.claim(both) == (8, 4)
    cache.release(SHARED, 30)
    other = (CommonPrefix(3, 70), CommonPrefix(2, 130))
    assert cache.matched(other, 200) == 0


def test_the_context_of_a_session_is_kept():
    cache = PrefixCache(16)
    cache.keep(-1, 2, 100, 20)
    assert cache.matched((CommonPrefix(-1, 100),), 200) == 96
    cache.keep(-2, 9, 100, 20)
    assert cache.matched((CommonPrefix(-2, 100),), 200) == 144 // 16 * 16


def test_what_is_overwritten_on_the_card_stays_in_ram_until_as_much_was_written_there():
    cache = PrefixCache(16, ram_blocks=20)
    begin = (CommonPrefix(1, 64),)
    cache.acquire(begin)
    cache.computed(begin)
    cache.release(begin, free=0)
    assert (cache.matched(begin, 100), cache.matched(begin, 100, in_ram=True)) == (64, 64)
    cache.taken += 4
    assert (cache.matched(begin, 100), cache.matched(begin, 100, in_ram=True)) == (0, 64)
    cache.taken += 18  # 4 + 18 of 4 + 20 blocks
    assert cache.matched(begin, 100, in_ram=True) == 32
    cache.taken += 2
    assert cache.matched(begin, 100, in_ram=True) == 0


def test_a_session_is_kept_in_ram_too():
    cache = PrefixCache(16, ram_blocks=8)
    cache.keep(-1, 0, 64, free=0)
    assert cache.matched((CommonPrefix(-1, 64),), 100, in_ram=True) == 64
    bare = PrefixCache(16)
    bare.keep(-1, 0, 64, free=0)
    bare.taken += 4
    assert bare.matched((CommonPrefix(-1, 64),), 100, in_ram=True) == 0


def test_without_ram_nothing_is_kept_in_it():
    cache = PrefixCache(16)
    used(cache, SHARED, 4)
    cache.taken += 4
    assert cache.matched(SHARED, 100, in_ram=True) == cache.matched(SHARED, 100) == 0
