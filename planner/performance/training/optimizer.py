"""Bytes that the optimizer step reads, writes and copies, on the card or in the offload target."""

from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.software import sharding_strategy_of
from planner.memory.training.adapters.trained import tuning_of
from planner.memory.training.optimizer_states import optimizer_term, parameter_count
from planner.models.architecture import Architecture
from planner.performance.software import training_pace
from planner.workload.defaults import default_weight_format
from planner.workload.training import Training

HOST_BYTES_PER_S: Final = 100e9
"""Bandwidth of an optimizer on the host in bytes per second, for all cards in a node: half of the eight DDR4-3200
channels of one socket (205 GB/s; JEDEC JESD79-4), since states are read and written."""
DISK_BYTES_PER_S: Final = 5e9
"""Bandwidth of an optimizer with states on one PCIe 4.0 NVMe disk, in bytes per second; vendors state 7 GB/s for
sequential access."""
_MASTER_BYTES: Final = 4
"""Size of an fp32 master parameter in bytes; FSDP2 updates parameters in their own format instead."""


class OptimizerTraffic(NamedTuple):
    """Memory traffic of an optimizer step on one card: trained parameters, and bytes moved on the card or offloaded.

    `copied_bytes` cross the link to the host; `offloaded_bytes` are read and written there, at `offload_bytes_per_s`
    for all cards of a node.
    """

    parameters: int
    moved_bytes: float
    copied_bytes: float = 0.0
    offloaded_bytes: float = 0.0
    offload_bytes_per_s: float = HOST_BYTES_PER_S


def optimizer_traffic(architecture: Architecture, workload: Training, gathered_bytes: float) -> OptimizerTraffic:
    """Return the memory traffic of an optimizer step; `gathered_bytes` is the size of all parameters in a card's share.

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
    """Return the bytes of one parameter or gradient sent between cards: 2 if optimizer states are sharded."""
    return ELEMENT_BYTES[training_pace(workload).exchanged_format(workload, _trained_parameter_format(workload))]


def _trained_parameter_format(workload: Training) -> str:
    if workload.lora is not None:
        return workload.lora.adapter_dtype
    kept = workload.weights or default_weight_format(workload)
    return kept if kept in ELEMENT_BYTES else "bf16"
