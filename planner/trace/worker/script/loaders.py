"""Data loaders that load in the traced process itself, one batch at a time."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger

_WITHOUT_WORKERS: Final = {
    "num_workers": 0,
    "prefetch_factor": None,
    "persistent_workers": False,
    "multiprocessing_context": None,
    "timeout": 0,
    "pin_memory": False,
}


@contextmanager
def inline_loaders(ledger: AllocationLedger, add_note: Callable[[str], None]) -> Iterator[None]:
    """Start no worker processes and threads of data loaders; choose the samples with real random numbers."""
    original_init: Any = DataLoader.__init__
    signature = inspect.signature(original_init)
    original_iter, original_index = _BaseDataLoaderIter.__init__, _BaseDataLoaderIter._next_index

    def init(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs).arguments
        if given.get("num_workers"):
            add_note(f"{given['num_workers']} workers of a data loader are not started: batches are loaded inline.")
        original_init(**given | {name: value for name, value in _WITHOUT_WORKERS.items() if name in given})

    def start(batches: Any, *args: Any, **kwargs: Any) -> None:
        # Seeds and the order of samples are numbers that the script's tensors do not depend on.
        with ledger.real_tensors():
            original_iter(batches, *args, **kwargs)

    def next_index(batches: Any) -> Any:
        with ledger.real_tensors():
            return original_index(batches)

    with ExitStack() as stack:
        stack.enter_context(patched_attributes(DataLoader, __init__=init))
        stack.enter_context(patched_attributes(_BaseDataLoaderIter, __init__=start, _next_index=next_index))
        yield
