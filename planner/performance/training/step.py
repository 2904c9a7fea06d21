"""One optimizer step: its micro-batches, what cards send each other, the optimizer, and what brings the input."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.parallel.spread import Rank, ranks
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture, Moe
from planner.performance.efficiency import MEASURED, Classes
from planner.performance.flops import forward_work
from planner.performance.links import Links, links_of
from planner.performance.setting import TimeSetting
from planner.performance.training.communication import Behind, Sent, Traffic, exchanges
from planner.performance.training.compute import Passes, Rates, passes_of, rates_of
from planner.performance.training.optimizer import Stepped, exchanged_bytes, stepped
from planner.performance.training.work import MicroBatch, micro_batch
from planner.workload.formats import arithmetic
from planner.workload.training import Training


class Exchange(NamedTuple):
    """What cards send, and the seconds of it that pass behind computing."""

    sent: Sent
    overlapped: float

    @property
    def exposed(self) -> float:
        """Return the seconds in which cards wait for it."""
        return self.sent.seconds - self.overlapped


class Step(NamedTuple):
    """One optimizer step on one kind of card, taken apart; seconds, but for counts of tokens, samples and operations.

    `bubble` is what the fullest stage of a pipeline waits for the others, `loading` what bringing the samples takes;
    `node_cards` are those that share a host.
    """

    rates: Rates
    links: Links
    batch: MicroBatch
    passes: Passes
    micro_batches: int
    bubble: float
    exchanges: tuple[Exchange, ...]
    stepped: Stepped
    optimizer: float
    offload: float
    loading: float
    node_cards: int
    flops: float
    tokens: float
    samples: float

    @property
    def busy(self) -> float:
        """Return the whole step where loading is quick enough."""
        waiting = sum([one.exposed for one in self.exchanges])
        return self.micro_batches * self.passes.seconds + self.bubble + waiting + self.optimizer + self.offload

    @property
    def seconds(self) -> float:
        """Return the whole step."""
        return max(self.busy, self.loading)


def step_on(
    architecture: Architecture, workload: Training, gpu: Gpu, setting: TimeSetting, classes: Classes = MEASURED
) -> Step | str:
    """Return the step of `workload` on cards of `gpu`, or why there is none to tell.

    **Formula**: m · (forward + backward) + bubble + exposed exchanges + optimizer + offload, and no less than loading
    takes; bubble = (p − 1) ÷ v · (forward + backward).

    **Source**: Narayanan et al. 2021, arXiv 2104.04473 §2.2 (bubble).
    """
    rates = rates_of(gpu, workload.compute, setting.matrix_format, classes)
    if isinstance(rates, str):
        return rates
    parallel, links, count = workload.parallel, links_of(gpu, setting), workload.gradient_accumulation
    share, batch, passes = _slowest_stage(architecture, workload, rates, setting)
    traffic = traffic_of(share, workload, batch)
    sent = exchanges(traffic, workload, links, parameter_server=setting.parameter_server)
    done = stepped(share, workload, traffic.parameter_bytes)
    samples = float(workload.micro_batch * count * (parallel.data or 1))
    length, node = workload.sequence_length or 1, min(links.node, (parallel.data or 1) * parallel.model_shards)
    model = forward_work(architecture, samples, length)
    return Step(
        rates=rates,
        links=links,
        batch=batch,
        passes=passes,
        micro_batches=count,
        bubble=(parallel.pipeline - 1) / parallel.interleave * passes.seconds,
        exchanges=tuple([Exchange(one, overlapped(one, passes, count, classes)) for one in sent]),
        stepped=done,
        optimizer=done.moved_bytes / rates.memory,
        offload=done.copied_bytes / links.host_bytes_per_s + done.beside_bytes * node / done.beside_bytes_per_s,
        loading=samples / setting.input_samples_per_second if setting.input_samples_per_second else 0.0,
        node_cards=node,
        flops=model.flops * (2 + batch.weight_gradients),
        tokens=samples * length,
        samples=samples,
    )


def _slowest_stage(
    architecture: Architecture, workload: Training, rates: Rates, setting: TimeSetting
) -> tuple[Architecture, MicroBatch, Passes]:
    """Return the share of the network whose passes take longest, which all other stages wait for."""
    fused = workload.attention != "eager"
    found: list[tuple[Architecture, MicroBatch, Passes]] = []
    for share, own in _different(ranks(architecture, workload)):
        batch = micro_batch(share, own, architecture, workload.parallel, setting.compiled)
        passes = passes_of(batch, rates, workload.activation_checkpointing, fused_attention=fused)
        found.append((share, batch, passes))
    return max(found, key=lambda stage: stage[2].seconds)


def _different(found: Iterable[Rank]) -> Iterable[tuple[Architecture, Training]]:
    """Return the share and the work of one rank of each kind: stages that hold the same are the same object."""
    shares = {id(rank.stage.architecture): rank for rank in found}.values()
    return [(rank.stage.architecture, rank.workload) for rank in shares if isinstance(rank.workload, Training)]


def traffic_of(share: Architecture, workload: Training, batch: MicroBatch) -> Traffic:
    """Return what decides how much a card that holds `share` sends."""
    blocks = [group.layer.feed_forward for group in share.main.groups]
    element = ELEMENT_BYTES[arithmetic(workload.compute)]
    quantised = workload.weights is not None and SCHEMES[workload.weights].family != "plain"
    parameters = weight_bytes(share, workload.weights or "bf16") if quantised else share.parameters * element
    return Traffic(
        architecture=share,
        trained_bytes=stepped(share, workload, 0.0).parameters * float(exchanged_bytes(workload)),
        parameter_bytes=float(parameters),
        stream_bytes=batch.tokens * share.hidden * element,
        layers=batch.forward.layers,
        micro_batches=workload.gradient_accumulation,
        top_k=max([block.top_k for block in blocks if isinstance(block, Moe)], default=0),
        expert_layers=batch.forward.expert_layers,
    )


def overlapped(sent: Sent, passes: Passes, count: int, classes: Classes) -> float:
    """Return the seconds of an exchange that pass behind computing: no more than there is to hide behind.

    **Source**: the share that is never hidden is fitted (`Classes.exposed`): first and last layers, and the cards'
    multiprocessors that copying takes.
    """
    behind: dict[Behind, float] = {
        "passes": count * passes.device,
        "last pass": passes.device * _BACKWARD_OF_PASSES,
        "attention": count * (passes.attention_forward + passes.attention_backward),
        "products": count * (passes.products_forward + passes.products_backward) / 2,
        "nothing": 0.0,
    }
    return min(behind[sent.behind], sent.seconds * (1 - classes.exposed))


_BACKWARD_OF_PASSES: Final = 2 / 3
"""What of a micro-batch is its backward pass, while gradients become ready (Kaplan et al. 2020, arXiv 2001.08361)."""
