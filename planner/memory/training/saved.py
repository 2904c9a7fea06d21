"""Sizes of the activations saved for the backward pass, and the memory term for them."""

from collections.abc import Iterable, Sequence
from operator import add
from typing import Final, NamedTuple

from planner.memory.result import Term, TermPart
from planner.memory.terms import measured_term, model_symbol, workload_symbol
from planner.workload.training import Training

_SOURCE: Final = "saved tensors of PyTorch 2.13 operators and transformers 5.23 modules, operation by operation"


class SavedBytes(NamedTuple):
    """Bytes saved for the backward pass, by kind: norms, attention, feed-forward, scores, and others."""

    norms: int = 0
    attention: int = 0
    feed_forward: int = 0
    scores: int = 0
    dropout: int = 0
    adapters: int = 0
    checkpoints: int = 0

    def __add__(self, other: "SavedBytes") -> "SavedBytes":  # type: ignore[override]  # adds amounts instead of concatenating
        """Return the sum of both amounts, kind by kind."""
        return SavedBytes(*map(add, self, other))

    def __mul__(self, count: int) -> "SavedBytes":  # type: ignore[override]
        """Return every kind's bytes multiplied by `count`."""
        return SavedBytes(*[own * count for own in self])

    @property
    def total(self) -> int:
        """Return the saved bytes of all kinds of activations together."""
        return sum(self)


class TokenBatch(NamedTuple):
    """Tokens that a stack reads in a step: sequences, tokens of each, and tokens of each in the encoder before it."""

    sequences: int
    tokens: int
    encoder_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Return the tokens of all sequences."""
        return self.sequences * self.tokens

    def within(self, window: int) -> "TokenBatch":
        """Return the batch with its sequences cut into windows of at most `window` tokens."""
        tokens = min(self.tokens, window)
        return self._replace(sequences=self.total_tokens // tokens, tokens=tokens)


class SavedPerToken(NamedTuple):
    """Bytes saved by a layer or part of a layer: per token, and for `scores` per query-key pair.

    `source` and `source_scores` are those of cross-attention, per token of the encoder and, for each of them, per
    token; `bias` are bytes per pair of positions, whatever the number of sequences; `adapters` what adapters save.
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
        """Return the sum of the bytes saved by both parts of a layer, kind by kind."""
        return SavedPerToken(*map(add, self, other))

    def for_batch(self, sequences: int, tokens: int, encoder_tokens: int = 0) -> SavedBytes:
        """Return the bytes saved for `sequences` × `tokens` tokens, plus `encoder_tokens` per sequence."""
        total_tokens = sequences * tokens
        return SavedBytes(
            norms=total_tokens * self.norms,
            attention=total_tokens * self.attention + sequences * encoder_tokens * self.source,
            feed_forward=total_tokens * self.feed_forward,
            scores=total_tokens * (self.scores * tokens + self.source_scores * encoder_tokens)
            + self.bias * tokens * tokens,
            dropout=total_tokens * self.dropout,
            adapters=total_tokens * self.adapters,
        )

    def total(self, sequences: int, tokens: int, encoder_tokens: int = 0) -> int:
        """Return the bytes of all kinds saved for `sequences` sequences of `tokens` tokens."""
        return self.for_batch(sequences, tokens, encoder_tokens).total


class BackwardPoint(NamedTuple):
    """A moment in a layer's backward pass: bytes in addition to the layer's saved activations, and gradients so far.

    The bytes are those of all tokens, or of one. `gradients` is the number of the layer's parameters that have
    gradients, `uncast` that of freed autocast copies.
    """

    bytes: int
    gradients: int = 0
    uncast: int = 0

    def for_tokens(self, total_tokens: int) -> "BackwardPoint":
        """Return this moment with its bytes, which are those of one token, for `total_tokens` tokens."""
        return BackwardPoint(total_tokens * self.bytes, self.gradients, self.uncast)


def highest_point(points: Iterable[BackwardPoint], gradient_bytes: int) -> BackwardPoint:
    """Return the moment of `points` with the most memory, at `gradient_bytes` per gradient; an empty one for none."""
    return max(points, key=lambda point: point.bytes + point.gradients * gradient_bytes, default=BackwardPoint(0))


class SavedActivations(NamedTuple):
    """Activations saved by a network or by one of its stacks, by kind, with the bytes of the largest layer.

    `point` is the peak of the backward pass through a layer. `first` is saved before
    the layers and with their input, `behind` after them and is freed before the last of them. `layers` lists
    how many layers save what per token, for the formulas; `depth` is their number, checkpointed or not. `recomputed`
    is how much more the largest layer holds once recomputed. With an encoder before the decoder, `entry` is
    the bytes of the encoder's largest layer, and `between` all bytes alive at the decoder's first layer.
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
        """Return the bytes of activations alive when the forward pass ends."""
        return sum(self.kept)

    @property
    def in_last_layer(self) -> int:
        """Return the activation bytes alive while the backward pass runs the last layer."""
        return self.total + max(0, self.point.bytes + self.recomputed - self.behind)

    @property
    def in_first_layer(self) -> int:
        """Return the activation bytes alive while the backward pass runs the first layer, taken as the largest."""
        return self.first + (self.entry or self.one_layer + self.point.bytes)

    @property
    def freed_with_a_layer(self) -> int:
        """Return the activation bytes freed once the backward pass has finished one layer."""
        return self.kept.checkpoints // max(self.depth, 1) if self.kept.checkpoints else self.one_layer


def saved_by_stacks(stacks: Sequence[SavedActivations], gradient_bytes: int) -> SavedActivations:
    """Return the activations of all `stacks` together; a gradient has `gradient_bytes` per parameter.

    The largest layer of all decides; what is saved after the last stack is freed first.
    """
    if len(stacks) == 1:
        return stacks[0]
    return SavedActivations(
        kept=sum_of_saved_bytes([stack.kept for stack in stacks]),
        one_layer=max([stack.one_layer for stack in stacks]),
        point=highest_point([stack.point for stack in stacks], gradient_bytes),
        first=next((stack.first for stack in stacks if stack.first), 0),
        behind=stacks[-1].behind,
        layers=tuple([layer for stack in stacks for layer in stack.layers]),
        depth=sum([stack.depth for stack in stacks]),
        recomputed=max([stack.recomputed for stack in stacks]),
    )


def sum_of_saved_bytes(saved: Sequence[SavedBytes]) -> SavedBytes:
    """Return the sum of all amounts in `saved`, which is not empty."""
    total = saved[0]
    for more in saved[1:]:
        total += more
    return total


def activations_term(saved: SavedActivations, alive_bytes: int, workload: Training, selective_source: str) -> Term:
    """Return the memory of `alive_bytes` of saved activations, split into kinds.

    `selective_source` documents the program's selective checkpointing.

    **Formula**: Σ over what is saved, or one layer once the backward pass has freed the rest.
    """
    assert workload.sequence_length is not None  # a workload with its defaults states it
    tokens = workload.micro_batch * workload.sequence_length
    selective = workload.activation_checkpointing == "selective"
    shares = _activation_parts(saved, alive_bytes, tokens, selective=selective)
    return measured_term(
        "activations",
        alive_bytes,
        " + ".join([symbol for symbol, _ in shares]),
        (
            *[model_symbol(symbol, part.bytes, f"bytes of {part.name}") for symbol, part in shares],
            workload_symbol("T", tokens, f"tokens: {workload.micro_batch:,} × {workload.sequence_length:,}"),
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
    ("A", "adapters", "inputs of adapters"),
    ("C", "checkpoints", "checkpoints (each layer's input)"),
)
"""Kinds of saved activations: symbol in formulas, field of `SavedBytes`, and description."""
_PER_LAYER: Final = ("norms", "attention", "feed_forward", "dropout", "adapters")
"""Kinds of activations that each layer saves in proportion to its tokens."""


def _activation_parts(
    saved: SavedActivations, alive_bytes: int, tokens: int, *, selective: bool
) -> list[tuple[str, TermPart]]:
    """Return the kinds of activations that make up `alive_bytes`, each with its symbol."""
    if alive_bytes < saved.total:
        return [("O", _activation_part("activations and gradients of one layer", alive_bytes, f"{alive_bytes:,}"))]
    parts = []
    for symbol, kind, name in _KINDS:
        if count := getattr(saved.kept, kind):
            layers = [(number, getattr(layer, kind)) for number, layer in saved.layers] if kind in _PER_LAYER else []
            title = f"{name} and outputs of its products" if selective and kind == "checkpoints" else name
            parts.append((symbol, _activation_part(title, count, _per_token_formula(count, tokens, layers))))
    extra = alive_bytes - saved.total
    if extra:
        name = (
            "activations and gradients of one recomputed layer" if saved.recomputed else "gradients of the last layer"
        )
        parts.append(("G", _activation_part(name, extra, _per_token_formula(extra, tokens, []))))
    return parts


def _activation_part(name: str, size_bytes: int, formula: str) -> TermPart:
    """Return one kind of saved activations as a part of the memory term."""
    return TermPart(name=name, bytes=size_bytes, formula=formula, source=_SOURCE)


def _per_token_formula(kept_bytes: int, tokens: int, layers: list[tuple[int, int]]) -> str:
    """Return `kept_bytes` as a formula: tokens × (layers × bytes per layer + bytes outside the layers)."""
    if tokens == 0 or kept_bytes % tokens:
        return f"{kept_bytes:,}"
    numbers: dict[int, int] = {}
    for count, each in layers:
        numbers[each] = numbers.get(each, 0) + count
    rest = kept_bytes // tokens - sum(count * each for each, count in numbers.items())
    if rest < 0:
        return f"{kept_bytes:,}"
    shown = [f"{count} × {each:,}" for each, count in numbers.items() if each]
    shown += [f"{rest:,}"] if rest else []
    return f"T × {shown[0]}" if len(shown) == 1 else f"T × ({' + '.join(shown)})"
