"""One rank of several: a process group that only pretends, and a module that is replicated or sharded over it.

Nothing is launched and nothing is sent. What a rank holds follows from its own code: buckets of gradients, shards,
and the whole parameters of the units that run.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from planner.errors import TraceError
from planner.trace.request import Parallel
from planner.trace.worker.building.checkpointing import repeated
from planner.trace.worker.ledger import Ledger

_PLANNING: Final = "_propagate_tensor_meta_non_cached"

Distribute = Callable[[nn.Module], nn.Module]


@contextmanager
def fake_ranks(parallel: Parallel, ledger: Ledger) -> Iterator[Distribute]:
    """Be rank 0 of several that do not exist, and yield what spreads a module over them."""
    dist.init_process_group("fake", rank=0, world_size=parallel.ranks, store=FakeStore())
    mesh = init_device_mesh("cpu", (parallel.ranks,))
    try:
        with ExitStack() as stack:
            for context in (_booking_resizes(ledger), _planning_unwatched(ledger), _without_agreement()):
                stack.enter_context(context)
            yield _replicated if parallel.strategy == "ddp" else partial(_sharded, parallel=parallel, mesh=mesh)
    finally:
        dist.destroy_process_group()


@contextmanager
def _booking_resizes(ledger: Ledger) -> Iterator[None]:
    """Sharding frees its buffers by resizing storages to zero: book that."""
    original = torch.UntypedStorage.resize_

    def resize(storage: torch.UntypedStorage, size: int) -> Any:
        result = original(storage, size)
        ledger.resized(storage)
        return result

    with patch.object(torch.UntypedStorage, "resize_", resize):
        yield


@contextmanager
def _planning_unwatched(ledger: Ledger) -> Iterator[None]:
    """Sharded tensors find out their shapes by running operators on fake tensors, even in a real run."""
    from torch.distributed.tensor._sharding_prop import ShardingPropagator

    original = getattr(ShardingPropagator, _PLANNING)

    def unwatched(*args: Any, **kwargs: Any) -> Any:
        with ledger.unwatched():
            return original(*args, **kwargs)

    with patch.object(ShardingPropagator, _PLANNING, unwatched):
        yield


@contextmanager
def _without_agreement() -> Iterator[None]:
    """Skip what replicas compare before they start: there is nobody to agree with."""
    place = "torch.nn.parallel.distributed."
    with ExitStack() as stack:
        for name in ("_verify_param_shape_across_processes", "_sync_module_states"):
            stack.enter_context(patch(place + name, lambda *_args, **_kwargs: None))
        # Buckets would be made anew in the order in which gradients arrived: as many bytes, once replicas have agreed.
        stack.enter_context(patch(f"{place}dist.Reducer._rebuild_buckets", lambda _reducer: False))
        yield


def _replicated(module: nn.Module) -> nn.Module:
    """Return `module` as one of the replicas that average their gradients."""
    replica = nn.parallel.DistributedDataParallel(module)
    # The pretended ranks return no sum; the bucket is what an all-reduce in place would leave.
    replica.register_comm_hook(None, _as_if_reduced)
    return replica


def _as_if_reduced(_state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def _sharded(module: nn.Module, parallel: Parallel, mesh: DeviceMesh) -> nn.Module:
    """Return `module` with its parameters sharded, unit by unit.

    Raises:
        TraceError: If no module is of a class that is named as a unit.
    """
    from torch.distributed.fsdp import fully_shard

    for unit in _units(module, parallel.units):
        fully_shard(unit, mesh=mesh, reshard_after_forward=parallel.reshard_after_forward)
    fully_shard(module, mesh=mesh, reshard_after_forward=parallel.reshard_after_forward)
    return module


def _units(module: nn.Module, names: tuple[str, ...]) -> list[nn.Module]:
    if not names:
        return repeated(module)
    units = [inner for inner in module.modules() if type(inner).__name__ in names and inner is not module]
    if not units:
        classes = sorted({type(inner).__name__ for inner in module.modules()})
        raise TraceError("build", f"no module is a {' or '.join(names)}", f"Its modules are: {', '.join(classes)}.")
    return units
