"""Shares of memory terms on each of several cards, and the memory of communication buffers."""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final, NamedTuple

from planner.memory.phases import AnyTerm, DeferredTerm
from planner.memory.result import Term, TermName, TermPart
from planner.memory.terms import library_symbol, term
from planner.models.architecture import Architecture, Tensor
from planner.units import ceil_div

_ROUNDED: Final = 1.2
"""Maximum ratio of a card's rounded-up share to an even share; above this ratio, fewer cards share the experts."""
OFFLOADED: Final = "the parameters are offloaded to host memory or to disk"
"""Explanation of a load phase without parameters on the card."""


class ShardedCounts(NamedTuple):
    """Parameter counts of a network whose tensors are divided by rows (their first dimension) over several cards.

    `share` are the parameters of one card, `layer` those of the largest layer and `edges` those outside the layers; the
    rows of each tensor are rounded up to a multiple of the number of cards. `own_layer` and `own_edges` are those of
    the largest layer and outside the layers without this rounding; `layers` is the number of layers.
    """

    total: int
    share: int
    layer: int
    edges: int
    layers: int
    own_layer: int
    own_edges: int


def sharded_counts(architecture: Architecture, shards: int, expert_shards: int) -> ShardedCounts:
    """Return the parameter counts of a network sharded over `shards` cards, routed experts over `expert_shards`.

    **Formula**: each tensor's first dimension is rounded up to a multiple of the cards. The experts of a layer are one
    tensor, whose first dimension is their number; a scalar is one row.

    **Source**: torch/distributed/fsdp/_fully_shard/_fsdp_param.py `_init_sharded_param` (`torch.chunk` on dimension 0);
    transformers 5.23 `integrations/moe.py` (stacked experts).
    """
    share = layer = own_layer = depth = 0
    for stack in architecture.stacks:
        for group in stack.groups:
            own, whole = _share_and_padded_elements(group.layer.tensors, shards, expert_shards)
            share, layer, depth = share + group.count * own, max(layer, whole), depth + group.count
            own_layer = max(own_layer, group.layer.parameters)
    outside = [tensor for stack in architecture.stacks for tensor in (*stack.before, *stack.after)]
    edge_tensors = (*outside, *architecture.head)
    own, edges = _share_and_padded_elements(edge_tensors, shards, expert_shards)
    own_edges = sum([tensor.parameters for tensor in edge_tensors])
    return ShardedCounts(architecture.parameters, share + own, layer, edges, depth, own_layer, own_edges)


def _share_and_padded_elements(tensors: Iterable[Tensor], shards: int, expert_shards: int) -> tuple[int, int]:
    """Return the elements of one card's shares of `tensors`, and of all cards' shares, both with rows rounded up."""
    own = whole = 0
    for tensor in tensors:
        if tensor.role == "expert":
            share = _share_elements((tensor.copies, tensor.size), expert_shards)
            own, whole = own + share, whole + share * expert_shards
        else:
            share = tensor.copies * _share_elements(tensor.shape, shards)
            own, whole = own + share, whole + share * shards
    return own, whole


def _share_elements(shape: tuple[int, ...], cards: int) -> int:
    """Return the elements of one card's share of a tensor, its rows (first dimension) rounded up to a multiple."""
    if not shape:
        return 1
    size = ceil_div(shape[0], cards)
    for extent in shape[1:]:
        size *= extent
    return size


# Persistent terms do not depend on the batch size; computing and writing their shares takes a tenth of an estimate.
@lru_cache(maxsize=1024)
def sharded_term(whole: AnyTerm, share: int, total: int, cards: int, source: str) -> DeferredTerm:
    """Return one card's share of the term `whole`, the fraction `share` / `total`, rounded up to a byte."""
    own = ceil_div(whole.bytes * share, total)
    low, high = ceil_div(whole.low_bytes * share, total), ceil_div(whole.high_bytes * share, total)
    return DeferredTerm(whole.name, own, low, high, partial(_write_share, whole, own, high, cards, source))


@lru_cache(maxsize=1024)
def partial_term(whole: AnyTerm, part: int, total: int, meaning: str) -> DeferredTerm:
    """Return the fraction `part` / `total` of the term `whole`, rounded up to a byte; `meaning` describes it."""
    own, high = ceil_div(whole.bytes * part, total), ceil_div(whole.high_bytes * part, total)
    return DeferredTerm(whole.name, own, own, high, partial(_write_partial_term, whole, own, high, meaning))


def _write_partial_term(whole: AnyTerm, own: int, high: int, meaning: str) -> Term:
    """Return a fraction of the term `whole`, `own` bytes, with its formula written out."""
    written = whole.write() if isinstance(whole, DeferredTerm) else whole
    return replace(
        written,
        bytes=own,
        low_bytes=own,
        high_bytes=high,
        formula=f"f × ({written.formula})",
        symbols=(*written.symbols, library_symbol("f", round(own / max(written.bytes, 1), 4), meaning)),
        parts=(),
    )


def _write_share(whole: AnyTerm, own: int, high: int, cards: int, source: str) -> Term:
    """Return one card's share of the term `whole`, `own` bytes, with its formula written out."""
    written = whole.write() if isinstance(whole, DeferredTerm) else whole
    ends = _split_bytes(own, [part.bytes for part in written.parts])
    number, meaning = float(cards), "GPUs that share this memory, with each tensor's rows rounded up to a multiple"
    if own > _ROUNDED * written.bytes / cards:
        number, meaning = (
            round(written.bytes / own, 4),
            f"effective number of {cards:,} GPUs, of which fewer share the experts",
        )
    return replace(
        written,
        bytes=own,
        low_bytes=min(own, ceil_div(written.low_bytes * own, max(written.bytes, 1))),
        high_bytes=high,
        formula=f"({written.formula}) / N",
        symbols=(*written.symbols, library_symbol("N", int(number) if number == cards else number, meaning)),
        source=f"{written.source}; {source}",
        parts=tuple(
            TermPart(name=part.name, bytes=count, formula=f"({part.formula}) / N", source=part.source)
            for part, count in zip(written.parts, ends, strict=True)
        ),
    )


def with_more_bytes(item: AnyTerm, added_bytes: int, why: str) -> DeferredTerm:
    """Return `item` with `added_bytes` more, or less if negative, but not below zero; `why` describes the change."""
    size, high = max(item.bytes + added_bytes, 0), max(item.high_bytes + added_bytes, 0)
    low = max(item.low_bytes + added_bytes, 0)
    return DeferredTerm(item.name, size, low, high, partial(_write_resized, item, size, high, why))


def _write_resized(item: AnyTerm, size: int, high: int, why: str) -> Term:
    """Return `item` with `size` bytes, its formula extended by the added or removed bytes."""
    written = item.write() if isinstance(item, DeferredTerm) else item
    more = size - written.bytes
    extra = TermPart(name=why, bytes=more, formula=f"{more:,}", source=written.source)
    parted = more > 0 and (written.parts or not written.bytes)  # otherwise the parts would not sum to the term
    return term(
        written.name,
        size,
        f"{written.formula} {'+' if more > 0 else '−'} M",
        (*written.symbols, library_symbol("M", abs(more), f"bytes: {why}")),
        written.source,
        certainty=written.certainty,
        low_bytes=max(min(written.low_bytes + more, size), 0),
        high_bytes=high,
        parts=(*written.parts, extra) if parted else (),
    )


def _split_bytes(total: int, weights: list[int]) -> list[int]:
    """Return `total` bytes divided in proportion to `weights`; the parts sum to `total` exactly."""
    whole, counts, given, seen = sum(weights), [], 0, 0
    for weight in weights:
        seen += weight
        end = total * seen // whole if whole else 0
        counts.append(end - given)
        given = end
    return counts


class PersistentBuffers(NamedTuple):
    """Memory present throughout a step: buffers `held` by the framework, and `outside` buffers of libraries.

    `framework_bytes` and `library_bytes` are their sizes in bytes, `library_high_bytes` the upper bound of the latter.
    """

    held: tuple[TermPart, ...] = ()
    outside: tuple[TermPart, ...] = ()
    library_high_bytes: int = 0
    framework_bytes: int = 0
    library_bytes: int = 0

    def with_buffers(self, added_buffers: tuple[TermPart, ...]) -> "PersistentBuffers":
        """Return these buffers and `added_buffers` of the framework, summed once for all snapshots."""
        if not added_buffers:
            return self
        framework_bytes = self.framework_bytes + sum([part.bytes for part in added_buffers])
        return PersistentBuffers(
            (*self.held, *added_buffers), self.outside, self.library_high_bytes, framework_bytes, self.library_bytes
        )


Buffer = tuple[str, int]
"""A buffer's name and its size in bytes."""


def communication_term(
    named_sizes: tuple[Buffer, ...], source: str, persistent_buffers: PersistentBuffers, *, assumed: bool = False
) -> DeferredTerm:
    """Return the memory of all communication buffers: `named_sizes` and the persistent buffers.

    Memory of libraries is assumed, between zero and `persistent_buffers.most`; the rest is as certain as its source.
    """
    size = persistent_buffers.framework_bytes + sum([held for _, held in named_sizes])
    total = size + persistent_buffers.library_bytes
    return DeferredTerm(
        "communication",
        total,
        size,
        size + persistent_buffers.library_high_bytes,
        partial(_write_buffers, named_sizes, source, persistent_buffers, size, total, assumed=assumed),
    )


def _write_buffers(
    named_sizes: tuple[Buffer, ...],
    source: str,
    persistent_buffers: PersistentBuffers,
    size: int,
    total: int,
    *,
    assumed: bool,
) -> Term:
    """Return the term of all communication buffers with its formula written out."""
    made = [TermPart(name=name, bytes=held, formula=f"{held:,}", source=source) for name, held in named_sizes if held]
    parts = (*made, *persistent_buffers.held, *persistent_buffers.outside)
    return term(
        "communication",
        total,
        " + ".join(f"B{number}" for number in range(1, len(parts) + 1)) or "0",
        tuple(library_symbol(f"B{number}", part.bytes, f"bytes: {part.name}") for number, part in enumerate(parts, 1)),
        "; ".join(dict.fromkeys(part.source for part in parts)),
        certainty="assumed" if assumed or persistent_buffers.outside else "measured",
        low_bytes=size,
        high_bytes=size + persistent_buffers.library_high_bytes,
        parts=parts,
    )


def relabeled_term(item: AnyTerm, source: str, name: TermName | None = None) -> Term:
    """Return `item` with another `source` and, unless None, another `name`."""
    written = item.write() if isinstance(item, DeferredTerm) else item
    return replace(written, name=name or written.name, source=source)
