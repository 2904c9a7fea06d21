"""One rank of several: a fake process group, and a module replicated (DDP) or sharded (FSDP) over it.

No process is launched and no data is sent. A rank's memory follows from its own code: gradient buckets, shards, and the
gathered parameters of the running units.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch._prims import rng_prims
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from planner.errors import TraceError
from planner.trace.request import TraceParallel
from planner.trace.worker.build import repeating_blocks
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger
from planner.trace.worker.script.host import changed_on_import

_SHAPE_INFERENCE: Final = "_propagate_tensor_meta_non_cached"

DistributeModule = Callable[[nn.Module], nn.Module]


@contextmanager
def fake_ranks(parallel: TraceParallel, ledger: AllocationLedger) -> Iterator[DistributeModule]:
    """Act as rank 0 of a fake process group, and yield the function that distributes a module over it."""
    dist.init_process_group("fake", rank=0, world_size=parallel.ranks, store=FakeStore())
    mesh = init_device_mesh("cpu", (parallel.ranks,))
    try:
        with one_of_ranks(ledger):
            yield (
                _replicated_module
                if parallel.strategy == "ddp"
                else partial(_sharded_module, parallel=parallel, mesh=mesh)
            )
    finally:
        dist.destroy_process_group()


@contextmanager
def one_of_ranks(ledger: AllocationLedger) -> Iterator[None]:
    """Let one rank run replicated and sharded modules without the others, and record what they resize."""
    with ExitStack() as stack:
        for context in (
            *(_recorded_resizes(ledger), _unrecorded_shape_inference(ledger), _random_shards(), _numbered_cards()),
            _without_replica_checks(),
        ):
            stack.enter_context(context)
        yield


@contextmanager
def _random_shards() -> Iterator[None]:
    """Run the operator that fills a rank's shard with its part of the random numbers of all."""
    operator: Any = getattr(rng_prims, "run_dtensor_rng_op", None)
    if operator is None:  # in versions of PyTorch that set the generator's state around the operator
        yield
        return

    def run(
        ledger: AllocationLedger, _start: int, _end: int, fill: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        with ledger:
            return fill(*args, **kwargs)

    operator.python_key_table[AllocationLedger] = run
    try:
        yield
    finally:
        del operator.python_key_table[AllocationLedger]


def _numbered_cards() -> AbstractContextManager[None]:
    """Let the first version of FSDP take a GPU's number, which it would ask the driver about."""

    def changed(module: Any) -> AbstractContextManager[None]:
        original = module.FullyShardedDataParallel.__init__

        def init(sharded: Any, *args: Any, device_id: Any = None, **kwargs: Any) -> None:
            device = torch.device("cuda", device_id) if isinstance(device_id, int) else device_id
            original(sharded, *args, device_id=device, **kwargs)

        return patched_attributes(module.FullyShardedDataParallel, __init__=init)

    return changed_on_import({"torch.distributed.fsdp.fully_sharded_data_parallel": changed})


@contextmanager
def _recorded_resizes(ledger: AllocationLedger) -> Iterator[None]:
    """Record storages that sharding frees by resizing them to zero."""
    original = torch.UntypedStorage.resize_

    def recorded_resize(storage: torch.UntypedStorage, size: int) -> Any:
        result = original(storage, size)
        ledger.record_resize(storage)
        return result

    with patch.object(torch.UntypedStorage, "resize_", recorded_resize):
        yield


@contextmanager
def _unrecorded_shape_inference(ledger: AllocationLedger) -> Iterator[None]:
    """Exclude the fake operators by which sharded tensors infer shapes, even in a real run."""
    from torch.distributed.tensor._sharding_prop import ShardingPropagator

    original = getattr(ShardingPropagator, _SHAPE_INFERENCE)

    def unrecorded_inference(*args: Any, **kwargs: Any) -> Any:
        with ledger.unrecorded():
            return original(*args, **kwargs)

    with patch.object(ShardingPropagator, _SHAPE_INFERENCE, unrecorded_inference):
        yield


@contextmanager
def _without_replica_checks() -> Iterator[None]:
    """Skip the consistency checks between replicas: there are no other ranks."""
    prefix = "torch.nn.parallel.distributed."
    with ExitStack() as stack:
        for name in ("_verify_param_shape_across_processes", "_sync_module_states"):
            stack.enter_context(patch(prefix + name, lambda *_args, **_kwargs: None))
        # Buckets would be rebuilt in the order in which gradients arrived; their total size would stay the same.
        stack.enter_context(patch(f"{prefix}dist.Reducer._rebuild_buckets", lambda _reducer: False))
        yield


def _replicated_module(module: nn.Module) -> nn.Module:
    """Return `module` as one of several replicas that average their gradients."""
    replica = nn.parallel.DistributedDataParallel(module)
    # The fake ranks return no sum; an in-place all-reduce would leave its result in the bucket.
    replica.register_comm_hook(None, reduced_bucket_future)
    return replica


def reduced_bucket_future(_state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Return a completed future with the bucket's own gradients, as if they had been averaged."""
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def _sharded_module(module: nn.Module, parallel: TraceParallel, mesh: DeviceMesh) -> nn.Module:
    """Return `module` with its parameters sharded, unit by unit.

    Raises:
        TraceError: If no module has the class of a named unit.
    """
    from torch.distributed.fsdp import fully_shard

    for unit in _sharded_units(module, parallel.units):
        fully_shard(unit, mesh=mesh, reshard_after_forward=parallel.reshard_after_forward)
    fully_shard(module, mesh=mesh, reshard_after_forward=parallel.reshard_after_forward)
    return module


def _sharded_units(module: nn.Module, names: tuple[str, ...]) -> list[nn.Module]:
    """Return the modules that are sharded individually: modules of the classes `names`, or repeating blocks."""
    if not names:
        return repeating_blocks(module)
    units = [inner for inner in module.modules() if type(inner).__name__ in names and inner is not module]
    if not units:
        classes = sorted({type(inner).__name__ for inner in module.modules()})
        raise TraceError("build", f"no module is a {' or '.join(names)}", f"Its modules are: {', '.join(classes)}.")
    return units
