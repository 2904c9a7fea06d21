"""What a forward pass keeps, over the whole network, where some of it is frozen, adapted, quantised or fused."""

from functools import lru_cache
from typing import NamedTuple

from planner.memory.kernels import MASK, is_masked, mask_bytes
from planner.memory.training.activations import Ledger, stack_positions
from planner.memory.training.backward import Stage, highest
from planner.memory.training.saved import Saved, first_input, is_norm, shared_scores, trained_stacks
from planner.memory.training.selective import saved_outputs, without_core_attention
from planner.memory.tuned.backward import tuned_stages
from planner.memory.tuned.layer import tuned_ledger
from planner.memory.tuned.recipe import Formats, Recipe, norm_kept, read_bytes
from planner.memory.tuned.sites import Uses
from planner.memory.tuned.tuning import TunedLayers, Tuning
from planner.models.architecture import Architecture, Stack
from planner.units import ceil_div
from planner.workload.choices import Checkpointing


class Checkpoints(NamedTuple):
    """Which layers are computed again: none, or runs of `every` layers whose input is kept, unless it is `offloaded`.

    Selective ones keep what matrix products and attention put out, too. With `core_attention` only what is inside
    attention is computed again.
    """

    kind: Checkpointing
    every: int = 1
    offloaded: bool = False
    core_attention: bool = False


@lru_cache(maxsize=1024)
def tuned_saved(
    architecture: Architecture, tuning: Tuning, recipe: Recipe, sequences: int, length: int, checkpoints: Checkpoints
) -> Saved:
    """Return what a forward pass over `sequences` × `length` tokens keeps, `tuning` being trained by `recipe`."""
    found = _Sum()
    for stack, layers in _by_stack(architecture, tuning):
        tokens = stack_positions(stack, length)
        own = recipe._replace(formats=_formats_in(stack, recipe.formats))
        found.add_edges(architecture, stack, tuning, own, sequences, sequences * tokens, checkpoints)
        found.scores += shared_scores(
            stack, sequences, tokens, found.source, own.formats.precision, own.attention, checkpoints.kind != "none"
        )
        for tuned in layers:
            found.add_layers(tuned, own, sequences, tokens, checkpoints)
        found.source = tokens
    return found.saved(recipe, checkpoints)


def _formats_in(stack: Stack, formats: Formats) -> Formats:
    """Return the formats within `stack`: a fused norm of the embedding puts the stream in fp32 under autocast."""
    normed = any(is_norm(tensor, stack.hidden) for tensor in stack.before)
    native = stack.groups[0].layer.norm.native
    return formats._replace(stream=4) if formats.autocast and normed and native else formats


def _by_stack(architecture: Architecture, tuning: Tuning) -> list[tuple[Stack, list[TunedLayers]]]:
    """Return the stacks that a step runs through, each with its layers that a derivative goes through."""
    return [
        (stack, [tuned for tuned in tuning.layers if tuned.stack == stack]) for stack in trained_stacks(architecture)
    ]


class _Sum:
    """Adds up what is kept, kind by kind."""

    def __init__(self) -> None:
        self.norms = self.attention = self.feed_forward = self.dropout = self.scores = self.adapters = 0
        self.checkpoints = self.largest = self.first = self.behind = self.source = self.depth = self.recomputed = 0
        self.layers: list[tuple[int, Ledger]] = []
        self.stages: list[Stage] = []

    def add_edges(
        self,
        architecture: Architecture,
        stack: Stack,
        tuning: Tuning,
        recipe: Recipe,
        sequences: int,
        every: int,
        checkpoints: Checkpoints,
    ) -> None:
        """Add what stands before the layers and behind them."""
        shards = stack.groups[0].layer.stream_shards
        starts = tuning.starts_before
        norm = _edge_norm(stack, recipe, trained=tuning.whole)
        before = norm * sum(1 for tensor in stack.before if is_norm(tensor, stack.hidden)) if starts else 0
        self.behind = every * _behind(architecture, stack, tuning, recipe) // shards
        self.norms += every * before // shards + self.behind
        self.dropout += every * MASK * stack.hidden // shards if stack.embedding_dropout and starts else 0
        if not self.first:
            kept = before
            if checkpoints.kind != "none":
                kept += first_input(stack, recipe.formats.precision)
                self.checkpoints += 0 if starts else every * _kept_input(stack) * stack.hidden * recipe.formats.stream
            self.first = every * kept // shards
            if checkpoints.kind != "none":
                formats, tokens = recipe.formats.precision, every // sequences
                self.first += mask_bytes(stack, sequences, tokens, formats, recipe.attention, groups=1)

    def add_layers(
        self, tuned: TunedLayers, recipe: Recipe, sequences: int, tokens: int, checkpoints: Checkpoints
    ) -> None:
        """Add layers that are trained alike."""
        layer, hidden, every = tuned.layer, tuned.stack.hidden, sequences * tokens
        masked = is_masked(layer, tokens, recipe.attention)
        ledger = tuned_ledger(layer, hidden, recipe, tuned.tuning, masked)
        self.depth += tuned.number
        whole = ledger.total(sequences, tokens, self.source)
        self.largest = max(self.largest, whole)
        self.stages += tuned_stages(tuned, recipe, ledger, sequences, tokens, checkpointed=checkpoints.kind != "none")
        if checkpoints.kind != "none":
            stream = 0 if checkpoints.offloaded else recipe.formats.stream * hidden // layer.stream_shards
            outputs = 0
            if checkpoints.kind == "selective":
                outputs = saved_outputs(layer, hidden, recipe, tuned.tuning, masked).total(sequences, tokens)
            self.checkpoints += ceil_div(tuned.number, checkpoints.every) * every * stream + tuned.number * outputs
            self.recomputed = max(self.recomputed, whole * checkpoints.every - outputs)
            return
        if checkpoints.core_attention:
            ledger = without_core_attention(ledger, layer, recipe, masked)
            self.recomputed = max(self.recomputed, whole - ledger.total(sequences, tokens, self.source))
        self.layers.append((tuned.number, ledger))
        self.norms += tuned.number * every * ledger.norms
        self.attention += tuned.number * ledger.attention_bytes(sequences, tokens, self.source)
        self.feed_forward += tuned.number * every * ledger.feed_forward
        self.dropout += tuned.number * every * ledger.dropout
        self.adapters += tuned.number * every * ledger.adapters
        self.scores += tuned.number * ledger.score_bytes(sequences, tokens, self.source)

    def saved(self, recipe: Recipe, checkpoints: Checkpoints) -> Saved:
        """Return the sums."""
        return Saved(
            norms=self.norms,
            attention=self.attention,
            feed_forward=self.feed_forward,
            dropout=self.dropout,
            scores=self.scores,
            checkpoints=self.checkpoints,
            one_layer=self.largest * min(checkpoints.every, max(self.depth, 1)),
            stage=highest(self.stages or [Stage(0, 0, 0)], recipe.formats.parameter),
            first=self.first,
            behind=self.behind,
            layers=tuple(self.layers),
            depth=self.depth,
            adapters=self.adapters,
            recomputed=min(self.recomputed, self.largest * max(self.depth, 1)),
        )


def _kept_input(stack: Stack) -> int:
    """Return how often the embedding of frozen networks is kept beside the checkpoints.

    With checkpoints transformers lets it need a gradient. It and its gradient live on with the graph of the last loss,
    until the next one takes its name; where more is added to it, it is no checkpoint itself.

    **Source**: transformers `PreTrainedModel.enable_input_require_grads`.
    """
    return 2 if len(stack.before) < 2 else 3


def _edge_norm(stack: Stack, recipe: Recipe, *, trained: bool) -> int:
    return norm_kept(stack.groups[0].layer.norm, stack.hidden, recipe.formats.stream, recipe, trained=trained)


def _behind(architecture: Architecture, stack: Stack, tuning: Tuning, recipe: Recipe) -> int:
    """Return what is kept per token behind the last layer: norms, adapted or trained projections, the head's input."""
    formats = recipe.formats
    head = Uses(trained=1) if tuning.head == "trained" else Uses(frozen=1)
    statuses = dict(tuning.behind)
    kept, size = 0, formats.projected
    projected, reached = False, bool(tuning.layers) or tuning.starts_before
    for tensor in stack.after:
        if is_norm(tensor, stack.hidden):
            trained = statuses.get(tensor.name) == "trained"
            kept += _edge_norm(stack, recipe, trained=trained) if trained or reached else 0
            size, projected = formats.normed(stack.groups[0].layer.norm), False
        elif tensor.role == "linear" and architecture.labels is None:
            status = statuses.get(tensor.name, "frozen")
            used = Uses(int(status == "trained"), int(status == "adapted"), int(status == "frozen"))
            kept += tensor.shape[1] * read_bytes(recipe, used, size).total + formats.projected * tensor.shape[0]
            size, projected = formats.projected, True
    if projected or architecture.labels is not None:
        return kept
    read = read_bytes(recipe._replace(adapters=None), head, size)
    is_encoder = stack is not architecture.main
    return kept + stack.hidden * (formats.stream if is_encoder and tuning.whole else read.total)
