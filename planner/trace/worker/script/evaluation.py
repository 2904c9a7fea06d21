"""Evaluation loops of a script that trains, ended once their passes repeat: more of them cannot raise the peak."""

import ast
import builtins
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch

from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger

_SAME_PASSES: Final = 8
"""Passes that allocate and leave the same, after which a loop is ended."""

_WATCH: Final = "__evaluation_loop__"


class EvaluationLoops:
    """The loops of a script that run the same modules without gradients and in evaluation mode, pass after pass.

    `calls` are the script's outermost calls of modules so far: which module, and whether it was in training mode.

    **Assumes**: passes go on as they began, once eight in a row called the same modules, made the same allocations at
    the same lines, and left as many bytes and storages alive, in host memory too. A loop that keeps something, or whose
    shapes change, goes on.
    """

    def __init__(
        self,
        ledger: AllocationLedger,
        calls: list[tuple[int, bool]],
        is_training_script: Callable[[], bool],
        add_note: Callable[[str], None],
    ) -> None:
        self.ledger, self.calls, self.add_note = ledger, calls, add_note
        self._is_training_script = is_training_script

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the `for` loops of the script that is run within the context."""
        with patched_attributes(builtins, **{_WATCH: self._watch}), patched_attributes(runpy, compile=_compile):
            yield

    def _watch(self, values: Iterable[Any]) -> Iterable[Any]:
        """Return what a loop runs over, which ends early if the loop evaluates."""
        if torch.is_grad_enabled() or not self._is_training_script():
            return values
        frame = sys._getframe(1)
        return _Passes(values, self, f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")


class _Passes:
    """Iterator over the values of a loop; it holds none of them, as their memory is the loop's to free."""

    def __init__(self, values: Iterable[Any], loops: EvaluationLoops, place: str) -> None:
        self._values, self._loops, self._place = iter(values), loops, place
        self._begin = (0, 0)
        self._last: object = None
        self._passes = self._same = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._compare_pass()
        value = next(self._values)
        if self._same == _SAME_PASSES:
            self._loops.add_note(
                f"The evaluation loop at {self._place} was ended after {_SAME_PASSES} passes in a row that used "
                "the same memory; what later ones would do is not counted."
            )
            raise StopIteration
        self._passes += 1
        return value

    def _compare_pass(self) -> None:
        """Count how many passes in a row were the same."""
        ledger, calls = self._loops.ledger, self._loops.calls
        called = calls[self._begin[0] :]
        is_evaluation = called and not any(is_training for _, is_training in called)
        made = (called, *ledger.made_since(self._begin[1])) if self._passes and is_evaluation else None
        self._same = 0 if made is None else self._same + 1 if made == self._last else 1
        self._begin, self._last = (len(calls), ledger.count), made


class _WatchedLoops(ast.NodeTransformer):
    """Passes what a `for` loop runs over through a function; not in a generator, whose caller may expect more."""

    def visit_For(self, node: ast.For) -> ast.For:
        """Return the loop over the function's result."""
        self.generic_visit(node)
        if not any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)):
            call = ast.Call(func=ast.Name(id=_WATCH, ctx=ast.Load()), args=[node.iter], keywords=[])
            node.iter = ast.fix_missing_locations(ast.copy_location(call, node.iter))
        return node


def _compile(source: bytes, file: str, mode: str) -> Any:
    """Return the code of a script whose loops are watched; its lines keep their numbers."""
    tree = ast.parse(source, file, mode)
    return compile(_WatchedLoops().visit(tree), file, mode, dont_inherit=True)
