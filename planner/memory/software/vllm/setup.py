"""Resolved settings of vLLM for a workload: defaults by class of card, and limits per step.

**Source**: vLLM 0.33: engine/arg_utils.py get_batch_defaults and the limits after it, config/cache.py
(gpu_memory_utilization 0.92, pages of 16 tokens), config/vllm.py max_in_flight_tokens. 0.90 until 0.19.
"""

from collections.abc import Hashable
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.hardware.gpu import Gpu
from planner.memory.software.vllm.experts import ExpertKernels, kernels_of_card
from planner.units import GIB
from planner.workload.software.vllm import VllmSettings, VllmVersion
from planner.workload.workload import Inference

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
