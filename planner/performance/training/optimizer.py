"""What the optimizer's step reads, writes and copies, on the card or beside it."""

from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.software import sharder_of
from planner.memory.training.adapters.trained import tuning_of
from planner.memory.training.optimizer_states import optimizer_term, parameters_in
from planner.models.architecture import Architecture
from planner.performance.software.lookup import pace_of
from planner.workload.defaults import default_weights
from planner.workload.training import Training

HOST_BYTES_PER_S: Final = 100e9
"""What an optimizer on the host reads and writes, for all cards of a node: half of the eight DDR4-3200 channels of one
socket (205 GB/s; JEDEC JESD79-4), since its states come in and go out."""
DISK_BYTES_PER_S: Final = 5e9
"""The same of states on one PCIe 4.0 NVMe disk; makers state 7 GB/s in sequence."""
_MASTER: Final = 4
"""Bytes of a parameter that is updated in fp32 whatever it is computed in; FSDP2 keeps them in their own format."""


class Stepped(NamedTuple):
    """What a step does on one card: parameters that it trains, and bytes that it moves on the card or beside it.

    `copied_bytes` go over the link to the host; `beside_bytes` are read and written there, at `beside_bytes_per_s` for
    all cards of a node.
    """

    parameters: int
    moved_bytes: float
    copied_bytes: float = 0.0
    beside_bytes: float = 0.0
    beside_bytes_per_s: float = HOST_BYTES_PER_S


def stepped(architecture: Architecture, workload: Training, gathered_bytes: float) -> Stepped:
    """Return the bytes of a step; `gathered_bytes` are those of the parameters of a card's share of the network.

    **Formula**: gradients read, parameters and states read and written, each by the replicas that share them.
    Offloaded, gradients go to the host and parameters come back; offloaded parameters come once more for each pass.

    **Source**: Ren et al. 2021, arXiv 2101.06840 §4 (what goes over the link); Rajbhandari et al. 2021,
    arXiv 2104.07857 (parameters and disks).
    """
    parallel = workload.parallel
    trained = tuning_of(architecture, workload).trained
    count, size = parameters_in(trained), trained_bytes(workload)
    shards = parallel.state_shards if parallel.zero else 1
    updated = max(size, _MASTER) if sharder_of(workload).keeps_masters else size
    states = optimizer_term(trained, workload.optimizer, updated)
    gradient = exchanged_bytes(workload)
    moved = (count * (gradient + 2 * updated) + 2 * (states.bytes if states else 0)) / shards
    if parallel.offload == "none":
        return Stepped(count, moved)
    copied = count * (gradient + size) / shards
    if parallel.offload != "optimizer":
        copied += 2 * workload.gradient_accumulation * gathered_bytes / shards
    beside = DISK_BYTES_PER_S if parallel.offload == "nvme" else HOST_BYTES_PER_S
    return Stepped(count, 0.0, copied, moved, beside)


def trained_bytes(workload: Training) -> int:
    """Return the bytes of one trained parameter: of an adapter's, or of the network's own."""
    return ELEMENT_BYTES[_trained_format(workload)]


def exchanged_bytes(workload: Training) -> int:
    """Return the bytes of one parameter or gradient on its way between cards: 16 bits where states are shared."""
    return ELEMENT_BYTES[pace_of(workload).exchanged_format(workload, _trained_format(workload))]


def _trained_format(workload: Training) -> str:
    if workload.lora is not None:
        return workload.lora.adapter_dtype
    kept = workload.weights or default_weights(workload)
    return kept if kept in ELEMENT_BYTES else "bf16"
