"""Memory behavior of training with Megatron-LM: its own layers and loss, and fp32 gradients throughout."""

from functools import lru_cache, partial
from typing import Final

from planner.memory.logits import output_width, predicts_every_token
from planner.memory.parallel.sharding import ShardingStrategy, SharedStep, UnshardedTerms, counts_per_card
from planner.memory.parallel.shares import communication_term, relabeled_term, sharded_term
from planner.memory.phases import AnyTerm, DeferredTerm, PhaseSnapshots
from planner.memory.precision import training_precision
from planner.memory.result import Term, TermPart
from planner.memory.software.megatron.layers import saved_by_megatron
from planner.memory.software.pytorch import TrainingMemory
from planner.memory.terms import deferred_measured_term, library_symbol, measured_term, model_symbol, workload_symbol
from planner.memory.training.checkpointing import CORE_ATTENTION, Checkpoints
from planner.memory.training.full import whole_setup
from planner.memory.training.fused import FusedKernels
from planner.memory.training.losses import LossMemory
from planner.memory.training.setup import AutocastCopies, TrainingSetup
from planner.models.architecture import Architecture
from planner.units import MIB
from planner.workload.parallel import Parallel
from planner.workload.training import Training

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
            model_symbol("V", width, "logits per token: a card's share of the vocabulary"),
            library_symbol("k", per_logit, "bytes per logit in this phase: the logits, and one fp32 copy"),
        ),
        _SOURCE,
    )
