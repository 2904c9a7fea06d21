"""Memory behavior of training with Megatron-LM: its own layers and loss, and fp32 gradients throughout.

Its layers differ from those of transformers: norms save no fp32 copies, biases, activations and dropout are fused, and
softmax runs in one kernel in 16 bits.

**Source**: Megatron-LM 0.20 (core/transformer, core/fusions, core/models/gpt/gpt_layer_specs.py) with Transformer
Engine 2 (`LayerNormLinear`, `UnfusedDotProductAttention`); for a layer of classic shape 34 · h + 5 · a · s bytes per
token, Korthikanti et al. 2022, arXiv 2205.05198, table 2.
"""

from functools import lru_cache, partial
from typing import Final, NamedTuple

from planner.memory.kernels import MASK, AttentionKind
from planner.memory.logits import output_width, predicts_every_token
from planner.memory.parallel.sharding import ShardingStrategy, SharedStep, UnshardedTerms, counts_per_card
from planner.memory.parallel.shares import communication_term, relabeled_term, sharded_term
from planner.memory.phases import AnyTerm, DeferredTerm, PhaseSnapshots
from planner.memory.precision import Precision, training_precision
from planner.memory.result import Term, TermPart
from planner.memory.software.pytorch import TrainingMemory
from planner.memory.terms import deferred_measured_term, library_symbol, measured_term, model_symbol, workload_symbol
from planner.memory.training.autograd.layer import (
    STATISTIC,
    dropout_bytes,
    saved_by_cross_attention,
    saved_by_mixer,
)
from planner.memory.training.autograd.network import is_norm, trained_stacks
from planner.memory.training.checkpointing import CORE_ATTENTION, Checkpoints
from planner.memory.training.full import whole_setup
from planner.memory.training.losses import FusedKernels, LossMemory
from planner.memory.training.saved import BackwardPoint, SavedActivations, SavedBytes, SavedPerToken, sum_of_saved_bytes
from planner.memory.training.step import AutocastCopies, TrainingSetup
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mlp, Moe, Norm
from planner.units import MIB
from planner.workload.choices import Checkpointing
from planner.workload.parallel import Parallel
from planner.workload.training import Training

_CLASSIC: Final = 2
"""Number of norms per layer that read the residual stream: before attention, before the feed-forward block."""


class _EqualLayers(NamedTuple):
    """Equal layers of a stack: their number, tokens per sequence, and activation bytes saved per layer."""

    number: int
    layer: Layer
    hidden: int
    tokens: int
    source: int
    ledger: SavedPerToken


def saved_by_megatron(
    architecture: Architecture,
    sequences: int,
    length: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointing: Checkpointing,
) -> SavedActivations:
    """Return the activations that Megatron saves in a forward pass over `sequences` × `length` tokens.

    With full checkpointing each layer saves its input only; with selective checkpointing the scores of attention are
    recomputed, one layer at a time.

    **Formula**: Σ over layers of the ledger; after the layers the last norm's input and output.
    """
    layers = _equal_layers(architecture, length, precision, attention)
    edges = _edge_bytes(architecture, sequences, length, precision)
    each = [(one.number, one.ledger.for_batch(sequences, one.tokens, one.source)) for one in layers]
    largest, again = max([saved.total for _, saved in each]), max([saved.scores for _, saved in each])
    kept = [saved * number for number, saved in each]
    if checkpointing == "full":
        kept = [SavedBytes(checkpoints=_layer_input_bytes(one, sequences, precision)) for one in layers]
    elif checkpointing == "selective":
        kept = [saved._replace(scores=0) for saved in kept]
    return SavedActivations(
        kept=sum_of_saved_bytes([edges, *kept]),
        one_layer=largest,
        point=BackwardPoint(max([_gradient_bytes_in_flight(one, sequences, precision) for one in layers])),
        first=edges.dropout,
        behind=edges.norms,
        layers=() if checkpointing == "full" else tuple([(one.number, one.ledger) for one in layers]),
        depth=sum([one.number for one in layers]),
        recomputed={"none": 0, "selective": again, "full": largest}[checkpointing],
    )


def _layer_input_bytes(layers: _EqualLayers, sequences: int, precision: Precision) -> int:
    """Return the bytes of the inputs that full checkpointing saves for these layers."""
    stream = layers.hidden * precision.compute_bytes
    return layers.number * sequences * layers.tokens * stream // layers.layer.stream_shards


def _equal_layers(
    architecture: Architecture, length: int, precision: Precision, attention: AttentionKind
) -> tuple[_EqualLayers, ...]:
    """Return groups of equal layers in all stacks, each with the activation bytes that one of its layers saves."""
    layer_groups, source = [], 0
    for stack in trained_stacks(architecture):
        tokens = stack.token_count(length)
        for group in stack.groups:
            ledger = saved_by_megatron_layer(group.layer, stack.hidden, precision, attention)
            layer_groups.append(_EqualLayers(group.count, group.layer, stack.hidden, tokens, source, ledger))
        source = tokens
    return tuple(layer_groups)


def _edge_bytes(architecture: Architecture, sequences: int, length: int, precision: Precision) -> SavedBytes:
    """Return the bytes saved outside the layers: by the last norm with the head's input, and by embedding dropout."""
    shards = architecture.main.groups[0].layer.stream_shards
    norms = masks = 0
    for stack in trained_stacks(architecture):
        tokens = sequences * stack.token_count(length)
        behind = sum([1 for tensor in stack.after if is_norm(tensor, stack.hidden)])
        each = (
            _norm_saved_bytes(stack.groups[0].layer.norm, stack.hidden, precision)
            + precision.compute_bytes * stack.hidden
        )
        norms += tokens * behind * each // shards
        masks += tokens * MASK * stack.hidden // shards if stack.embedding_dropout else 0
    return SavedBytes(norms=norms, dropout=masks)


@lru_cache(maxsize=4096)
def saved_by_megatron_layer(layer: Layer, hidden: int, precision: Precision, attention: AttentionKind) -> SavedPerToken:
    """Return the activation bytes that one `layer` saves per token, and per query-key pair for scores.

    **Formula** (16 bits): norms 2 · (2h + 2h + 4), 8 with a mean; dropout 2 · h; queries, keys, values and the output
    4q + 4kv; feed-forward 4i, gated 6i; unfused scores 2 · a, and 3 · a more where they are dropped.
    """
    inputs = min(layer.norm_count, _CLASSIC + (1 if layer.cross_attention else 0))
    read = 1 if layer.parallel else inputs
    norms = inputs * _norm_saved_bytes(layer.norm, hidden, precision) + read * precision.compute_bytes * hidden
    own = SavedPerToken(
        norms=norms // layer.stream_shards,
        feed_forward=_feed_forward_saved_bytes(layer.feed_forward, hidden, precision),
        dropout=dropout_bytes(layer, hidden),
    )
    crossed = saved_by_cross_attention(layer.cross_attention, hidden, precision, attention)
    return own + _saved_by_attention(layer, precision, attention) + crossed


def _norm_saved_bytes(norm: Norm, width: int, precision: Precision) -> int:
    """Return the bytes per token that a norm saves: its input and statistics, not its output."""
    return precision.compute_bytes * width + STATISTIC * (2 if norm.kind == "layer" else 1)


def _saved_by_attention(layer: Layer, precision: Precision, kind: AttentionKind) -> SavedPerToken:
    """Return the bytes saved by attention: projected and rotated or normed tensors, and the kernel's statistics.

    Keys and values are views of the projection's output. **Source**: `SelfAttention.get_query_key_value_tensors`:
    queries of grouped heads are copied out of the projection's output (`reshape`), others are views;
    `apply_rotary_pos_emb` and norms of queries and keys make new tensors.
    """
    mixer, size = layer.mixer, precision.compute_bytes
    if mixer is None:
        return SavedPerToken()
    if not isinstance(mixer, Attention):
        return saved_by_mixer(mixer, precision, kind, layer, masked=False)
    remade = mixer.rotary or mixer.qk_norm != "none"
    copied = mixer.q_dim if remade or mixer.kv_heads != mixer.heads else 0
    copied += mixer.kv_dim if remade else 0
    kept = size * (2 * mixer.q_dim + 2 * mixer.kv_dim + copied)
    if mixer.qk_norm != "none":
        kept += STATISTIC * (mixer.heads + mixer.kv_heads)
    if kind != "eager":
        return SavedPerToken(attention=kept + STATISTIC * mixer.heads)
    return SavedPerToken(attention=kept, scores=mixer.heads * (size + (MASK + size if mixer.dropout else 0)))


def _feed_forward_saved_bytes(block: Mlp | Moe | None, hidden: int, precision: Precision) -> int:
    """Return the bytes per token saved by a feed-forward block: outputs of the first projection, last inputs.

    **Source**: core/fusions/fused_bias_gelu.py, fused_bias_swiglu.py; core/transformer/moe: `TEGroupedMLP` weights the
    activations, so that experts' outputs are not saved; `TopKRouter` computes in fp32.
    """
    size = precision.compute_bytes
    if block is None:
        return 0
    if isinstance(block, Mlp):
        return size * block.intermediate * (3 if block.gated else 2)
    routed = block.visits * size * (hidden + 3 * block.intermediate)
    return routed + 3 * size * block.shared_intermediate + 2 * STATISTIC * block.experts


def _gradient_bytes_in_flight(layers: _EqualLayers, sequences: int, precision: Precision) -> int:
    """Return the gradient bytes alive inside one layer's backward pass: feed-forward, or unfused scores.

    **Formula**: w · n · i + w · h; the gradients of the dropped scores and of the softmax, less the dropped scores and
    the feed-forward block, which are freed by then.
    """
    layer, size, tokens = layers.layer, precision.compute_bytes, sequences * layers.tokens
    block = layer.feed_forward
    wide = 0 if block is None else block.intermediate * (2 if block.gated else 1)
    wide *= block.visits if isinstance(block, Moe) else 1
    forward = tokens * size * (wide + layers.hidden)
    mixer = layer.mixer
    if not layers.ledger.scores or not isinstance(mixer, Attention | LatentAttention):
        return forward
    dropped = isinstance(mixer, Attention) and mixer.dropout
    scores = tokens * layers.tokens * mixer.heads * size * (1 if dropped else 2)
    return max(forward, scores - tokens * layers.ledger.feed_forward)


SOURCE: Final = "Megatron-LM docs/user-guide/features/dist_optimizer.md; core/distributed/param_and_grad_buffer.py"


class MegatronOptimizer(ShardingStrategy):
    """Megatron-LM's optimizer, with states replicated, or sharded over replicas (distributed optimizer)."""

    name = "megatron"
    title = "Megatron-LM"
    version = "Megatron-LM 0.20"
    shares_states = True
    keeps_masters = True

    def stage_name(self, _zero: int) -> str:
        """Return the name of the mode in which replicas share the optimizer states."""
        return "distributed optimizer"

    def stored_memory_summary(self, _parallel: Parallel) -> str:
        """Return a text on the parameters, gradients and states that each card stores."""
        return "16-bit parameters, fp32 gradients from the first pass on, fp32 parameters and optimizer states"

    def timeline(self, shared: SharedStep) -> PhaseSnapshots:
        """Return the memory snapshots of one card in a step with fp32 gradients, parameters and states.

        **Formula** with Adam: 2P of parameters, 4P of gradients in one buffer that stays, 12P of state, with the
        distributed optimizer 12P/N: 18 and 6 + 12/N bytes per parameter.

        **Source**: Megatron-LM dist_optimizer.md.
        """
        setup = shared.step.setup
        unsharded = shared.unsharded_terms(keeps_masters=self.keeps_masters)
        kept = _optimizer_shares(shared.architecture, setup.weights, unsharded, shared.workload.parallel)
        communication = communication_term((), SOURCE, shared.persistent_buffers)
        return shared.step.unsharded_timeline(setup.parameters, [*kept, communication], has_gradients=False)


@lru_cache(maxsize=256)
def _optimizer_shares(
    architecture: Architecture, weights: Term, unsharded: UnshardedTerms, parallel: Parallel
) -> tuple[AnyTerm, ...]:
    """Return a card's gradients, fp32 copies of the `weights` and optimizer states, cached for all batch sizes."""
    states = [item for item in (unsharded.master(weights), unsharded.states) if item is not None]
    if parallel.zero and parallel.state_shards > 1:
        counts = counts_per_card(architecture, parallel)
        states = [sharded_term(item, counts.share, counts.total, parallel.state_shards, SOURCE) for item in states]
    return (relabeled_term(unsharded.gradients, SOURCE), *states)


OPTIMIZER: Final = MegatronOptimizer()


_FP32: Final = 4
_SOURCE: Final = (
    "Megatron-LM 0.20 core/tensor_parallel/cross_entropy.py: one fp32 copy of the logits is turned in place into the "
    "softmax and the gradient"
)
_LOSS: Final = "the derivative of the loss, computed in place in fp32, is cast to the format of the logits"
_NOTE: Final = "Modeled on Megatron-LM 0.20 with Transformer Engine 2; eager attention is its unfused attention."
_VOCABULARY: Final = 128
"""Default of Megatron-LM's `--make-vocab-size-divisible-by`, per card of a tensor-parallel group."""
_WORKSPACE: Final = TermPart(
    name="workspace of Transformer Engine",
    bytes=32 * MIB,
    formula=f"{32 * MIB:,}",
    source="Transformer Engine get_cublas_workspace_size_bytes: 32 MiB on Hopper, 4 MiB on earlier architectures",
)


class Megatron(TrainingMemory):
    """Training with Megatron-LM and Transformer Engine."""

    fused = FusedKernels(norms=True, gates=True)
    selective_source = CORE_ATTENTION

    def setup(self, architecture: Architecture, workload: Training) -> TrainingSetup:
        """Return the memory inputs of a training step: full fine-tuning in Megatron's layers, else PyTorch's.

        **Assumes** that gradients of weights are accumulated in fp32 by the hooks of its own DistributedDataParallel,
        so that none in 16 bits outlive a layer.
        """
        if workload.adapts or workload.trainable:
            return super().setup(architecture, workload)
        precision = training_precision(workload)
        saved = saved_by_megatron(
            architecture,
            workload.micro_batch,
            workload.sequence_length or 0,
            precision,
            workload.attention,
            workload.activation_checkpointing,
        )
        if workload.loss == "full-logits":
            losses = _loss_memory(architecture, workload, precision.compute_bytes)
        else:
            losses = self.loss_memory(architecture, workload, precision)
        return whole_setup(architecture, workload, precision, saved, losses, AutocastCopies((), (), (), ()), (_NOTE,))

    def checkpoints(self, workload: Training) -> Checkpoints:
        """Return the layers that are recomputed; selective checkpointing recomputes only the core of attention."""
        if workload.activation_checkpointing == "selective":
            return Checkpoints("none", core_attention=True)
        return super().checkpoints(workload)

    def sharding_strategy(self, workload: Training) -> ShardingStrategy:
        """Return Megatron's optimizer, which keeps fp32 copies and states even on one card."""
        return OPTIMIZER

    def vocabulary_multiple(self, tensor: int) -> int:
        """Return the multiple to which each card's rows of the vocabulary are rounded up."""
        return _VOCABULARY

    def library_buffers(self) -> tuple[TermPart, ...]:
        """Return Transformer Engine's cuBLAS workspace, which each card holds throughout."""
        return (_WORKSPACE,)


TRAINING: Final = Megatron()


def _loss_memory(architecture: Architecture, workload: Training, element_bytes: int) -> LossMemory:
    """Return the memory of the logits at the loss: an fp32 copy that becomes the gradient, then its 16-bit cast."""
    tokens = workload.sequence_length or 0 if predicts_every_token(architecture) else 1
    outputs, width = workload.micro_batch * tokens, output_width(architecture)

    def deferred_logits(per_logit: int) -> DeferredTerm:
        """Return the logits term at `per_logit` bytes per logit, whose formula is written on demand."""
        write = partial(_written_logits_term, outputs, width, per_logit)
        return deferred_measured_term("logits", outputs * width * per_logit, write)

    both = deferred_logits(element_bytes + _FP32)
    return LossMemory(both, both, deferred_logits(element_bytes), deferred_logits(0), _LOSS)


def _written_logits_term(outputs: int, width: int, per_logit: int) -> Term:
    """Return the memory of the logits at `per_logit` bytes per logit, with its formula written out."""
    return measured_term(
        "logits",
        outputs * width * per_logit,
        "T × V × k",
        (
            workload_symbol("T", outputs, "tokens for which logits are computed"),
            model_symbol("V", width, "logits per token: a GPU's share of the vocabulary"),
            library_symbol("k", per_logit, "bytes per logit in this phase: the logits, and one fp32 copy"),
        ),
        _SOURCE,
    )
