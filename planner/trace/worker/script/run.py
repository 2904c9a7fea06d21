"""Running a script unchanged, as `__main__`, up to its last traced step."""

import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from torch import nn

from planner.errors import TraceError
from planner.trace.candidates import find_trace_candidates
from planner.trace.consent import user_files
from planner.trace.launcher import launcher_notes
from planner.trace.request import Target, TraceRequest
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.script.checkpoints import checkpoints_without_data
from planner.trace.worker.script.downloads import refused_downloads
from planner.trace.worker.script.files import scratch_files
from planner.trace.worker.script.host import host_and_card
from planner.trace.worker.script.loaders import inline_loaders
from planner.trace.worker.script.ranks import launched_rank
from planner.trace.worker.script.steps import EndOfScript, ScriptModules, ScriptSteps, watched_steps
from planner.trace.worker.script.weights import weights_by_name

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
