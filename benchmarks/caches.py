"""What each cache of the core saves in the operations that other benchmarks time, in edits of plans, and in commands.

    python benchmarks/caches.py [--only OPERATIONS] [--caches NAMES]

Each operation runs in forks of one process, which has answered other questions of the same kind before: with all
caches, and without each of those whose values it finds again. Compared are the calls of functions of Python and C,
which do not depend on the load of the machine. Printed are, for each cache, the operation in which it saves most, and
how often that computes the value with and without it. What saves less than 2 % everywhere is not worth its line.
"""

import argparse
import cProfile
import functools
import gc
import io
import json
import os
import pkgutil
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, Final, NamedTuple

import cost_speed
import speed
from answer_cases import MODELS, grid_cases

import planner

_LONGEST_SECONDS: Final = 5
_INPUTS: Final = 6
_NOT_LOADED: Final = ("planner.gui", "planner.trace.worker", "planner.__main__")
_ESSENTIAL: Final = re.compile(r"base.Spec._value_hash|.*Catalog\._\w+_by_\w+")
"""Without these every operation takes minutes, or fails: what they hold is filled in by others."""
_COMMANDS: Final = (
    "fit meta-llama/Llama-3.1-8B --gpu rtx-4090 --json",
    "fit --help",
    "schema fit",
    "completion bash",
    "gpus rtx --where memory_gib>=24 --sort price",
    "cost meta-llama/Llama-3.1-8B --gpu h100-sxm5-80gb --hours-per-day 8 --tornado",
)


class Operation(NamedTuple):
    """An action on inputs that differ; those `before` are of the same kind and were answered earlier."""

    title: str
    action: Callable[[Any], object]
    before: Sequence[Any]
    inputs: Sequence[Any]

    def run(self, inputs: Sequence[Any]) -> None:
        """Do the action on each input; what it refuses counts as an answer."""
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            for value in inputs:
                with suppress(planner.PlannerError, SystemExit):
                    self.action(value)


class Cache(NamedTuple):
    """A cached function or property: its cache, what it computes, and the modules and classes that name it."""

    kept: Any
    bare: Callable[..., object]
    places: list[tuple[Any, str]]

    def replace(self, by: object) -> None:
        """Put `by` in its place, for the rest of this process."""
        for owner, name in self.places:
            setattr(owner, name, by)


class Saving(NamedTuple):
    """The share of an operation's calls that a cache saves, and how often its value is computed with and without it."""

    share: float
    operation: str
    kept: int
    bare: int


def find_caches() -> dict[str, Cache]:
    """Return the caches of all loaded modules of the core, by name; those inside of functions are not found."""
    kinds = (functools.cached_property, functools._lru_cache_wrapper)  # noqa: SLF001  # it has no public name
    found: dict[int, Cache] = {}
    for module in [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "planner"]:
        classes = [kind for kind in vars(module).values() if isinstance(kind, type)]
        for owner in (module, *(kind for kind in classes if kind.__module__ == module.__name__)):
            for name, kept in vars(owner).items():
                if isinstance(kept, kinds):
                    bare = kept.func if isinstance(kept, functools.cached_property) else kept.__wrapped__
                    if bare.__module__.startswith("planner."):
                        found.setdefault(id(kept), Cache(kept, bare, [])).places.append((owner, name))
    return {f"{one.bare.__module__}.{one.bare.__qualname__}".removeprefix("planner."): one for one in found.values()}


def timed_operations() -> Iterator[Operation]:
    """Yield the operations that the benchmarks of speed time, without running them."""
    given: list[tuple[Callable[[Any], object], Sequence[Any]]] = []
    titles: list[str] = []

    def collect(action: Callable[[Any], object], inputs: Sequence[Any]) -> tuple[float, float]:
        given.append((action, inputs))
        return 1.0, 1.0

    for benchmark in (speed, cost_speed):
        vars(benchmark).update(beside_loop=collect, print_beside=lambda title, *_: titles.append(title))
    for ask in (speed.print_warm, speed.print_times, speed.print_shared, speed.print_solved, speed.print_advised):
        ask()
    catalog = planner.load_catalog()
    for ask_all in (cost_speed.print_offers, cost_speed.print_plan, cost_speed.print_keystroke):
        ask_all(catalog, 8)
    for title, (action, inputs) in zip(titles, given, strict=True):
        half = min(_INPUTS, len(inputs) // 2)
        yield Operation(title.rpartition(" / a loop")[0], action, inputs[:half], inputs[half : half + _INPUTS])


def edits() -> Iterator[Operation]:
    """Yield for each program what the window does while a person edits one plan after the other: a larger batch."""
    catalog = planner.load_catalog()
    plans: dict[str, tuple[list[planner.Plan], list[planner.Plan]]] = {}
    for index in range(len(MODELS)):
        for case in islice(grid_cases(index), index % 5, None, 5):
            with suppress(planner.PlannerError, ValueError):
                plan = planner.Plan.model_validate(case.plan)
                workload = planner.evaluate(plan, catalog).plan.workload
                field = "batch" if isinstance(workload, planner.Inference) else "micro_batch"
                parts = plans.setdefault(f"edits of {workload.task}, {workload.profile or 'by default'}", ([], []))
                for more, part in zip((1, 2, 3), (*parts, parts[1]), strict=True):
                    larger = workload.evolve(**{field: getattr(workload, field) + more})
                    part.append(plan.evolve(workload=larger))
    for title, (before, inputs) in plans.items():
        yield Operation(title, lambda plan: planner.evaluate(plan, catalog).time, before, inputs[: 6 * _INPUTS])


def commands() -> Iterator[Operation]:
    """Yield whole commands in a process that has read nothing yet."""
    from planner.cli.main import main

    for words in _COMMANDS:
        yield Operation(f"gpu-planner {words}", lambda words: main(words.split()), (), (words,))


def in_fork(action: Callable[[], object]) -> Any:
    """Return what `action` returns in a fork of this process, None if it fails or takes too long."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, _LONGEST_SECONDS)
        with suppress(BaseException):  # whatever happens, the fork ends here
            os.write(writing, json.dumps(action()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def found_again(operation: Operation, caches: Mapping[str, Cache]) -> list[str]:
    """Return the names of the caches in which `operation` finds a value that is there already."""
    read: set[str] = set()
    hits: dict[str, int] = {}

    def counted(name: str, cache: Cache) -> property:
        def value(owner: Any) -> object:
            if cache.kept.attrname in vars(owner):
                read.add(name)
            return cache.kept.__get__(owner)

        return property(value)

    for name, cache in caches.items():
        if isinstance(cache.kept, functools.cached_property):
            cache.replace(counted(name, cache))
        else:
            hits[name] = cache.kept.cache_info().hits
    operation.run(operation.inputs)
    return sorted(read | {name for name, before in hits.items() if caches[name].kept.cache_info().hits > before})


def calls(operation: Operation, caches: Mapping[str, Cache], off: str | None = None) -> tuple[int, dict[str, int]]:
    """Return the calls during `operation` without the cache `off`, and how often the values of all are computed."""
    if off is not None:
        cache = caches[off]
        cache.replace(property(cache.bare) if isinstance(cache.kept, functools.cached_property) else cache.bare)
    profile = cProfile.Profile()
    profile.runcall(operation.run, operation.inputs)
    entries = profile.getstats()
    names = {cache.bare.__code__: name for name, cache in caches.items()}
    computed = {names[entry.code]: entry.callcount for entry in entries if entry.code in names}
    return sum(entry.callcount for entry in entries), computed


def measure(operation: Operation, caches: Mapping[str, Cache], savings: dict[str, list[Saving]]) -> None:
    """Add to `savings` what each cache saves in `operation`."""
    kept, computed = in_fork(lambda: calls(operation, caches))
    for name in in_fork(lambda: found_again(operation, caches)) or ():
        bare, more = in_fork(partial(calls, operation, caches, name)) or (float("inf"), {})
        saved = Saving(bare / kept - 1, operation.title, computed.get(name, 0), more.get(name, 0))
        savings.setdefault(name, []).append(saved)


def main() -> None:
    """Print a line for each cache, the most useful last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="operations whose titles this regular expression finds")
    parser.add_argument("--caches", default="", help="caches whose names this regular expression finds")
    arguments = parser.parse_args()
    savings: dict[str, list[Saving]] = {}
    with tempfile.TemporaryDirectory() as home:
        os.environ["GPU_PLANNER_HOME"] = home
        for module in pkgutil.walk_packages(planner.__path__, "planner."):
            if not module.name.startswith(_NOT_LOADED):
                import_module(module.name)
        caches = find_caches()
        measured = {
            name: cache
            for name, cache in caches.items()
            if re.search(arguments.caches, name) and not _ESSENTIAL.fullmatch(name)
        }
        makers = (timed_operations, *([edits] if re.search(arguments.only, "edits") else []))
        cold, warm = (
            [operation for operation in kind if re.search(arguments.only, operation.title)]
            for kind in (commands(), (operation for make in makers for operation in make()))
        )
        for operation in cold:
            measure(operation, measured, savings)
        for operation in warm:
            operation.run(operation.before)
        gc.freeze()
        for operation in warm:
            measure(operation, measured, savings)
    best = {name: max(found) for name, found in savings.items()}
    print(f"{'cache':64} {'saves':>8} {'computed':>13}  in")
    for name in sorted(measured, key=lambda name: best.get(name, Saving(0, "", 0, 0))):
        if name in best:
            share, title, kept, bare = best[name]
            print(f"{name:64} {share:>8.1%} {kept:>5} / {bare:>5}  {title[:48]}")
        else:
            print(f"{name:64} {'':>8} {'':>13}  none of these operations finds its value again")


if __name__ == "__main__":
    main()
