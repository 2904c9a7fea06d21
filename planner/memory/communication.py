"""What the exchange of gradients between cards needs."""

from functools import lru_cache

from planner.memory.result import Part, Term
from planner.memory.terms import library, model, term
from planner.units import MIB

_DDP_SOURCE = "torch DistributedDataParallel: gradient_as_bucket_view is off by default"
_NCCL_SOURCE = "NVIDIA/nccl#964: 544 MB for 2 cards, 688 MB for more, on A100 with NVLink"


@lru_cache(maxsize=256)
def communication_term(gradient_bytes: int, replicas: int) -> Term | None:
    """Return what `replicas` cards hold to add their gradients up, or none for one card.

    **Formula**: the gradients once more, in buckets, and the communicator's buffers.

    **Assumes** PyTorch's DistributedDataParallel with its defaults; up to 512 MiB more for further channels.
    """
    if replicas < 2:
        return None
    buffers = 544 * 10**6 if replicas == 2 else 688 * 10**6
    return term(
        "communication",
        gradient_bytes + buffers,
        "G + N",
        (
            model("G", gradient_bytes, "bytes of the gradient buckets, a second copy of the gradients"),
            library("N", buffers, "bytes of the NCCL communicator"),
        ),
        f"{_DDP_SOURCE}; {_NCCL_SOURCE}",
        certainty="assumed",
        low_bytes=gradient_bytes,
        high_bytes=gradient_bytes + buffers + 512 * MIB,
        parts=(
            Part(name="gradient buckets", bytes=gradient_bytes, formula="G", source=_DDP_SOURCE),
            Part(name="NCCL communicator", bytes=buffers, formula="N", source=_NCCL_SOURCE),
        ),
    )
