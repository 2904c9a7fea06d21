"""Experts in MXFP4, as in gpt-oss, which vLLM's kernels pad to multiples of their tiles.

**Source**: vLLM model_executor/layers/quantization/mxfp4.py `get_mxfp4_backend` and `create_weights`; the layouts of
triton_kernels, `HopperMXValueLayout`.
"""

from enum import Enum
from typing import Final

from planner.dtypes import AS_STORED, SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.result import Term, TermPart
from planner.memory.terms import library_symbol
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture
from planner.models.layers import LayerGroup, Moe
from planner.units import round_up
from planner.workload.software.vllm import VllmVersion

_FORMAT: Final = "mxfp4"
_HIDDEN: Final = 256
_TILE: Final = 256
"""Values of the summed dimension in a tile of Triton's kernels on Hopper: 64.38 GiB of gpt-oss-120b in vLLM 0.14
(vllm-project/vllm#33155) are 60.77 with 2,880 values padded to 3,072 and unpadded scales."""
_UNPADDED: Final[VllmVersion] = "0.11"
"""Last version whose Triton kernels pad to 64 values only."""
_SOURCE: Final = (
    "vLLM mxfp4.py create_weights: Marlin pads the width to a multiple of 256 and the experts' to 128, FlashInfer both "
    "to 256; Triton on Hopper pads the packed values"
)


class ExpertKernels(Enum):
    """Kernels for experts in MXFP4: the multiple of the experts' width per card, None if only values are padded."""

    MARLIN = 128
    FLASHINFER = 256
    TRITON = None


def kernels_of_card(gpu: Gpu) -> ExpertKernels:
    """Return the kernels that vLLM takes on `gpu`: Triton's on Hopper, FlashInfer's on B200 and ROCm, else Marlin."""
    major = (gpu.compute_capability or "").partition(".")[0]
    if gpu.vendor == "AMD" or major == "10":
        return ExpertKernels.FLASHINFER
    return ExpertKernels.TRITON if major == "9" else ExpertKernels.MARLIN


def padded_weights_term(
    architecture: Architecture, scheme_name: str, kernels: ExpertKernels | None, version: VllmVersion
) -> Term:
    """Return the memory of weights stored as `scheme_name`, with what `kernels` pad of experts in MXFP4.

    **Formula**: bytes of the experts' matrices · (I′ · h′ / (I · h) − 1); on Hopper their values · (k′ / k − 1).
    """
    weights = weights_term(architecture, scheme_name)
    if (architecture.stored_as if scheme_name == AS_STORED else scheme_name) != _FORMAT:
        return weights
    padding = sum(_padding_bytes(group, architecture.hidden, kernels, version) for group in architecture.main.groups)
    if not padding:
        return weights
    part = TermPart(name="padding of the experts", bytes=padding, formula="X", source=_SOURCE)
    return weights.evolve(
        bytes=weights.bytes + padding,
        low_bytes=weights.low_bytes + padding,
        high_bytes=weights.high_bytes + padding,
        formula=f"{weights.formula} + X",
        symbols=(*weights.symbols, library_symbol("X", padding, "bytes by which kernels pad the experts")),
        parts=(*weights.parts, part),
    )


def _padding_bytes(group: LayerGroup, hidden: int, kernels: ExpertKernels | None, version: VllmVersion) -> int:
    block = group.layer.feed_forward
    if kernels is None or not isinstance(block, Moe):
        return 0
    matrices = [tensor for tensor in group.layer.tensors if tensor.role == "expert" and len(tensor.shape) > 1]
    scheme, padding = SCHEMES[_FORMAT], 0
    for tensor in matrices:
        if kernels is ExpertKernels.TRITON:
            stored, summed = int(tensor.size * scheme.data_bits / 8), tensor.shape[-1]
            padded, whole = (summed if version == _UNPADDED else round_up(summed, _TILE)), summed
        else:
            stored, whole = scheme.tensor_bytes(tensor.shape), block.intermediate * hidden
            padded = round_up(block.intermediate, kernels.value) * round_up(hidden, _HIDDEN)
        padding += (stored * padded // whole - stored) * tensor.copies * group.count
    return padding
