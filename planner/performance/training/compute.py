"""How long one micro-batch takes on one card, operation by operation."""

from typing import NamedTuple

from planner.hardware.gpu import Gpu
from planner.performance.efficiency import (
    SIZES,
    Classes,
    MatrixFormat,
    Size,
    attention_share,
    family_of,
    matrix_share,
    memory_share,
)
from planner.performance.flops import Product
from planner.performance.training.work import MicroBatch
from planner.workload.training import Checkpointing, Compute


class Rates(NamedTuple):
    """What a card computes and moves in a second, and the shares of it that work of each kind reaches."""

    matrix: float
    narrow: float
    bandwidth: float
    memory: float
    matrix_share: float
    narrow_share: float
    attention_share: float
    matrix_bytes: float
    classes: Classes


def rates_of(gpu: Gpu, compute: Compute, narrow: MatrixFormat | None, classes: Classes) -> Rates | str:
    """Return the rates of `gpu` for products in the format of `compute`, those of layers in `narrow` if it is given.

    Where a card has no figure there is none to estimate with: the answer then says which.
    """
    wide = wide_format(gpu, compute)
    chosen = narrow or ("fp8" if compute == "fp8" else wide)
    found = {name: gpu.rate(name) for name in (wide, chosen)}
    missing = next((name for name, rate in found.items() if rate is None), None)
    if missing is not None:
        return f"the catalog has no dense rate of the {gpu.name} in {missing}"
    if gpu.bandwidth_bytes_per_s is None:
        return f"the catalog has no memory bandwidth of the {gpu.name}"
    family = family_of(gpu)
    rates = {name: rate.ops_per_s for name, rate in found.items() if rate is not None}
    return Rates(
        matrix=rates[wide],
        narrow=rates[chosen],
        bandwidth=gpu.bandwidth_bytes_per_s,
        memory=gpu.bandwidth_bytes_per_s * memory_share(classes, family),
        matrix_share=matrix_share(classes, family, SIZES[wide]),
        narrow_share=matrix_share(classes, family, SIZES[chosen]),
        attention_share=attention_share(classes, family, SIZES[wide]),
        matrix_bytes=_BYTES[SIZES[wide]],
        classes=classes,
    )


_BYTES: dict[Size, float] = {"32": 4, "19": 4, "16": 2, "8": 2, "4": 2}
"""Bytes of one element that products read and write; narrow ones read copies, and are counted in 16 bits."""


def wide_format(gpu: Gpu, compute: Compute) -> MatrixFormat:
    """Return what attention and the head are computed in: bf16 in fp32 on cards without it, as tf32."""
    asked: MatrixFormat = "bf16" if compute in ("bf16", "amp-bf16", "fp8") else "fp16" if "fp16" in compute else "fp32"
    if compute == "tf32" and gpu.rate("tf32") is not None:
        return "tf32"
    if asked == "bf16" and gpu.rate("bf16") is None:
        return "fp32"
    return asked


class Passes(NamedTuple):
    """Seconds of one micro-batch: forward and backward by kind of work, and what is done twice."""

    products_forward: float
    products_backward: float
    attention_forward: float
    attention_backward: float
    elements_forward: float
    elements_backward: float
    head: float
    recomputed: float
    dequantised: float
    host: float

    @property
    def device(self) -> float:
        """Return what the card itself takes."""
        return sum(self) - self.host

    @property
    def seconds(self) -> float:
        """Return what both take: launches are only hidden where the card has a queue of long kernels."""
        return self.device + self.host

    @property
    def layers(self) -> float:
        """Return what the layers take, forward and backward, without the head."""
        return self.device - self.head


_BACKWARD_OF_FUSED_ATTENTION = 2.5
"""Five products instead of two, one of them computed again (Dao 2023, arXiv 2307.08691 §3.1)."""


def passes_of(batch: MicroBatch, rates: Rates, checkpointing: Checkpointing, *, fused_attention: bool) -> Passes:
    """Return how long `batch` takes at `rates`."""
    classes, work = rates.classes, batch.forward
    forward = sum([product_seconds(product, rates) for product in work.products])
    attention = work.attention_flops / (rates.matrix * rates.attention_share)
    times = classes.fused_passes if batch.fused else classes.passes
    memory = rates.memory
    elements = (batch.kept_bytes * times + batch.cast_bytes) / memory
    head = sum([product_seconds(product, rates, wide=True) for product in work.head])
    backward = 1 + batch.weight_gradients
    full, selective = checkpointing == "full", checkpointing == "selective"
    again = classes.recomputed * ((forward if full else 0.0) + (attention + elements if full or selective else 0.0))
    visits = 3 if full else 2
    dequantised = visits * (batch.quantised_bytes + batch.whole_bytes) / (rates.bandwidth * DEQUANTISED_SHARE)
    launched = (classes.fused_host if batch.fused else classes.host) * work.layers
    launched += classes.expert_host * work.expert_layers
    host = launched * (4 if full else 3)
    return Passes(
        products_forward=forward,
        products_backward=forward * backward,
        attention_forward=attention,
        attention_backward=attention * (_BACKWARD_OF_FUSED_ATTENTION if fused_attention else 2),
        elements_forward=elements,
        elements_backward=elements * classes.backward_passes,
        head=head * (1 + backward) + batch.logit_bytes / memory,
        recomputed=again,
        dequantised=dequantised if batch.quantised_bytes else 0.0,
        host=host * (ADAPTED_HOST if batch.weight_gradients == 0 else 1),
    )


DEQUANTISED_SHARE = 0.25
ADAPTED_HOST = 2.0


def product_seconds(product: Product, rates: Rates, *, wide: bool = False) -> float:
    """Return how long products of one shape take: the longer of computing and moving.

    **Formula**: n · max(2 · m · k · n ÷ (peak · η · (1 − e^(−m/r₀))), bytes ÷ bandwidth).
    """
    classes = rates.classes
    peak, share = (rates.matrix, rates.matrix_share) if wide else (rates.narrow, rates.narrow_share)
    if product.expert:
        share *= classes.experts
    computing = product.flops / (peak * share * rows_share(product.rows, classes))
    return max(computing, product.moved_bytes(rates.matrix_bytes) / rates.memory)


def rows_share(rows: float, classes: Classes) -> float:
    """Return what of the rate of large products those with `rows` rows reach."""
    from math import exp

    return 1 - exp(-max(rows, 1.0) / classes.rows)
