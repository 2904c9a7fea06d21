"""Running a script unchanged, as `__main__` of one rank that loads its own data, up to its last traced step."""

import inspect
import os
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from planner.errors import TraceError
from planner.trace.candidates import find_trace_candidates
from planner.trace.consent import user_files
from planner.trace.launcher import launcher_environment, launcher_notes
from planner.trace.request import Target, TraceRequest
from planner.trace.worker.building.distribution import one_of_ranks, reduced_bucket_future
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.script.checkpoints import checkpoints_without_data
from planner.trace.worker.script.files import scratch_files
from planner.trace.worker.script.host import host_and_card
from planner.trace.worker.script.steps import EndOfScript, ScriptModules, ScriptSteps, watched_steps
from planner.trace.worker.script.weights import refused_downloads, weights_by_name


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


_MAIN: Final = "__main__"
_ARGUMENTS_HINT: Final = "Check its arguments; in a shell, they follow -- after the options of the trace."


def run_script(request: TraceRequest, watcher: RunObserver, ledger: AllocationLedger) -> dict[str, nn.Module]:
    """Run the script of `request` until it has taken `request.steps` optimizer steps, and return its modules by name.

    Raises:
        TraceError: If the script ends with an error of its own, or makes no tensor.
    """
    target = request.target
    modules = ScriptModules()
    found: dict[str, nn.Module] = {}

    def end_record() -> None:
        found.update(modules.named())
        ledger.end(EndOfScript)

    steps = ScriptSteps(request.steps, end_record)
    for note in launcher_notes(target):
        watcher.add_note(note)
    with ExitStack() as stack:
        for context in (
            _command_line(target),
            scratch_files(watcher.add_note),
            checkpoints_without_data(),
            launched_rank(target, ledger, watcher.add_note),
            inline_loaders(ledger, watcher.add_note),
            weights_by_name(watcher.add_note),
            watched_steps(steps, modules, watcher),
            refused_downloads(),
        ):
            stack.enter_context(context)
        if request.device == "cuda":
            stack.enter_context(host_and_card(ledger, watcher))
        # The globals are held, as they are until a program ends.
        _globals = _run_to_end(target)
        if not found:
            end_record()
    if not ledger.events:
        raise _nothing_counted(request, made_on_host=bool(ledger.uncounted_bytes))
    watcher.add_note(_end_note(steps, request.steps))
    return found


def _nothing_counted(request: TraceRequest, *, made_on_host: bool) -> TraceError:
    """Return the error for a script that makes no tensor, or none on the card."""
    title = request.target.short_title
    if made_on_host:
        return TraceError("load", f"{title} moves nothing to a card", "Trace it as it runs: with --device cpu.")
    return TraceError("load", f"{title} makes no tensor", _candidates_hint(request.target))


def _end_note(steps: ScriptSteps, wanted: int) -> str:
    """Return where the script ended."""
    if not steps.is_training:
        return (
            "No optimizer step was found: the script ran to its end, as inference. Optimizers that are not PyTorch's, "
            "such as those of DeepSpeed's engine, are not seen."
        )
    if steps.current.number >= wanted:
        return f"The script was ended after {wanted} optimizer steps; what it does later is not counted."
    return f"The script ran to its end, in which every optimizer took {steps.current.number} steps."


def _run_to_end(target: Target) -> dict[str, object]:
    """Run the script until it ends, or is ended, and return its global variables if it ended by itself."""
    try:
        if target.kind == "script":
            return runpy.run_path(target.place, run_name=_MAIN)
        return runpy.run_module(target.place, run_name=_MAIN, alter_sys=True)
    except EndOfScript:
        return {}
    except ImportError as error:
        if user_files(TraceRequest(target=target)):
            raise
        hint = f"It is looked for in the working folder, {os.getcwd()}, and among the installed packages."
        raise TraceError("load", f"there is no module {target.place}", hint) from error
    except SystemExit as error:
        if error.code in (None, 0):
            return {}
        raise TraceError("load", f"the script ended with sys.exit({error.code!r})", _ARGUMENTS_HINT) from error


@contextmanager
def _command_line(target: Target) -> Iterator[None]:
    """Set the command line and the import path as Python does when it starts the script."""
    folder = str(Path(target.place).resolve().parent) if target.kind == "script" else os.getcwd()
    with patched_attributes(sys, argv=[target.place, *target.command_arguments], path=[folder, *sys.path]):
        yield


def _candidates_hint(target: Target) -> str:
    """Return how to name a part of the script's file, which may be a library of modules."""
    if target.kind != "script":
        return "Name what it runs, or trace a module: package.module:NAME."
    candidates = [f"{target.place}:{candidate.name}" for candidate in find_trace_candidates(Path(target.place))]
    return f"To trace a module in it, name it: {' or '.join(candidates)}." if candidates else "Check its arguments."


def run_for_real(request: TraceRequest) -> None:
    """Run the script of `request` with real tensors until it has taken its steps, for comparisons with its trace."""
    watcher, modules = RunObserver(), ScriptModules()
    with _command_line(request.target), watched_steps(ScriptSteps(request.steps, lambda: None), modules, watcher):
        _run_to_end(request.target)
