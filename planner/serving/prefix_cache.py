"""The prefix cache of a replica: blocks of earlier prompts that later prompts with the same prefix reuse."""

from planner.serving.traffic import CommonPrefix


class _CachedPrefix:
    """The cached blocks of one prefix, from the end of the shorter prefix before it."""

    __slots__ = ("blocks", "expiry", "ram_expiry", "ready", "start", "users")

    def __init__(self, start: int, blocks: int) -> None:
        self.start, self.blocks = start, blocks
        self.users = 0
        self.ready = False
        self.expiry = self.ram_expiry = 0


class PrefixCache:
    """Prefixes in the free blocks of a KV cache; the least recently used are overwritten first.

    `taken` counts all blocks that requests have taken from the queue of free blocks. A block that is set free goes to
    its end, so that it is overwritten when as many have been taken as were free at that moment.

    **Source**: vLLM v1/core/kv_cache_utils.py FreeKVCacheBlockQueue.

    `ram_blocks` are the blocks that RAM holds of the cache, of which those that were not used for longest are
    overwritten first, too: every block is copied there once it is computed.

    **Source** of the copies in RAM: vLLM v1/kv_offload/cpu/manager.py and policies/lru.py.

    **Assumes** that no block is taken out of the middle of the queue; hits do so, and bring the others forward.
    """

    def __init__(self, block_tokens: int, ram_blocks: int = 0) -> None:
        self._block_tokens, self._ram_blocks = block_tokens, ram_blocks
        self._entries: dict[int, _CachedPrefix] = {}
        self.taken = 0

    def matched(self, prefixes: tuple[CommonPrefix, ...], prompt: int, *, in_ram: bool = False) -> int:
        """Return the tokens at the beginning of a prompt that are cached: whole blocks, without the last token.

        With `in_ram` those count, too, that only RAM has.
        """
        found = 0
        for prefix in prefixes:
            entry = self._entries.get(prefix.name)
            if entry is None or not (entry.ready or (in_ram and entry.ram_expiry)):
                break
            blocks = entry.blocks if entry.users and entry.ready else self._left(entry)
            if in_ram:
                blocks = max(blocks, min(entry.blocks, entry.ram_expiry - self.taken))
            found = (entry.start + blocks) * self._block_tokens
            if found < prefix.end - self._block_tokens + 1:
                break
        return min(found, (prompt - 1) // self._block_tokens * self._block_tokens)

    def _left(self, entry: _CachedPrefix) -> int:
        """Return the blocks of an unused prefix that are not overwritten yet; its end is overwritten first."""
        return max(0, min(entry.blocks, entry.expiry - self.taken))

    def claim(self, prefixes: tuple[CommonPrefix, ...]) -> tuple[int, int]:
        """Return the blocks of the prefixes, and how many of them one more user would take from the free blocks."""
        whole = moved = 0
        for prefix in prefixes:
            entry = self._entries.get(prefix.name)
            blocks = max(0, prefix.end // self._block_tokens - whole) if entry is None else entry.blocks
            if entry is None or not entry.users:
                moved += blocks
            whole = (whole if entry is None else entry.start) + blocks
        return whole, moved

    def acquire(self, prefixes: tuple[CommonPrefix, ...]) -> int:
        """Add one user of the prefixes; return their blocks that are no longer free."""
        whole = moved = 0
        for prefix in prefixes:
            entry = self._entries.get(prefix.name)
            if entry is None:
                entry = _CachedPrefix(whole, max(0, prefix.end // self._block_tokens - whole))
                self._entries[prefix.name] = entry
            if not entry.users:
                kept = self._left(entry) if entry.ready else 0
                entry.ready = entry.ready and kept == entry.blocks
                self.taken += entry.blocks - kept
                moved += entry.blocks
            entry.users += 1
            whole = entry.start + entry.blocks
        return moved

    def computed(self, prefixes: tuple[CommonPrefix, ...]) -> None:
        """Mark these prefixes as computed, so that later prompts can use them."""
        for prefix in prefixes:
            self._entries[prefix.name].ready = True

    def release(self, prefixes: tuple[CommonPrefix, ...], free: int) -> int:
        """Remove one user of the prefixes; return the blocks that become free, in addition to `free` others."""
        released = 0
        for prefix in prefixes:
            entry = self._entries[prefix.name]
            entry.users -= 1
            if not entry.users:
                released += entry.blocks
                entry.expiry = self.taken + free + released
                entry.ram_expiry = self.taken + self._ram_blocks + entry.blocks if self._ram_blocks else 0
        return released

    def keep(self, name: int, start_blocks: int, tokens: int, free: int) -> None:
        """Keep the context of an ended request, of `tokens` tokens in all, for the next turn of its session."""
        entry = _CachedPrefix(start_blocks, max(0, tokens // self._block_tokens - start_blocks))
        entry.ready, entry.expiry = True, self.taken + free
        entry.ram_expiry = self.taken + self._ram_blocks if self._ram_blocks else 0
        self._entries[name] = entry
