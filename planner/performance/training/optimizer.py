"""How long the optimizer's step takes, on the card or beside it."""

from typing import NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.training.optimizer import optimizer_term
from planner.memory.training.optimizer_bytes import parameters_in
from planner.memory.tuned.tuning import tuning_of
from planner.models.architecture import Architecture
from planner.workload.defaults import default_weights
from planner.workload.training import Training, arithmetic


class Stepped(NamedTuple):
    """What a step of the optimizer reads and writes on one card, and what goes over the host's link for it."""

    parameters: int
    gradient_bytes: int
    moved_bytes: float
    copied_bytes: float
    host_moved_bytes: float


def stepped(architecture: Architecture, workload: Training, gathered_bytes: float) -> Stepped:
    """Return the bytes of a step; `gathered_bytes` are those of the parameters of a card's share of the network.

    **Formula**: gradients read, parameters and states read and written, each by the replicas that share them; copies
    in 16 bits written. Offloaded, gradients go to the host and parameters come back; offloaded parameters come once
    more for each pass.
    """
    parallel = workload.parallel
    trained = tuning_of(architecture, workload).trained
    count = parameters_in(trained)
    size = trained_bytes(workload)
    gradient = min(size, 2) if parallel.zero or workload.profile == "megatron" else size
    states = optimizer_term(trained, workload.optimizer, 4 if parallel.zero else size)
    shards = parallel.state_shards if parallel.zero else 1
    moved = (count * (gradient + 2 * (4 if parallel.zero else size)) + 2 * (states.bytes if states else 0)) / shards
    if parallel.offload == "none":
        return Stepped(count, count * gradient, moved, 0.0, 0.0)
    copied = count * (gradient + size) / shards
    if parallel.offload != "optimizer":
        copied += 2 * workload.gradient_accumulation * gathered_bytes / shards
    return Stepped(count, count * gradient, 0.0, copied, moved)


def trained_bytes(workload: Training) -> int:
    """Return the bytes of one trained parameter: of an adapter's, or of the network's own."""
    if workload.lora is not None:
        return ELEMENT_BYTES[workload.lora.adapter_dtype]
    return ELEMENT_BYTES.get(workload.weights or default_weights(workload), ELEMENT_BYTES["bf16"])


def exchanged_bytes(workload: Training) -> int:
    """Return the bytes of one parameter or gradient on its way between cards."""
    if workload.parallel.zero or workload.profile == "megatron":
        return ELEMENT_BYTES[arithmetic(workload.compute)]
    return trained_bytes(workload)
