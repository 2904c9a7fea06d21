"""Running a script unchanged, as `__main__` of one rank that loads its own data, with its steps seen from outside."""

import builtins
import inspect
import io
import itertools
import os
import runpy
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.distributed import device_mesh, distributed_c10d
from torch.nn.modules import module as module_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.weak import WeakIdKeyDictionary

from planner.errors import TraceError
from planner.trace.launcher import launcher_environment, launcher_notes
from planner.trace.request import Target, TraceRequest
from planner.trace.user_code import find_trace_candidates, user_files
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.distribution import one_of_ranks, reduced_bucket_future
from planner.trace.worker.ledger import AllocationLedger
from planner.trace.worker.observer import RunObserver, tensors_in
from planner.trace.worker.optimizers import CurrentStep, watch_optimizers
from planner.trace.worker.running import label_gradients
from planner.trace.worker.script.evaluation import EvaluationLoops
from planner.trace.worker.script.files import scratch_files
from planner.trace.worker.script.host import host_and_card
from planner.trace.worker.script.weights import checkpoints_without_data, refused_downloads, weights_by_name

_MOST_STEPS_OF_ONE: Final = 16
"""Steps of one optimizer, per requested step, within which every other steps too: GANs train one part more often.

As many backward passes count as a step where no optimizer was made, as in a script that changes its weights by hand.
"""


class EndOfScript(BaseException):  # nothing went wrong
    """Raised when the last traced step is over, and again at each operator of a script that goes on after it."""


class ScriptModules:
    """The roots of the modules that a script calls, by name, as long as they live."""

    def __init__(self) -> None:
        # By identity: a metric of torchmetrics is a module of which a comparison makes another.
        self._parents = WeakIdKeyDictionary()
        self._names = WeakIdKeyDictionary()
        self.calls: list[tuple[int, bool]] = []
        """Outermost calls so far: the identity of the module, and whether it was in training mode."""

    def note_parent(self, parent: nn.Module, _name: str, child: nn.Module | None) -> None:
        """Note that `child` was made a part of `parent`."""
        if child is not None:
            self._parents[child] = weakref.ref(parent)

    def root_of(self, module: nn.Module) -> nn.Module:
        """Return the outermost module that `module` is a part of."""
        seen, parent = set[int](), module
        while parent is not None and id(parent) not in seen:
            module = parent
            seen.add(id(module))
            parent = self._parents.get(module, lambda: None)()
        return module

    def add(self, root: nn.Module) -> str | None:
        """Return a new name for a root, from its class; None if the root has one already."""
        if root in self._names:
            return None
        title = type(root).__name__
        taken = set(self._names.values())
        names = itertools.chain((title,), (f"{title} {number}" for number in itertools.count(2)))
        name = self._names[root] = next(name for name in names if name not in taken)
        return name

    def named(self) -> dict[str, nn.Module]:
        """Return the roots by name, in the order in which they were called first."""
        return {name: root for root, name in self._names.items()}


class ScriptSteps:
    """Counter of a script's optimizer steps; a step of the script is one of every optimizer."""

    def __init__(self, steps: int, on_end: Callable[[], None]) -> None:
        self.current = CurrentStep()
        self.is_training = False
        """Whether an optimizer took a step."""
        self._taken: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._most = steps * _MOST_STEPS_OF_ONE
        self.passes = 0
        """Backward passes of a script that has made no optimizer."""
        self._steps = steps
        self._on_end = on_end

    def has_optimizer(self) -> bool:
        """Return whether the script has an optimizer, so that it trains."""
        return bool(self._taken)

    def note_optimizer(self, optimizer: Optimizer) -> None:
        """Note a new optimizer."""
        self._taken[optimizer] = 0

    def note_step(self, optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
        """Count a step, and end the script after the last one."""
        self.is_training = True
        self._taken[optimizer] = self._taken.get(optimizer, 0) + 1
        self.current.number = min(self._taken.values())
        if self.current.number >= self._steps or self._taken[optimizer] >= self._most:
            self._end()

    def note_backward(self) -> None:
        """Count a backward pass, and end a script that has made no optimizer after many."""
        if not self.has_optimizer() and not self.is_training:
            self.passes += 1
            if self.passes >= self._most:
                self._end()

    def _end(self) -> None:
        self._on_end()
        raise EndOfScript


@contextmanager
def watched_steps(steps: ScriptSteps, modules: ScriptModules, watcher: RunObserver) -> Iterator[None]:
    """Report the phases, tensors and modules of a script to `watcher`, and count its optimizer steps."""
    watcher.begin_phase("load", 0)
    with ExitStack() as stack:
        stack.enter_context(watch_optimizers(watcher, steps.current))
        stack.callback(register_optimizer_step_post_hook(steps.note_step).remove)
        stack.enter_context(patched_attributes(Optimizer, __init__=_noted_init(Optimizer.__init__, steps)))
        stack.enter_context(_observed_backward(watcher, steps))
        calls = _OutermostCalls(modules, watcher, steps.current)
        for hook in (
            module_hooks.register_module_module_registration_hook(modules.note_parent),
            module_hooks.register_module_forward_pre_hook(calls.enter),
            module_hooks.register_module_forward_hook(calls.leave, always_call=True),
        ):
            stack.callback(hook.remove)
        stack.enter_context(_labeled_batches(watcher))
        yield


class _OutermostCalls:
    """Phases by outermost module calls: forward within them, loss after them. The backward pass has its own calls."""

    def __init__(self, modules: ScriptModules, watcher: RunObserver, step: CurrentStep) -> None:
        self._modules, self._watcher, self._step = modules, watcher, step
        self._depth = 0

    def enter(self, module: nn.Module, inputs: object) -> None:
        """Note that a module's forward pass begins."""
        self._depth += 1
        if self._depth > 1 or _in_backward():
            return
        root = self._modules.root_of(module)
        if not (_has_tensors(module) or _has_tensors(root)):
            return  # A loss, or a conversion of inputs.
        self._modules.calls.append((id(module), module.training))
        name = self._modules.add(root)
        if name is not None:
            self._watcher.register_modules({name: root})
            self._watcher.label(root.parameters(), "parameters")
            self._watcher.label(root.buffers(), "buffers")
            label_gradients(root, self._watcher)
        self._watcher.begin_phase("forward", self._step.number)

    def leave(self, _module: nn.Module, _inputs: object, _output: object) -> None:
        """Note that a module's forward pass ends."""
        self._depth = max(self._depth - 1, 0)
        if not self._depth and not _in_backward():
            self._watcher.begin_phase("loss", self._step.number)


def _has_tensors(module: nn.Module) -> bool:
    return next(itertools.chain(module.parameters(), module.buffers()), None) is not None


def _in_backward() -> bool:
    """Return whether autograd runs, as when a checkpointed module is called again."""
    return torch._C._current_graph_task_id() != -1


@contextmanager
def _observed_backward(watcher: RunObserver, steps: ScriptSteps) -> Iterator[None]:
    """Report backward passes to `watcher`, and count them; `Tensor.backward` runs through this function too."""
    original = torch.autograd.backward

    def observed(*args: Any, **kwargs: Any) -> None:
        watcher.begin_phase("backward", steps.current.number)
        original(*args, **kwargs)
        steps.note_backward()

    with patched_attributes(torch.autograd, backward=observed):
        yield


def _noted_init(original: Callable[..., None], steps: ScriptSteps) -> Callable[..., None]:
    """Return the constructor of optimizers that notes each new one."""

    def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(optimizer, *args, **kwargs)
        steps.note_optimizer(optimizer)

    return init


@contextmanager
def _labeled_batches(watcher: RunObserver) -> Iterator[None]:
    """Label the tensors that data loaders return as inputs."""
    original = _BaseDataLoaderIter.__next__

    def labeled(batches: Any) -> Any:
        batch = original(batches)
        watcher.label(tensors_in(batch), "inputs")
        return batch

    with patched_attributes(_BaseDataLoaderIter, __next__=labeled):
        yield


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
        # A device mesh starts the group itself if the script did not.
        for owner in (dist, distributed_c10d, device_mesh):
            stack.enter_context(patched_attributes(owner, init_process_group=init_process_group))
        stack.enter_context(patched_attributes(multiprocessing, spawn=spawn))
        stack.enter_context(_processes_of_one_kind(add_note))
        stack.enter_context(patched_attributes(DistributedDataParallel, __init__=init_replica))
        stack.enter_context(one_of_ranks(ledger))
        try:
            yield
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


_COMMUNICATION: Final = ("Connection", "PipeConnection", "Queue", "JoinableQueue", "SimpleQueue", "Event", "Barrier")
"""Classes of `multiprocessing` over which a process waits for another, as the workers of an environment do."""


@contextmanager
def _processes_of_one_kind(add_note: Callable[[str], None]) -> Iterator[None]:
    """Run the first process of each function here, as it may train, and no other; those that wait for others start."""
    original_start, original_join = BaseProcess.start, BaseProcess.join
    run_here = weakref.WeakSet[Any]()
    functions = set[Any]()

    def start(process: Any) -> None:
        arguments = (*process._args, *process._kwargs.values())
        if any(type(value).__name__ in _COMMUNICATION for value in arguments):
            original_start(process)
            return
        run_here.add(process)
        function = process._target or type(process)
        if function not in functions:
            functions.add(function)
            process.run()
        else:
            add_note(
                f"Of several processes that run {function.__qualname__} one is traced; the others are not started."
            )

    def join(process: Any, timeout: float | None = None) -> None:
        if process not in run_here:
            original_join(process, timeout)

    with patched_attributes(BaseProcess, start=start, join=join):
        yield


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
            _terminal(),
            _notebook(target, watcher.add_note),
            scratch_files(watcher.add_note),
            checkpoints_without_data(),
            launched_rank(target, ledger, watcher.add_note),
            inline_loaders(ledger, watcher.add_note),
            weights_by_name(watcher.add_note),
            watched_steps(steps, modules, watcher),
            EvaluationLoops(ledger, modules.calls, steps.has_optimizer, watcher.add_note).watched(),
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
        return TraceError("load", f"{title} moves nothing to a GPU", "Trace it as it runs: with --device cpu.")
    return TraceError("load", f"{title} makes no tensor", _candidates_hint(request.target))


def _end_note(steps: ScriptSteps, wanted: int) -> str:
    """Return where the script ended."""
    if steps.passes and not steps.is_training:
        return (
            f"No optimizer of PyTorch was made: the script was traced over {steps.passes} backward passes, "
            "after which its weights may have been changed by hand."
        )
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


_TERMINAL_SIZE: Final = os.terminal_size((80, 24))


@contextmanager
def _terminal() -> Iterator[None]:
    """Answer how large the terminal is, as progress bars ask: a trace has none."""
    original_popen = os.popen

    def popen(command: str, *args: Any, **kwargs: Any) -> Any:
        if command.split() == ["stty", "size"]:
            return io.StringIO(f"{_TERMINAL_SIZE.lines} {_TERMINAL_SIZE.columns}\n")
        return original_popen(command, *args, **kwargs)

    with patched_attributes(os, popen=popen, get_terminal_size=lambda *_: _TERMINAL_SIZE):
        yield


class _NoNotebook:
    """The shell of a notebook that was exported as a script: it leaves out every magic command, and tells so."""

    def __init__(self, add_note: Callable[[str], None]) -> None:
        self._add_note = add_note

    def __getattr__(self, name: str) -> Callable[..., None]:
        def leave_out(*command: object, **_: object) -> None:
            self._add_note(f"A command of the notebook is left out: {' '.join(map(str, command)) or name}.")

        return leave_out


@contextmanager
def _notebook(target: Target, add_note: Callable[[str], None]) -> Iterator[None]:
    """Let an exported notebook call `get_ipython`; others may ask for it to find whether they run in one."""
    is_exported = target.kind == "script" and "get_ipython()" in Path(target.place).read_text(errors="ignore")
    names = {"get_ipython": lambda: _NoNotebook(add_note)} if is_exported else {}
    with patched_attributes(builtins, **names):
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
