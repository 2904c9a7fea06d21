"""What the forward pass keeps for the backward pass: amounts that add up, and the term that they are written as."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from planner.memory.result import Part, Term
from planner.memory.terms import checked, model
from planner.memory.terms import workload as chosen
from planner.workload.training import Training

_SOURCE: Final = "saved tensors of PyTorch 2.13 operators and transformers 5.23 modules, operation by operation"


class SavedBytes(NamedTuple):
    """Bytes that are kept for the backward pass, by kind: they add up, and a number of equal layers multiplies them."""

    norms: int = 0
    attention: int = 0
    feed_forward: int = 0
    scores: int = 0
    dropout: int = 0
    adapters: int = 0
    checkpoints: int = 0

    def __add__(self, other: "SavedBytes") -> "SavedBytes":  # type: ignore[override]  # a value, no row of a table
        """Return both together."""
        return SavedBytes(
            self.norms + other.norms,
            self.attention + other.attention,
            self.feed_forward + other.feed_forward,
            self.scores + other.scores,
            self.dropout + other.dropout,
            self.adapters + other.adapters,
            self.checkpoints + other.checkpoints,
        )

    def __mul__(self, count: int) -> "SavedBytes":  # type: ignore[override]
        """Return `count` times as much."""
        return SavedBytes(
            self.norms * count,
            self.attention * count,
            self.feed_forward * count,
            self.scores * count,
            self.dropout * count,
            self.adapters * count,
            self.checkpoints * count,
        )

    @property
    def total(self) -> int:
        """Return the bytes of all kinds."""
        blocks = self.norms + self.attention + self.feed_forward + self.scores
        return blocks + self.dropout + self.adapters + self.checkpoints


class SavedPerToken(NamedTuple):
    """Bytes kept by one layer, or by a part of it: per token, and `scores` per token and per token of context.

    `source` and `source_scores` are those of cross-attention, per token of the encoder and, for each of them, per
    token; `bias` are bytes per pair of positions, whatever the number of sequences; `adapters` what adapters keep.
    """

    norms: int = 0
    attention: int = 0
    feed_forward: int = 0
    dropout: int = 0
    scores: int = 0
    source: int = 0
    source_scores: int = 0
    bias: int = 0
    adapters: int = 0

    def __add__(self, other: "SavedPerToken") -> "SavedPerToken":  # type: ignore[override]
        """Return what both parts of a layer keep."""
        return SavedPerToken(
            self.norms + other.norms,
            self.attention + other.attention,
            self.feed_forward + other.feed_forward,
            self.dropout + other.dropout,
            self.scores + other.scores,
            self.source + other.source,
            self.source_scores + other.source_scores,
            self.bias + other.bias,
            self.adapters + other.adapters,
        )

    def of(self, sequences: int, tokens: int, source: int = 0) -> SavedBytes:
        """Return the bytes for `sequences` of `tokens` each, after an encoder's `source` tokens each."""
        every = sequences * tokens
        return SavedBytes(
            norms=every * self.norms,
            attention=every * self.attention + sequences * source * self.source,
            feed_forward=every * self.feed_forward,
            scores=every * (self.scores * tokens + self.source_scores * source) + self.bias * tokens * tokens,
            dropout=every * self.dropout,
            adapters=every * self.adapters,
        )

    def total(self, sequences: int, tokens: int, source: int = 0) -> int:
        """Return the bytes of all kinds."""
        return self.of(sequences, tokens, source).total


class BackwardPoint(NamedTuple):
    """A point of the backward pass through a layer: bytes beside all that the layer kept, and what is done already.

    `gradients` are the layer's parameters whose gradients are there, `uncast` those whose autocast copies are freed.
    """

    bytes: int
    gradients: int = 0
    uncast: int = 0


class SavedByStack(NamedTuple):
    """What a forward pass keeps of one stack, and the most of one of its layers; its points of the backward pass.

    `first` is what stands before the layers and their input, `behind` what stands behind them. `recomputed` is what a
    layer holds more when it has been computed again, `layers` how many layers keep what per token.
    """

    kept: SavedBytes
    first: int
    behind: int
    largest: int
    points: tuple[BackwardPoint, ...]
    layers: tuple[tuple[int, SavedPerToken], ...]
    depth: int
    recomputed: int = 0


class SavedActivations(NamedTuple):
    """What the forward pass keeps of a network, by kind, and the largest layer's share.

    `point` is the point of the backward pass through a layer that holds most beside it. `first` is what stands before
    the layers and their input, `behind` what stands behind them and is freed before the last of them. `layers` says
    how many layers keep what per token, for the formulas; `depth` is their number, checkpointed or not. `recomputed`
    is what the largest layer holds more when it has been computed again. With an encoder before the decoder, `entry` is
    what the encoder's largest layer holds, and `between` all that is alive at the decoder's first layer.
    """

    kept: SavedBytes
    one_layer: int
    point: BackwardPoint
    first: int
    behind: int
    layers: tuple[tuple[int, SavedPerToken], ...]
    depth: int
    recomputed: int = 0
    entry: int = 0
    between: int = 0

    @property
    def total(self) -> int:
        """Return all bytes alive when the forward pass ends."""
        return self.kept.total

    @property
    def in_last_layer(self) -> int:
        """Return what is alive when the backward pass goes through the last layer, computed again if checkpointed."""
        return self.total + max(0, self.point.bytes + self.recomputed - self.behind)

    @property
    def in_first_layer(self) -> int:
        """Return what is alive when the backward pass goes through the first layer, the largest deciding."""
        return self.first + (self.entry or self.one_layer + self.point.bytes)

    @property
    def freed_with_a_layer(self) -> int:
        """Return what goes when the backward pass has gone through one layer, the largest: all of it, or its input."""
        return self.kept.checkpoints // max(self.depth, 1) if self.kept.checkpoints else self.one_layer


def saved_by_stacks(stacks: Sequence[SavedByStack], gradient_bytes: int) -> SavedActivations:
    """Return what `stacks` keep together, the largest of their layers deciding; gradients have `gradient_bytes` each.

    What stands behind the last stack is freed first.
    """
    points = [point for stack in stacks for point in stack.points] or [BackwardPoint(0)]
    return SavedActivations(
        kept=sum_of([stack.kept for stack in stacks]),
        one_layer=max([stack.largest for stack in stacks]),
        point=max(points, key=lambda point: point.bytes + point.gradients * gradient_bytes),
        first=next((stack.first for stack in stacks if stack.first), 0),
        behind=stacks[-1].behind,
        layers=tuple([layer for stack in stacks for layer in stack.layers]),
        depth=sum([stack.depth for stack in stacks]),
        recomputed=max([stack.recomputed for stack in stacks]),
    )


def sum_of(saved: Sequence[SavedBytes]) -> SavedBytes:
    """Return all of `saved` together, of which there is at least one."""
    total = saved[0]
    for more in saved[1:]:
        total += more
    return total


def activations_term(saved: SavedActivations, alive: int, workload: Training, selective_source: str) -> Term:
    """Return the activations of `workload` at a moment when `alive` bytes of them are there.

    `selective_source` says where selective checkpoints are described, as the program has them.

    **Formula**: Σ over what is kept, or one layer where the backward pass has freed the rest.
    """
    tokens = workload.micro_batch * (workload.sequence_length or 0)
    selective = workload.activation_checkpointing == "selective"
    shares = _shares(saved, alive, tokens, selective=selective)
    return checked(
        "activations",
        alive,
        " + ".join([symbol for symbol, _ in shares]),
        (
            *[model(symbol, part.bytes, f"bytes of {part.name}") for symbol, part in shares],
            chosen("T", tokens, f"tokens: {workload.micro_batch:,} × {workload.sequence_length:,}"),
        ),
        f"{_SOURCE}; {selective_source}" if selective else _SOURCE,
        tuple([part for _, part in shares]),
    )


_KINDS: Final = (
    ("N", "norms", "norms and their inputs"),
    ("Q", "attention", "queries, keys, values and attention output"),
    ("F", "feed_forward", "feed-forward blocks"),
    ("S", "scores", "attention scores and masks"),
    ("D", "dropout", "dropout masks"),
    ("A", "adapters", "what adapters read"),
    ("C", "checkpoints", "checkpoints, each layer's input"),
)
"""The kinds of what is kept, each with its symbol and in words."""
_PER_LAYER: Final = ("norms", "attention", "feed_forward", "dropout", "adapters")
"""The kinds of which each layer keeps a number of bytes per token."""


def _shares(saved: SavedActivations, alive: int, tokens: int, *, selective: bool) -> list[tuple[str, Part]]:
    """Return what the `alive` bytes are made of, each with its symbol."""
    if alive < saved.total:
        return [("O", _part("one layer and its gradients", alive, f"{alive:,}"))]
    found = []
    for symbol, kind, name in _KINDS:
        if count := getattr(saved.kept, kind):
            each = attrgetter(kind) if kind in _PER_LAYER else None
            layers = [(number, each(layer)) for number, layer in saved.layers] if each else []
            title = f"{name} and what its products put out" if selective and kind == "checkpoints" else name
            found.append((symbol, _part(title, count, _per_token(count, tokens, layers))))
    extra = alive - saved.total
    if extra:
        name = "one layer computed again, with its gradients" if saved.recomputed else "gradients of the last layer"
        found.append(("G", _part(name, extra, _per_token(extra, tokens, []))))
    return found


def _part(name: str, count_bytes: int, formula: str) -> Part:
    return Part(name=name, bytes=count_bytes, formula=formula, source=_SOURCE)


def _per_token(kept: int, tokens: int, layers: list[tuple[int, int]]) -> str:
    """Return `kept` as bytes per token: layers × what each keeps, and what stands outside the layers."""
    if tokens == 0 or kept % tokens:
        return f"{kept:,}"
    numbers: dict[int, int] = {}
    for count, each in layers:
        numbers[each] = numbers.get(each, 0) + count
    rest = kept // tokens - sum(count * each for each, count in numbers.items())
    if rest < 0:
        return f"{kept:,}"
    shown = [f"{count} × {each:,}" for each, count in numbers.items() if each]
    shown += [f"{rest:,}"] if rest else []
    return f"T × {shown[0]}" if len(shown) == 1 else f"T × ({' + '.join(shown)})"
