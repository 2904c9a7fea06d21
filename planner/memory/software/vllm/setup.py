"""Setup of vLLM on a card: limits of its steps, and kernels for experts in MXFP4, as in gpt-oss, with their weights.

These kernels pad experts to multiples of their tiles, or keep parts a second time.

**Source**: vLLM 0.33: engine/arg_utils.py get_batch_defaults and the limits after it, config/cache.py
(gpu_memory_utilization 0.92, pages of 16 tokens), config/vllm.py max_in_flight_tokens. 0.90 until 0.19. Experts: vLLM
0.14 model_executor/layers/quantization/mxfp4.py `get_mxfp4_backend`, `create_weights` and
`process_weights_after_loading`; triton_kernels 3.5 tensor_details/layout_details/hopper_scale.py
`HopperMXScaleLayout.swizzle_data`.
"""

from collections.abc import Hashable
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import AS_STORED, ELEMENT_BYTES, SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.result import Term, TermPart
from planner.memory.terms import library_symbol
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture, Tensor
from planner.models.layers import LayerGroup, Moe
from planner.units import GIB, ceil_div, round_up
from planner.workload.software.vllm import VllmSettings, VllmVersion
from planner.workload.workload import Inference

_FORMAT: Final = "mxfp4"
_BLOCK: Final = 32
"""Values that share a scale of one byte."""
_SCALE_ROWS: Final = 2 * 8 * 2 * 8
"""Multiple of rows in Triton's layout of scales: two tiles of 16 rows for each of 8 warps."""
_FLOAT_MORE: Final = 2
"""Bytes by which a value in fp32 is larger than one in 16 bits."""
_SOURCE: Final = (
    "vLLM mxfp4.py create_weights: Marlin pads the width to a multiple of 256 and the experts' to 128, FlashInfer both "
    "to 256, Triton the experts' to 64; process_weights_after_loading: Triton's biases become fp32, and of the weights "
    "that it lays out anew only the values are deleted, not the scales"
)


class ExpertKernels(Enum):
    """Kernels for experts in MXFP4, with the multiples of the experts' width per card and of the network's."""

    MARLIN = (128, 256)
    FLASHINFER = (256, 256)
    TRITON = (64, 1)


def kernels_of_card(gpu: Gpu) -> ExpertKernels:
    """Return the kernels that vLLM takes on `gpu`: Triton's on Hopper, FlashInfer's on B200 and ROCm, else Marlin."""
    major = (gpu.compute_capability or "").partition(".")[0]
    if gpu.vendor == "AMD" or major == "10":
        return ExpertKernels.FLASHINFER
    return ExpertKernels.TRITON if major == "9" else ExpertKernels.MARLIN


def padded_weights_term(architecture: Architecture, scheme_name: str, kernels: ExpertKernels | None) -> Term:
    """Return the memory of weights stored as `scheme_name`, with what `kernels` add to experts in MXFP4.

    **Formula**: bytes of the experts' matrices · (I′ · h′ / (I · h) − 1); on Hopper also a second copy of their scales,
    with rows rounded up to 256, and 2 bytes for each bias.

    **Source**: the formula gives 64.30 GiB for gpt-oss-120b and 13.41 for gpt-oss-20b. vLLM 0.14 logs 64.38 for the
    first (vllm-project/vllm#33155), vLLM 0.11 64.38 and 13.47 (llm-d/llm-d-benchmark@2593348
    config_explorer/empirical-vllm-memory-results.md).
    """
    weights = weights_term(architecture, scheme_name)
    if (architecture.stored_as if scheme_name == AS_STORED else scheme_name) != _FORMAT:
        return weights
    padding = sum(_padding_bytes(group, architecture.hidden, kernels) for group in architecture.main.groups)
    if not padding:
        return weights
    part = TermPart(name="padding and copies of the experts", bytes=padding, formula="X", source=_SOURCE)
    return replace(
        weights,
        bytes=weights.bytes + padding,
        low_bytes=weights.low_bytes + padding,
        high_bytes=weights.high_bytes + padding,
        formula=f"{weights.formula} + X",
        symbols=(*weights.symbols, library_symbol("X", padding, "bytes that kernels add to the experts")),
        parts=(*weights.parts, part),
    )


def _padding_bytes(group: LayerGroup, hidden: int, kernels: ExpertKernels | None) -> int:
    block = group.layer.feed_forward
    if kernels is None or not isinstance(block, Moe):
        return 0
    experts = [tensor for tensor in group.layer.tensors if tensor.role == "expert"]
    width_multiple, hidden_multiple = kernels.value
    padded = round_up(block.intermediate, width_multiple) * round_up(hidden, hidden_multiple)
    whole, scheme, added = block.intermediate * hidden, SCHEMES[_FORMAT], 0
    for tensor in experts:
        one = 0
        if len(tensor.shape) > 1:
            stored = scheme.tensor_bytes(tensor.shape)
            one = stored * padded // whole - stored
        if kernels is ExpertKernels.TRITON:
            one += _laid_out_bytes(tensor)
        added += one * tensor.copies * group.count
    return added


def _laid_out_bytes(tensor: Tensor) -> int:
    """Return what an expert's tensor holds more in Triton's layout: a matrix's scales again, a bias in fp32."""
    if len(tensor.shape) == 1:
        return _FLOAT_MORE * tensor.size
    rows, columns = tensor.shape
    return round_up(rows, _SCALE_ROWS) * round_up(ceil_div(columns, _BLOCK), 2)


_STEPS_IN_FLIGHT: Final = 2
"""Number of steps scheduled at once: since 0.33 scheduling does not wait for the previous step."""


class CardClass(Enum):
    """Classes of cards with equal server defaults: (maximum tokens per step, maximum sequences per step)."""

    LARGEST = (16_384, 1_024)
    LARGE = (8_192, 1_024)
    OTHER = (2_048, 256)


class CardSetup(NamedTuple):
    """The facts of a card on which vLLM's settings depend: its limits, and the kernels for experts in MXFP4."""

    limits: CardClass
    experts: ExpertKernels | None = None


class VllmSetup(NamedTuple):
    """Resolved settings of vLLM: limits per step, page size, bytes per element of activations, and kernels."""

    version: VllmVersion
    sequences: int
    tokens: int
    in_flight: int
    page_tokens: int
    utilization: float
    graphs: bool
    element: int
    length: int
    experts: ExpertKernels | None


@lru_cache(maxsize=1024)
def card_setup(gpu: Gpu) -> CardSetup:
    """Return the facts of `gpu` on which vLLM's settings depend."""
    return CardSetup(_limits_on(gpu), kernels_of_card(gpu))


def _limits_on(gpu: Gpu) -> CardClass:
    """Return the class of `gpu` by memory: from 160 GiB, from 70 GiB (not A100 or GB10), or other."""
    memory = gpu.usable_memory_bytes or gpu.memory_bytes or 0
    if memory >= 160 * GIB:
        return CardClass.LARGEST
    slower = "a100" in gpu.name.lower() or gpu.compute_capability == "12.1"
    return CardClass.LARGE if memory >= 70 * GIB and not slower else CardClass.OTHER


def setup_of(workload: Inference, card_class: Hashable) -> VllmSetup:
    """Return the resolved settings with which vLLM's server runs `workload` on a card of `card_class`."""
    settings = workload.settings_as(VllmSettings)
    version = settings.version or "0.33"
    card = card_class if isinstance(card_class, CardSetup) else CardSetup(CardClass.OTHER)
    default_tokens, default_sequences = card.limits.value
    length = workload.context_length or 1
    sequences = settings.max_num_seqs or default_sequences
    tokens = settings.max_num_batched_tokens or min(default_tokens, sequences * length)
    if settings.max_num_seqs is None:
        sequences = min(sequences, tokens)
    return VllmSetup(
        version=version,
        sequences=sequences,
        tokens=tokens,
        in_flight=tokens * (_STEPS_IN_FLIGHT if version == "0.33" else 1),
        page_tokens=settings.block_size or 16,
        utilization=settings.memory_utilization or (0.92 if version == "0.33" else 0.9),
        graphs=not settings.enforce_eager,
        element=ELEMENT_BYTES[workload.compute],
        length=length,
        experts=card.experts,
    )
