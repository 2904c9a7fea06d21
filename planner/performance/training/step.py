"""The time of one optimizer step: micro-batches, what cards send each other, the optimizer, and what brings the input."""

from typing import NamedTuple

from planner.dtypes import SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.parallel.spread import ranks
from planner.memory.tensors import parameter_counts
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture, Moe
from planner.performance.efficiency import MEASURED, Classes, MatrixFormat
from planner.performance.flops import forward_work
from planner.performance.links import Links, links_of
from planner.performance.setting import TimeSetting
from planner.performance.training.communication import Sent, Traffic, exchanges
from planner.performance.training.compute import Passes, Rates, passes_of, rates_of
from planner.performance.training.optimizer import Stepped, exchanged_bytes, stepped
from planner.performance.training.work import MicroBatch, micro_batch
from planner.units import ceil_div
from planner.workload.training import Training, arithmetic
from planner.dtypes import ELEMENT_BYTES

HOST_MEMORY_BYTES_PER_S = 100e9


class Hidden(NamedTuple):
    """An exchange, and the seconds of it that pass behind something else."""

    sent: Sent
    overlapped: float


class Step(NamedTuple):
    """One optimizer step on one kind of card, taken apart."""

    gpu: Gpu
    rates: Rates
    links: Links
    batch: MicroBatch
    passes: Passes
    micro_batches: int
    bubble: float
    sent: tuple[Hidden, ...]
    stepped: Stepped
    optimizer: float
    offload: float
    input: float
    input_overlapped: float
    flops: float
    tokens: float
    samples: float

    @property
    def seconds(self) -> float:
        """Return the whole step."""
        exposed = sum([one.sent.seconds - one.overlapped for one in self.sent])
        working = self.micro_batches * self.passes.seconds + self.bubble
        return working + exposed + self.optimizer + self.offload + self.input - self.input_overlapped


def step_on(
    architecture: Architecture, workload: Training, gpu: Gpu, setting: TimeSetting, classes: Classes = MEASURED
) -> Step | str:
    """Return the step of `workload` on cards of `gpu`, or why there is none to tell.

    **Formula**: m · (passes) · (1 + bubble) + exposed exchanges + optimizer + offload, and no less than loading takes.
    """
    narrow: MatrixFormat | None = setting.matrix_format
    rates = rates_of(gpu, workload.compute, narrow, classes)
    if isinstance(rates, str):
        return rates
    parallel = workload.parallel
    links = links_of(gpu, setting)
    fused_attention = workload.attention != "eager"
    found = []
    for rank in _different(ranks(architecture, workload)):
        own = rank.workload
        assert isinstance(own, Training)
        batch = micro_batch(rank.stage.architecture, own, architecture, setting.compiled, parallel.context)
        passes = passes_of(batch, rates, workload.activation_checkpointing, fused_attention=fused_attention)
        found.append((passes.seconds, rank.stage.architecture, batch, passes))
    _, share, batch, passes = max(found, key=lambda item: item[0])
    count = workload.gradient_accumulation
    bubble = (parallel.pipeline - 1) / parallel.interleave * passes.seconds
    traffic = _traffic(share, architecture, workload, batch)
    sent = tuple(
        Hidden(one, _overlapped(one, passes, count, classes))
        for one in exchanges(traffic, workload, links, parameter_server=setting.parameter_server)
    )
    step = stepped(share, workload, traffic.parameter_bytes)
    optimizer = step.moved_bytes / rates.memory
    offload = step.copied_bytes / links.host_bytes_per_s + step.host_moved_bytes / HOST_MEMORY_BYTES_PER_S
    samples = float(workload.micro_batch * count * (parallel.data or 1))
    length = workload.sequence_length or 1
    loading = samples / setting.input_samples_per_second if setting.input_samples_per_second else 0.0
    rest = (
        count * passes.seconds + bubble + sum([one.sent.seconds - one.overlapped for one in sent]) + optimizer + offload
    )
    forward = forward_work(architecture, samples, length)
    model_flops = forward.flops * (2 + batch.weight_gradients)
    return Step(
        gpu,
        rates,
        links,
        batch,
        passes,
        count,
        bubble,
        sent,
        step,
        optimizer,
        offload,
        loading,
        min(loading, rest),
        model_flops,
        samples * length,
        samples,
    )


def _different(found: list) -> list:
    seen: dict[int, object] = {}
    for rank in found:
        seen.setdefault(id(rank.stage.architecture), rank)
    return list(seen.values())


def _traffic(share: Architecture, whole: Architecture, workload: Training, batch: MicroBatch) -> Traffic:
    size = exchanged_bytes(workload)
    blocks = [group.layer.feed_forward for group in whole.main.groups]
    top_k = max([block.top_k for block in blocks if isinstance(block, Moe)], default=0)
    element = ELEMENT_BYTES[arithmetic(workload.compute)]
    step = stepped(share, workload, 0.0)
    quantised = workload.weights is not None and SCHEMES[workload.weights].family != "plain"
    parameters = weight_bytes(share, workload.weights or "bf16") if quantised else share.parameters * element
    return Traffic(
        architecture=share,
        trained_bytes=step.parameters * float(size),
        parameter_bytes=float(parameters),
        stream_bytes=batch.tokens * share.hidden * element,
        layers=batch.forward.layers,
        micro_batches=workload.gradient_accumulation,
        top_k=top_k,
        expert_layers=batch.forward.expert_layers,
    )


def _overlapped(sent: Sent, passes: Passes, count: int, classes: Classes) -> float:
    """Return the seconds of an exchange that pass behind computing."""
    backward = passes.device * 2 / 3
    behind = {
        "passes": count * passes.device,
        "last pass": backward,
        "attention": count * (passes.attention_forward + passes.attention_backward),
        "products": count * (passes.products_forward + passes.products_backward) / 2,
        "nothing": 0.0,
    }[sent.behind]
    return min(behind, sent.seconds * (1 - classes.exposed))
