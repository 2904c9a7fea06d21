"""One rank of a script that runs on several: its environment, its process group and its replicas."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch.distributed as dist
from torch import multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from planner.trace.launcher import launcher_environment
from planner.trace.request import Target
from planner.trace.worker.building.distribution import one_of_ranks, reduced_bucket_future
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger


@contextmanager
def launched_rank(target: Target, ledger: AllocationLedger, add_note: Callable[[str], None]) -> Iterator[None]:
    """Run the script as the first of its ranks; the process group that it starts sends nothing."""
    original_init: Any = dist.init_process_group
    original_replica: Any = DistributedDataParallel.__init__

    def init_process_group(
        backend: str | None = None,  # the other ranks are not there, whatever connects them
        init_method: str | None = None,
        timeout: object = None,
        world_size: int = -1,
        rank: int = -1,
        **_kwargs: object,
    ) -> None:
        ranks = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", "1"))
        number = rank if rank >= 0 else int(os.environ.get("RANK", "0"))
        original_init("fake", rank=number, world_size=ranks, store=FakeStore())

    def init_replica(replica: Any, module: Any, *_args: Any, **kwargs: Any) -> None:
        options = {name: value for name, value in kwargs.items() if name not in ("device_ids", "output_device")}
        original_replica(replica, module, **options)
        # The fake ranks return no sum; an in-place all-reduce would leave its result in the bucket.
        replica.register_comm_hook(None, reduced_bucket_future)

    def spawn(fn: Callable[..., object], args: tuple[object, ...] = (), nprocs: int = 1, *_: Any, **__: Any) -> None:
        add_note(f"One of {nprocs:,} processes is traced; the others are not started.")
        fn(0, *args)

    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, launcher_environment(target)))
        stack.enter_context(patched_attributes(dist, init_process_group=init_process_group))
        stack.enter_context(patched_attributes(multiprocessing, spawn=spawn))
        stack.enter_context(patched_attributes(DistributedDataParallel, __init__=init_replica))
        stack.enter_context(one_of_ranks(ledger))
        try:
            yield
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
