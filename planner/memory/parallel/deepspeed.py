"""Memory of a card under DeepSpeed's ZeRO, stage by stage, with DeepSpeed's default buffer sizes."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.parallel.sharding import ShardingStrategy, SharedStep, UnshardedTerms, counts_per_card
from planner.memory.parallel.shares import (
    OFFLOADED,
    Buffer,
    ShardedCounts,
    communication_term,
    partial_term,
    sharded_term,
)
from planner.memory.phases import AnyTerm, LastingTerms, PhaseSnapshots, Snapshot, lasting_terms
from planner.memory.result import PhaseName
from planner.memory.training.step import LOADED, gradients_term
from planner.memory.weights import placed_tensors
from planner.models.architecture import Architecture
from planner.workload.formats import product_format
from planner.workload.parallel import Parallel

SOURCE: Final = "DeepSpeed 0.19 runtime/zero: stage_1_and_2.py, stage3.py, config.py"
_IN_FP32: Final = "times; fp32 accumulators of bf16 gradients: runtime/bf16_optimizer.py `fp32_groups_gradients_flat`"
REDUCE_BUCKET: Final = 500_000_000
"""Size in elements of the bucket that collects gradients in the backward pass (`reduce_bucket_size`)."""
PREFETCH: Final = 50_000_000
"""Maximum number of parameters that stage 3 gathers ahead of use (`stage3_prefetch_bucket_size`)."""
MAX_LIVE: Final = 1_000_000_000
"""Elements that may be gathered at once, and the distance within which a reused parameter stays gathered
(`stage3_max_live_parameters`, `stage3_max_reuse_distance`)."""
PERSISTENT: Final = 100_000
"""Threshold in elements below which stage 3 does not shard a tensor (`stage3_param_persistence_threshold`)."""
SUB_GROUP: Final = 1_000_000_000
"""Maximum number of parameters that the optimizer updates at once (`sub_group_size`)."""


class ZeroMemory(NamedTuple):
    """Memory terms and parameter counts of a network before sharding by ZeRO, and the ZeRO `stage`.

    `weights` and `gradients` are those of the 16-bit (or fp32) network, `states` the optimizer's states and `master`
    the fp32 parameters, None where the network itself is in fp32; `size` is the bytes of a parameter as computed,
    `small` the parameters in tensors that are too small to be sharded. `in_bf16` means that parameters in bf16 have
    fp32 copies, for which stage 0 has an optimizer that shares its states between the cards as stage 1 does.
    `accumulates` means that gradients outlive the first backward pass of the step.
    """

    stage: int
    cards: int
    counts: ShardedCounts
    size: int
    small: int
    in_bf16: bool
    weights: AnyTerm
    gradients: AnyTerm
    states: AnyTerm | None
    master: AnyTerm | None
    adapters: AnyTerm | None
    offload: str
    accumulates: bool

    @property
    def shares_states(self) -> bool:
        """Return whether the cards share the optimizer's states and the fp32 parameters."""
        return self.stage > 0 or self.in_bf16

    def card_share(self, whole: AnyTerm | None) -> list[AnyTerm]:
        """Return what one card holds of the term `whole` as a list, empty for None."""
        if whole is None:
            return []
        if not self.shares_states:
            return [whole]
        return [sharded_term(whole, self.counts.share, self.counts.total, self.cards, SOURCE)]

    def host_bytes(self) -> int | None:
        """Return the bytes that each card offloads to host memory or disk, None without offloading.

        **Formula**: states, fp32 parameters and, from stage 2 on, gradients in fp32; a pinned 16-bit copy of the
        parameters in stages 1 and 2, in which they come back; in stage 3 those that are offloaded themselves.
        """
        if self.offload == "none":
            return None
        copied = self.weights if self.stage < 3 or self.offload != "optimizer" else None
        whole = [item for item in (self.master, self.states, self.adapters, copied) if item is not None]
        gradients = 4 * self.counts.share if self.stage > 1 else 0
        return gradients + sum([self.card_share(item)[0].bytes for item in whole])


class ZeroShares(NamedTuple):
    """Memory of one card under ZeRO, whatever the batch: parameters from loading on, and `alive` terms throughout.

    `made` means that gradients are not among the latter, since the backward pass makes them; `buffers` are those of
    communication in each phase.
    """

    zero: ZeroMemory
    loaded: list[AnyTerm]
    alive: LastingTerms
    made: bool
    buffers: dict[PhaseName, tuple[Buffer, ...]]
    host_bytes: int | None

    def gradient_terms(self, parameters: int, gradient_bytes: int) -> list[AnyTerm]:
        """Return what the card holds of gradients that the backward pass made of `parameters`."""
        if not self.made or not parameters:
            return []
        gradients = gradients_term(parameters, gradient_bytes)
        return [gradients] if self.zero.stage < 2 else self.zero.card_share(gradients)


def zero_shares(zero: ZeroMemory) -> ZeroShares:
    """Return what one card holds of `zero` whatever the batch.

    **Formula** with AdamW in 16 bits: stage 0 keeps 2P + 4P of gradients + 12P/N in bf16, and
    2P + 2P + 12P in fp16; stage 1 2P + 2P + 12P/N, stage 2 2P + 14P/N, stage 3 16P/N;
    all hold 4P/N more of gradients in fp32 while the optimizer steps (stage 3: of at most 10⁹ parameters). In addition
    a bucket of 5 · 10⁸ elements, in stages 1 and 2 in the backward pass only. In stage 3 up to 10⁹ elements stay
    gathered, tensors of at most 10⁵ always, and 5 · 10⁷ are gathered ahead.

    **Source**: Rajbhandari et al. 2020, arXiv 1910.02054 §5; DeepSpeed `setup_buckets`, `step`,
    `_setup_for_real_optimizer`, `PartitionedParameterCoordinator`.

    **Assumes** DeepSpeed's own defaults; the Trainer of transformers sets buckets by the hidden size where the file
    says "auto".
    """
    weights = [zero.weights] if zero.stage < 3 else zero.card_share(zero.weights)
    if zero.offload in ("parameters", "nvme"):
        weights = []
    kept = [*weights, *zero.card_share(zero.adapters)]
    if zero.offload == "none":
        kept += [*zero.card_share(zero.master), *zero.card_share(zero.states)]
    gradients = _lasting_gradient_terms(zero)
    phases: tuple[PhaseName, ...] = ("forward", "loss", "backward", "step")
    return ZeroShares(
        zero=zero,
        loaded=weights,
        alive=lasting_terms([*kept, *(gradients or ())]),
        made=gradients is None,
        buffers={phase: _bucket_buffers(zero, phase) for phase in phases},
        host_bytes=zero.host_bytes(),
    )


def _lasting_gradient_terms(zero: ZeroMemory) -> list[AnyTerm] | None:
    """Return the gradients alive throughout, None if they are made in the backward pass.

    Stage 0 in bf16 accumulates them in fp32, in a buffer that exists from the start, and casts each when it is made.
    Stage 3 allocates the buffer of its share at the start. From stage 2 on gradients are offloaded with the optimizer.
    """
    if zero.offload != "none" and zero.stage > 1:
        return []
    if zero.stage == 0 and zero.in_bf16:
        return [partial_term(zero.gradients, 4, zero.size, _IN_FP32)]
    if zero.stage == 3 or zero.accumulates:
        return [zero.gradients] if zero.stage < 2 else zero.card_share(zero.gradients)
    return None


def _bucket_buffers(zero: ZeroMemory, phase: PhaseName) -> tuple[Buffer, ...]:
    """Return name and bytes of ZeRO's buffers in `phase`: gradient bucket, fp32 gradients, gathered parameters."""
    parts: list[Buffer] = []
    if zero.stage == 0 and zero.in_bf16:
        return ()  # the flat gradients are reduced in place
    if phase == "backward" or zero.stage == 3:
        elements = REDUCE_BUCKET if zero.stage else min(REDUCE_BUCKET, zero.counts.total)
        parts.append(("bucket of gradients to reduce", elements * zero.size))
    if phase == "step" and zero.offload == "none" and zero.master is not None:
        share = zero.counts.share if zero.shares_states else zero.counts.total
        own = min(share, SUB_GROUP) if zero.stage == 3 else share
        parts.append(("fp32 gradients for the optimizer", 4 * own))
    if zero.stage == 3:
        parts += _unsharded_parameter_buffers(zero, phase)
    return tuple(parts)


def _unsharded_parameter_buffers(zero: ZeroMemory, phase: PhaseName) -> list[Buffer]:
    """Return name and bytes of stage 3's buffers with unsharded parameters and gradients in `phase`."""
    size = zero.size
    parts = [("parameters in tensors too small to shard", zero.small * size)]
    if phase != "step":
        live = min(max(MAX_LIVE, zero.counts.layer) + PREFETCH, zero.counts.total)
        parts.append(("parameters gathered or prefetched", live * size))
    if phase == "backward":
        layer = zero.counts.layer
        parts.append(("gradients of a layer, not yet in the bucket", layer * size))
    return parts


class DeepSpeedZero(ShardingStrategy):
    """DeepSpeed's ZeRO engine: parameters in 16 bits with fp32 copies, and communication buckets."""

    name = "deepspeed"
    title = "DeepSpeed"
    version = "DeepSpeed 0.19"
    shares_states = True
    keeps_masters = True

    def stage_name(self, zero: int) -> str:
        """Return the name of the ZeRO stage, such as ZeRO-2."""
        return f"ZeRO-{zero}" if zero else "DeepSpeed without ZeRO"

    def stored_memory_summary(self, parallel: Parallel) -> str:
        """Return a text on the parameters, gradients, states and buckets that ZeRO keeps on each card."""
        if not parallel.zero:
            return "parameters and gradients; in bf16 the gradients are in fp32, and the states shared as in stage 1"
        return "16-bit parameters and gradients, fp32 parameters and states, and buckets of 5 · 10⁸ elements"

    def timeline(self, shared: SharedStep) -> PhaseSnapshots:
        """Return the memory snapshots of one card in the training step `shared`."""
        workload, step, setup = shared.workload, shared.step, shared.step.setup
        shares = _zero_shares_of(
            shared.architecture,
            setup.weights,
            setup.all_gradients,
            shared.unsharded_terms(keeps_masters=self.keeps_masters),
            workload.parallel,
            product_format(workload.compute),
            workload.gradient_accumulation > 1,
        )
        sent = {
            phase: communication_term(buffers, SOURCE, shared.persistent_buffers, assumed=workload.parallel.zero == 3)
            for phase, buffers in shares.buffers.items()
        }
        snapshots = [
            Snapshot(
                phase,
                [
                    *shares.gradient_terms(made, setup.gradient_bytes),
                    *before,
                    *after,
                    sent[phase],
                ],
                explanation,
                shares.alive,
            )
            for phase, made, after, explanation, before in step.moments
        ]
        load = Snapshot("load", shares.loaded, LOADED if shares.loaded else OFFLOADED)
        return step.timeline(load, *snapshots, host_bytes=shares.host_bytes)


DEEPSPEED_ZERO: Final = DeepSpeedZero()


@lru_cache(maxsize=256)
def _zero_shares_of(
    architecture: Architecture,
    weights: AnyTerm,
    gradients: AnyTerm,
    unsharded: UnshardedTerms,
    parallel: Parallel,
    compute: str,
    accumulates: bool,
) -> ZeroShares:
    """Return what one card holds of a step that computes in the format `compute`, cached for all batch sizes."""
    master = unsharded.master(weights)
    return zero_shares(
        ZeroMemory(
            stage=parallel.zero,
            cards=parallel.state_shards,
            counts=counts_per_card(architecture, parallel),
            size=ELEMENT_BYTES[compute],
            small=_small_tensor_parameters(architecture),
            in_bf16=master is not None and compute == "bf16",
            weights=weights,
            gradients=gradients,
            states=unsharded.states,
            master=master,
            adapters=unsharded.adapters,
            offload=parallel.offload,
            accumulates=accumulates,
        )
    )


def _small_tensor_parameters(architecture: Architecture) -> int:
    """Return the number of parameters in tensors that are too small for ZeRO-3 to shard."""
    return sum([tensor.size * count for tensor, count in placed_tensors(architecture) if tensor.size < PERSISTENT])
