"""One optimizer step: its micro-batches, communication, the optimizer's memory traffic, and input loading."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.parallel.ranks import Rank, ranks
from planner.memory.software import sharding_strategy_of
from planner.memory.training.adapters.trained import tuning_of
from planner.memory.training.optimizer_states import optimizer_term, parameter_count
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture, Moe
from planner.performance.efficiency import MEASURED_EFFICIENCY, TrainingEfficiency
from planner.performance.links import Links, links_of
from planner.performance.setting import TimeSetting
from planner.performance.software import training_pace
from planner.performance.training.communication import LinkTraffic, OverlapTarget, Transfer, step_transfers
from planner.performance.training.compute import (
    GpuRates,
    MicroBatch,
    MicroBatchTime,
    gpu_rates,
    micro_batch,
    micro_batch_time,
    sequences_work,
)
from planner.workload.defaults import default_weight_format
from planner.workload.formats import product_format
from planner.workload.training import Training

HOST_BYTES_PER_S: Final = 100e9
"""Bandwidth of an optimizer on the host in bytes per second, for all GPUs in a node: half of the eight DDR4-3200
channels of one socket (205 GB/s; JEDEC JESD79-4), since states are read and written."""
DISK_BYTES_PER_S: Final = 5e9
"""Bandwidth of an optimizer with states on one PCIe 4.0 NVMe disk, in bytes per second; vendors state 7 GB/s for
sequential access."""
_MASTER_BYTES: Final = 4
"""Size of an fp32 master parameter in bytes; FSDP2 updates parameters in their own format instead."""


class OptimizerTraffic(NamedTuple):
    """Memory traffic of an optimizer step on one GPU: trained parameters, and bytes moved on the GPU or offloaded.

    `copied_bytes` cross the link to the host; `offloaded_bytes` are read and written there, at `offload_bytes_per_s`
    for all GPUs of a node.
    """

    parameters: int
    moved_bytes: float
    copied_bytes: float = 0.0
    offloaded_bytes: float = 0.0
    offload_bytes_per_s: float = HOST_BYTES_PER_S


def optimizer_traffic(architecture: Architecture, workload: Training, gathered_bytes: float) -> OptimizerTraffic:
    """Return the memory traffic of an optimizer step; `gathered_bytes` is the size of all parameters in a GPU's share.

    **Formula**: gradients read, parameters and states read and written, each by the replicas that share them.
    If offloaded, gradients are sent to the host and parameters back; offloaded parameters once more for each pass.

    **Source**: Ren et al. 2021, arXiv 2101.06840 §4 (traffic on the link); Rajbhandari et al. 2021,
    arXiv 2104.07857 (parameters and disks).
    """
    parallel = workload.parallel
    trained = tuning_of(architecture, workload).trained
    count, size = parameter_count(trained), trained_parameter_bytes(workload)
    shards = parallel.state_shards if parallel.zero else 1
    updated = max(size, _MASTER_BYTES) if sharding_strategy_of(workload).keeps_masters else size
    states = optimizer_term(trained, workload.optimizer, updated)
    gradient = exchanged_element_bytes(workload)
    moved = (count * (gradient + 2 * updated) + 2 * (states.bytes if states else 0)) / shards
    if parallel.offload == "none":
        return OptimizerTraffic(count, moved)
    copied = count * (gradient + size) / shards
    if parallel.offload != "optimizer":
        copied += 2 * workload.gradient_accumulation * gathered_bytes / shards
    beside = DISK_BYTES_PER_S if parallel.offload == "nvme" else HOST_BYTES_PER_S
    return OptimizerTraffic(count, 0.0, copied, moved, beside)


def trained_parameter_bytes(workload: Training) -> int:
    """Return the bytes of one trained parameter: of an adapter if there is one, else of the network."""
    return ELEMENT_BYTES[_trained_parameter_format(workload)]


def exchanged_element_bytes(workload: Training) -> int:
    """Return the bytes of one parameter or gradient sent between GPUs: 2 if optimizer states are sharded."""
    return ELEMENT_BYTES[training_pace(workload).exchanged_format(workload, _trained_parameter_format(workload))]


def _trained_parameter_format(workload: Training) -> str:
    if workload.lora is not None:
        return workload.lora.adapter_dtype
    kept = workload.weights or default_weight_format(workload)
    return kept if kept in ELEMENT_BYTES else "bf16"


class OverlappedTransfer(NamedTuple):
    """A transfer, and the part of its seconds that overlaps with computation."""

    sent: Transfer
    overlapped_seconds: float

    @property
    def exposed_seconds(self) -> float:
        """Return the seconds in which GPUs wait for this transfer."""
        return self.sent.seconds - self.overlapped_seconds


class TrainingStep(NamedTuple):
    """One optimizer step on one kind of GPU: seconds by kind of work, and counts of tokens, samples and FLOPs.

    `bubble` is the time that a pipeline's slowest stage waits for the others, `loading` that of loading the samples;
    `node_cards` is the number of GPUs that share a host.
    """

    rates: GpuRates
    links: Links
    batch: MicroBatch
    passes: MicroBatchTime
    micro_batches: int
    bubble: float
    transfers: tuple[OverlappedTransfer, ...]
    optimizer_traffic: OptimizerTraffic
    optimizer: float
    offload: float
    loading: float
    node_cards: int
    flops: float
    tokens: float
    samples: float

    @property
    def busy_seconds(self) -> float:
        """Return the seconds of the whole step without waits for input."""
        waiting = sum([one.exposed_seconds for one in self.transfers])
        return self.micro_batches * self.passes.seconds + self.bubble + waiting + self.optimizer + self.offload

    @property
    def seconds(self) -> float:
        """Return the seconds of the whole step, including waits for input."""
        return max(self.busy_seconds, self.loading)


def training_step_on(
    architecture: Architecture,
    workload: Training,
    gpu: Gpu,
    setting: TimeSetting,
    efficiency: TrainingEfficiency = MEASURED_EFFICIENCY,
) -> TrainingStep | str:
    """Return the optimizer step of `workload` on GPUs `gpu`, or a sentence with the reason why it cannot be timed.

    **Formula**: m · (forward + backward) + bubble + exposed transfers + optimizer + offload, and no less than loading
    takes; bubble = (p − 1) ÷ v · (forward + backward).

    **Source**: Narayanan et al. 2021, arXiv 2104.04473 §2.2 (bubble).
    """
    rates = gpu_rates(gpu, workload.compute, setting, efficiency)
    if isinstance(rates, str):
        return rates
    parallel, links, count = workload.parallel, links_of(gpu, setting), workload.gradient_accumulation
    share, batch, passes = _slowest_stage(architecture, workload, rates, setting)
    traffic = step_traffic(share, workload, batch)
    sent = step_transfers(traffic, workload, links, setting)
    done = optimizer_traffic(share, workload, traffic.parameter_bytes)
    samples = float(workload.micro_batch * count * (parallel.data or 1))
    length, node = (
        workload.sequence_length or 1,
        min(links.cards_per_node, (parallel.data or 1) * parallel.model_shards),
    )
    model = sequences_work(architecture, samples, length, 1, setting)
    return TrainingStep(
        rates=rates,
        links=links,
        batch=batch,
        passes=passes,
        micro_batches=count,
        bubble=(parallel.pipeline - 1) / parallel.interleave * passes.seconds,
        transfers=tuple([OverlappedTransfer(one, overlapped_seconds(one, passes, count, efficiency)) for one in sent]),
        optimizer_traffic=done,
        optimizer=done.moved_bytes / rates.memory,
        offload=done.copied_bytes / links.host_bytes_per_s + done.offloaded_bytes * node / done.offload_bytes_per_s,
        loading=samples / setting.input_samples_per_second if setting.input_samples_per_second else 0.0,
        node_cards=node,
        flops=model.flops * (2 + batch.weight_gradient_share),
        tokens=samples * length,
        samples=samples,
    )


def _slowest_stage(
    architecture: Architecture, workload: Training, rates: GpuRates, setting: TimeSetting
) -> tuple[Architecture, MicroBatch, MicroBatchTime]:
    """Return the slowest pipeline stage, for which all other stages wait: its layers, micro-batch and time."""
    fused = workload.attention != "eager"
    found: list[tuple[Architecture, MicroBatch, MicroBatchTime]] = []
    for share, own in _distinct_shares(ranks(architecture, workload)):
        batch = micro_batch(share, own, architecture, workload.parallel, setting)
        passes = micro_batch_time(batch, rates, workload.activation_checkpointing, fused_attention=fused)
        found.append((share, batch, passes))
    return max(found, key=lambda stage: stage[2].seconds)


def _distinct_shares(ranks: Iterable[Rank]) -> Iterable[tuple[Architecture, Training]]:
    """Return the network share and workload of one rank for each distinct pipeline stage."""
    shares = {id(rank.stage.architecture): rank for rank in ranks}.values()
    return [(rank.stage.architecture, rank.workload) for rank in shares if isinstance(rank.workload, Training)]


def step_traffic(share: Architecture, workload: Training, batch: MicroBatch) -> LinkTraffic:
    """Return the quantities that determine the communication of a GPU with the network share `share`."""
    blocks = [group.layer.feed_forward for group in share.main.groups]
    element = ELEMENT_BYTES[product_format(workload.compute)]
    quantised = workload.weights is not None and SCHEMES[workload.weights].family != "plain"
    parameters = weight_bytes(share, workload.weights or "bf16") if quantised else share.parameters * element
    return LinkTraffic(
        architecture=share,
        trained_bytes=optimizer_traffic(share, workload, 0.0).parameters * float(exchanged_element_bytes(workload)),
        parameter_bytes=float(parameters),
        stream_bytes=batch.tokens * share.hidden * element,
        layers=batch.forward.layers,
        micro_batches=workload.gradient_accumulation,
        top_k=max([block.top_k for block in blocks if isinstance(block, Moe)], default=0),
        expert_layers=batch.forward.expert_layers,
    )


def overlapped_seconds(sent: Transfer, passes: MicroBatchTime, count: int, efficiency: TrainingEfficiency) -> float:
    """Return the seconds of a transfer that overlap with computation, at most the seconds of that computation.

    **Source**: the share that is never hidden is fitted (`TrainingEfficiency.exposed_fraction`): first and last layers,
    and the GPUs' multiprocessors that copying occupies.
    """
    computation: dict[OverlapTarget, float] = {
        "passes": count * passes.device_seconds,
        "last pass": passes.device_seconds * _BACKWARD_SHARE,
        "attention": count * (passes.attention_forward + passes.attention_backward),
        "products": count * (passes.products_forward + passes.products_backward) / 2,
        "nothing": 0.0,
    }
    return min(computation[sent.overlaps_with], sent.seconds * (1 - efficiency.exposed_fraction))


_BACKWARD_SHARE: Final = 2 / 3
"""Share of a micro-batch's time in the backward pass, in which gradients become ready (Kaplan et al. 2020, arXiv
2001.08361)."""
