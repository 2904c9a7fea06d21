"""One rank of several: a process group that only pretends, and modules that are replicated or sharded over it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

from planner.trace.worker.ledger import Ledger


@contextmanager
def fake_ranks(ranks: int, ledger: Ledger) -> Iterator[None]:
    """Be rank 0 of `ranks`, none of which exist, while `ledger` keeps the books."""
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    try:
        with ExitStack() as stack:
            stack.enter_context(_booking_resizes(ledger))
            stack.enter_context(_planning_unwatched(ledger))
            stack.enter_context(_without_agreement())
            yield
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

    with ExitStack() as stack:
        for name in ("_propagate_tensor_meta_non_cached",):
            original = getattr(ShardingPropagator, name)

            def unwatched(*args: Any, _original: Any = original, **kwargs: Any) -> Any:
                with ledger.unwatched():
                    return _original(*args, **kwargs)

            stack.enter_context(patch.object(ShardingPropagator, name, unwatched))
        yield


@contextmanager
def _without_agreement() -> Iterator[None]:
    """Skip what replicas compare before they start: there is nobody to agree with."""
    place = "torch.nn.parallel.distributed."
    with ExitStack() as stack:
        for name in ("_verify_param_shape_across_processes", "_sync_module_states"):
            stack.enter_context(patch(place + name, lambda *_args, **_kwargs: None))
        # Buckets would be made anew in the order in which gradients arrived: as many bytes, once replicas have agreed.
        stack.enter_context(patch.object(dist.Reducer, "_rebuild_buckets", lambda _reducer: False))
        yield


def replicated(module: nn.Module) -> nn.Module:
    """Return `module` as one of the replicas that average their gradients."""
    replica = nn.parallel.DistributedDataParallel(module)
    # The pretended ranks return no sum; the bucket is what an all-reduce in place would leave.
    replica.register_comm_hook(None, _as_if_reduced)
    return replica


def _as_if_reduced(_state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future
