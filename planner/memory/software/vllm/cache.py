"""The KV cache of vLLM: pages of equal size for groups of layers, allocated from one pool.

A page holds `page_tokens` tokens of one layer. All groups use pages of the same size from the pool, so that in models
with several kinds of layers the smaller pages are padded, and the last group of a kind is padded with layers that
do not exist.

**Source**: vLLM 0.33 v1/core/kv_cache_planning.py (unify_kv_cache_spec_page_size,
_get_kv_cache_groups_uniform_page_size), v1/kv_cache_interface.py, platforms/interface.py _align_hybrid_block_size.
"""

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from planner.memory.inference.engine import attention_token_bytes, cached_groups, latent_token_bytes, state_bytes
from planner.memory.software.vllm.setup import VllmSetup
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mixer, StateMixer
from planner.units import ceil_div

SOURCE: Final = "vLLM 0.33 v1/core/kv_cache_planning.py and v1/kv_cache_interface.py: groups of layers with equal pages"
_MOST_PADDING: Final = 1.5

Kind = Literal["full", "sliding", "state", "cross"]


class PageKind(NamedTuple):
    """A kind of cached layer with equal pages: a page has `tokens` tokens, and `bytes` bytes for one layer."""

    kind: Kind
    window: int | None
    tokens: int
    bytes: int


class Pages(NamedTuple):
    """Page layout of the cache pool: bytes per page of a group of layers, and pages per sequence.

    `slots` is the number of layers for which pages are reserved, including those that only pad groups, and
    `page_tokens` the tokens of a page if all layers keep every token, else 0.
    """

    page_bytes: int
    cache_pages: int
    state_pages: int
    layers: int
    slots: int
    page_tokens: int = 0

    @property
    def pages(self) -> int:
        """Return the number of pages per sequence, for KV caches and states together."""
        return self.cache_pages + self.state_pages


@lru_cache(maxsize=512)
def pages_of(architecture: Architecture, kv_format: str, setup: VllmSetup, prompt: int) -> Pages | None:
    """Return the cache pages of a sequence of `setup.length` tokens, None if nothing is cached.

    **Formula**: layers of one kind: Σ layers · page bytes, and ⌈n / page tokens⌉ pages. Several kinds: groups of g
    layers, g the fewest layers of a kind (the most, if below 1.5 times that), pages of the largest kind; each kind
    takes ⌈layers / g⌉ groups with pages for n tokens, for min(window − 1 + tokens in flight, n) tokens and one page
    more in sliding layers, one page for a state.
    """
    layers_by_page = _layer_count_by_page_kind(architecture, kv_format, setup)
    if not layers_by_page:
        return None
    if any(kind.kind == "state" for kind in layers_by_page):
        layers_by_page = _pages_aligned_to_states(layers_by_page)
    total_layers = sum(layers_by_page.values())
    if len({(kind.kind, kind.window) for kind in layers_by_page}) == 1:
        kind = next(iter(layers_by_page))
        bytes_of_all = sum(count * each.bytes for each, count in layers_by_page.items())
        pages = _pages_per_sequence(kind, setup, prompt)
        states = kind.kind == "state"
        whole = kind.tokens if kind.kind == "full" else 0
        return Pages(bytes_of_all, 0 if states else pages, pages if states else 0, total_layers, total_layers, whole)
    return _hybrid_pages(_pages_of_equal_size(layers_by_page), total_layers, setup, prompt)


def _hybrid_pages(layers_by_page: dict[PageKind, int], total_layers: int, setup: VllmSetup, prompt: int) -> Pages:
    """Return the page layout of a model with several kinds of cached layers, grouped and padded."""
    least, most = min(layers_by_page.values()), max(layers_by_page.values())
    group = most if most < least * _MOST_PADDING else least
    groups = {kind: ceil_div(count, group) for kind, count in layers_by_page.items()}
    taken = {kind: number * _pages_per_sequence(kind, setup, prompt) for kind, number in groups.items()}
    states = sum(pages for kind, pages in taken.items() if kind.kind == "state")
    return Pages(
        group * next(iter(layers_by_page)).bytes,
        sum(taken.values()) - states,
        states,
        total_layers,
        group * sum(groups.values()),
    )


def _pages_per_sequence(kind: PageKind, setup: VllmSetup, prompt: int) -> int:
    """Return the number of pages that one sequence needs in one layer of `kind`."""
    if kind.kind == "state":
        return 1
    if kind.kind == "cross":
        return ceil_div(prompt, kind.tokens)
    if kind.window is None:
        return ceil_div(setup.length, kind.tokens)
    return ceil_div(min(kind.window - 1 + setup.in_flight, setup.length), kind.tokens) + 1


def _layer_count_by_page_kind(architecture: Architecture, kv_format: str, setup: VllmSetup) -> dict[PageKind, int]:
    """Return the number of cached layers by kind of page."""
    layers_by_page: dict[PageKind, int] = {}
    if architecture.kind == "encoder":
        return layers_by_page
    for group in cached_groups(architecture):
        for kind in _layer_page_kinds(group.layer, kv_format, setup):
            layers_by_page[kind] = layers_by_page.get(kind, 0) + group.count
    return layers_by_page


def _layer_page_kinds(layer: Layer, kv_format: str, setup: VllmSetup) -> list[PageKind]:
    """Return the kinds of pages that one layer needs."""
    mixers: tuple[Mixer | None, ...] = (layer.mixer, layer.second_mixer)
    kinds = [kind for mixer in mixers for kind in _mixer_page_kinds(mixer, kv_format, setup)]
    if layer.cross_attention is not None:
        kinds.append(_attention_page("cross", layer.cross_attention, kv_format, setup))
    return kinds


def _mixer_page_kinds(mixer: Mixer | None, kv_format: str, setup: VllmSetup) -> list[PageKind]:
    """Return the kinds of pages that one mixer needs, empty without a cache."""
    if isinstance(mixer, StateMixer):
        return [PageKind("state", None, 1, state_bytes(mixer, setup.element))]
    if isinstance(mixer, LatentAttention):
        tokens = setup.page_tokens
        return [PageKind("full", None, tokens, tokens * each) for each in latent_token_bytes(mixer, kv_format)]
    if isinstance(mixer, Attention) and not mixer.kv_shared:
        return [_attention_page("sliding" if mixer.window else "full", mixer, kv_format, setup)]
    return []


def _attention_page(kind: Kind, mixer: Attention, kv_format: str, setup: VllmSetup) -> PageKind:
    """Return the page of an attention layer: `setup.page_tokens` tokens of keys and values."""
    size = attention_token_bytes(mixer, kv_format)
    return PageKind(kind, mixer.window, setup.page_tokens, setup.page_tokens * size)


def _pages_aligned_to_states(layers_by_page: dict[PageKind, int]) -> dict[PageKind, int]:
    """Return attention pages enlarged to the size of a recurrent state, and states padded to that page size."""
    state = max(kind.bytes for kind in layers_by_page if kind.kind == "state")
    cached = [kind for kind in layers_by_page if kind.kind != "state"]
    if not cached:
        return layers_by_page
    token = max(kind.bytes // kind.tokens for kind in cached)
    step = max(kind.tokens for kind in cached)
    tokens = max(step * ceil_div(state, step * token), step)
    page = tokens * token
    return {
        kind._replace(bytes=page)
        if kind.kind == "state"
        else kind._replace(tokens=tokens, bytes=tokens * (kind.bytes // kind.tokens)): count
        for kind, count in layers_by_page.items()
    }


def _pages_of_equal_size(layers_by_page: dict[PageKind, int]) -> dict[PageKind, int]:
    """Return page kinds that are all as large as the largest: with more tokens per page, or padded."""
    largest = max(kind.bytes for kind in layers_by_page)
    unified: dict[PageKind, int] = {}
    for kind, count in layers_by_page.items():
        times = largest // kind.bytes if largest % kind.bytes == 0 and kind.kind != "state" else 1
        grown = kind._replace(tokens=kind.tokens * times, bytes=largest)
        unified[grown] = unified.get(grown, 0) + count
    return unified
