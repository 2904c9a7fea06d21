"""One optimizer step: its micro-batches, communication, optimizer, and input loading."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.parallel.ranks import Rank, ranks
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture, Moe
from planner.performance.efficiency import MEASURED, EfficiencyClasses
from planner.performance.links import Links, links_of
from planner.performance.setting import TimeSetting
from planner.performance.training.communication import LinkTraffic, OverlapTarget, Transfer, step_transfers
from planner.performance.training.compute import CardRates, MicroBatchTime, card_rates, micro_batch_time
from planner.performance.training.optimizer import OptimizerTraffic, exchanged_element_bytes, optimizer_traffic
from planner.performance.training.work import MicroBatch, micro_batch, sequences_work
from planner.workload.formats import product_format
from planner.workload.training import Training


class OverlappedTransfer(NamedTuple):
    """A transfer, and the part of its seconds that overlaps with computation."""

    sent: Transfer
    overlapped_seconds: float

    @property
    def exposed_seconds(self) -> float:
        """Return the seconds in which cards wait for this transfer."""
        return self.sent.seconds - self.overlapped_seconds


class TrainingStep(NamedTuple):
    """One optimizer step on one kind of card: seconds by kind of work, and counts of tokens, samples and FLOPs.

    `bubble` is the time that a pipeline's slowest stage waits for the others, `loading` that of loading the samples;
    `node_cards` is the number of cards that share a host.
    """

    rates: CardRates
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
    classes: EfficiencyClasses = MEASURED,
) -> TrainingStep | str:
    """Return the optimizer step of `workload` on cards `gpu`, or a sentence with the reason why it cannot be timed.

    **Formula**: m · (forward + backward) + bubble + exposed transfers + optimizer + offload, and no less than loading
    takes; bubble = (p − 1) ÷ v · (forward + backward).

    **Source**: Narayanan et al. 2021, arXiv 2104.04473 §2.2 (bubble).
    """
    rates = card_rates(gpu, workload.compute, setting, classes)
    if isinstance(rates, str):
        return rates
    parallel, links, count = workload.parallel, links_of(gpu, setting), workload.gradient_accumulation
    share, batch, passes = _slowest_stage(architecture, workload, rates, setting)
    traffic = step_traffic(share, workload, batch)
    sent = step_transfers(traffic, workload, links, setting)
    done = optimizer_traffic(share, workload, traffic.parameter_bytes)
    samples = float(workload.micro_batch * count * (parallel.data or 1))
    length, node = workload.sequence_length or 1, min(links.node, (parallel.data or 1) * parallel.model_shards)
    model = sequences_work(architecture, samples, length, 1, setting)
    return TrainingStep(
        rates=rates,
        links=links,
        batch=batch,
        passes=passes,
        micro_batches=count,
        bubble=(parallel.pipeline - 1) / parallel.interleave * passes.seconds,
        transfers=tuple([OverlappedTransfer(one, overlapped_seconds(one, passes, count, classes)) for one in sent]),
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
    architecture: Architecture, workload: Training, rates: CardRates, setting: TimeSetting
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
    """Return the quantities that determine the communication of a card with the network share `share`."""
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


def overlapped_seconds(sent: Transfer, passes: MicroBatchTime, count: int, classes: EfficiencyClasses) -> float:
    """Return the seconds of a transfer that overlap with computation, at most the seconds of that computation.

    **Source**: the share that is never hidden is fitted (`EfficiencyClasses.exposed`): first and last layers, and the
    cards' multiprocessors that copying occupies.
    """
    computation: dict[OverlapTarget, float] = {
        "passes": count * passes.device_seconds,
        "last pass": passes.device_seconds * _BACKWARD_SHARE,
        "attention": count * (passes.attention_forward + passes.attention_backward),
        "products": count * (passes.products_forward + passes.products_backward) / 2,
        "nothing": 0.0,
    }
    return min(computation[sent.overlaps_with], sent.seconds * (1 - classes.exposed))


_BACKWARD_SHARE: Final = 2 / 3
"""Share of a micro-batch's time in the backward pass, in which gradients become ready (Kaplan et al. 2020, arXiv
2001.08361)."""
