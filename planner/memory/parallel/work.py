"""A card's own share of the work, as a workload for one card, and what spreads training over replicas."""

from typing import Final, Literal

from planner.units import ceil_div
from planner.workload.formats import arithmetic, autocasts
from planner.workload.parallel import Parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

Sharder = Literal["ddp", "fsdp", "deepspeed", "megatron"]

SHARDER_TITLES: Final[dict[Sharder, str]] = {
    "ddp": "DDP",
    "fsdp": "FSDP",
    "deepspeed": "DeepSpeed",
    "megatron": "Megatron-LM",
}
SHARDER_VERSIONS: Final[dict[Sharder, str]] = {
    "ddp": "DistributedDataParallel of PyTorch 2.13",
    "fsdp": "FSDP2 of PyTorch 2.13",
    "deepspeed": "DeepSpeed 0.19",
    "megatron": "Megatron-LM 0.20",
}
"""The versions whose sources were read."""
KEEPS: Final[dict[Sharder, str]] = {
    "ddp": "gradients twice, once in buckets",
    "fsdp": "shares of parameters, gradients and states in the parameters' own format, layers gathered in turn",
    "deepspeed": "16-bit parameters and gradients, fp32 parameters and states, and buckets of 5 · 10⁸ elements",
    "megatron": "16-bit parameters, fp32 gradients from the first pass on, fp32 parameters and states",
}
"""What each keeps of a network, in words."""
ALONE: Final = Parallel(data=1)


def sharder_of(workload: Training) -> Sharder:
    """Return what spreads `workload` over its replicas.

    ZeRO-3 is FSDP2 unless the profile is DeepSpeed or something stays where only DeepSpeed puts it; ZeRO-1 and 2 are
    DeepSpeed's.
    """
    parallel = workload.parallel
    if workload.profile == "megatron":
        return "megatron"
    if workload.profile == "deepspeed" and (parallel.zero or parallel.state_shards > 1):
        return "deepspeed"
    if parallel.zero == 3 and parallel.offload in ("none", "parameters"):
        return "fsdp"
    return "deepspeed" if parallel.zero else "ddp"


def is_sharded(workload: Training) -> bool:
    """Return whether more than plain replicas run `workload`."""
    return sharder_of(workload) != "ddp"


def own_work(workload: Training | Inference) -> Training | Inference:
    """Return what one card does of `workload`, as if it were alone: its share of each sequence.

    Where replicas share parameters or states, autocast is left to what shares them: everything is in 16 bits, and the
    gradients of one pass are there.
    """
    cards = workload.parallel.context
    if isinstance(workload, Training):
        length = ceil_div(workload.sequence_length or 1, cards)
        shared = _in_sixteen_bits(workload) if is_sharded(workload) else {}
        return workload.evolve(**shared, sequence_length=length, parallel=ALONE, gpus=())
    return workload.evolve(
        prompt_length=ceil_div(workload.prompt_length or 1, cards),
        context_length=ceil_div(workload.context_length or 1, cards),
        parallel=ALONE,
        gpus=(),
    )


def _in_sixteen_bits(workload: Training) -> dict[str, object]:
    if workload.adapts or not autocasts(workload.compute) or workload.weights != "fp32":
        return {"gradient_accumulation": 1}
    sixteen = arithmetic(workload.compute)
    return {"compute": "fp8" if workload.compute == "fp8" else sixteen, "weights": sixteen, "gradient_accumulation": 1}
