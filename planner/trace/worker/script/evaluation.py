"""Evaluation loops of a script that trains, shortened once their passes repeat: more cannot raise the peak."""

import ast
import builtins
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch

from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger
from planner.trace.worker.observer import contained_values
from planner.trace.worker.script.holdings import Holdings, holdings_of

_SAME_PASSES: Final = 8
"""Passes that allocate and leave the same, after which others over values of the same shapes are left out."""
_MOST_LEFT_OUT: Final = 1000
"""Values that are looked at for another shape: an iterator may have no end."""

_WATCH: Final = "__evaluation_loop__"
_END: Final = object()


class EvaluationLoops:
    """The loops of a script that run the same modules without gradients and in evaluation mode, pass after pass.

    `calls` are the script's outermost calls of modules so far: which module, and whether it was in training mode.

    **Assumes**: a pass goes like eight others in a row over a value of the same shapes, which called the same modules,
    made the same allocations at the same lines, left as many bytes and storages alive, in host memory too, and gathered
    nothing but a few numbers. A loop that keeps more goes on; so does one over an iterator that has a name, as the
    script may go on to read it.
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

    def _watch(self, values: Iterable[Any], has_name: bool) -> Iterable[Any]:
        """Return what a loop runs over, which leaves passes out if the loop evaluates."""
        if torch.is_grad_enabled() or not self._is_training_script() or (has_name and isinstance(values, Iterator)):
            return values
        frame = sys._getframe(1)
        return _Passes(values, self, f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")


class _Passes:
    """Iterator over the values of a loop; it holds none of them, as their memory is the loop's to free."""

    def __init__(self, values: Iterable[Any], loops: EvaluationLoops, place: str) -> None:
        self._values, self._loops, self._place = iter(values), loops, place
        self._range = values if isinstance(values, range) else None
        self._begin = (0, 0)
        self._last: object = None
        self._held: Holdings | None = None
        self._passes = self._same = 0
        self._form: tuple[object, ...] = ()
        self._repeating = set[tuple[object, ...]]()
        self._is_watched = True

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._is_watched:
            self._compare_pass(sys._getframe(1))
        value = self._next_other() if self._repeating else next(self._values)
        self._form = _form_of(value)
        self._passes += 1
        return value

    def _next_other(self) -> Any:
        """Return the next value whose pass may differ: one of another form, or the last one if it has none."""
        last = []
        for _ in range(_MOST_LEFT_OUT):
            value = next(self._values, _END)
            if value is _END:
                break
            form = _form_of(value)
            if form not in self._repeating:
                return value
            self._loops.add_note(
                f"The evaluation loop at {self._place} was shortened: after {_SAME_PASSES} passes in a row that used "
                "the same memory, others over data of the same shapes were left out."
            )
            if self._range is not None:
                value, self._values = self._range[-1], iter(())
            last = [] if form else [value]
            del value
        self._values = iter(())
        if not last:
            raise StopIteration
        return last[0]

    def _compare_pass(self, frame: FrameType) -> None:
        """Count how many passes in a row were the same."""
        ledger, calls = self._loops.ledger, self._loops.calls
        called = calls[self._begin[0] :]
        is_evaluation = called and not any(is_training for _, is_training in called)
        made = (called, *ledger.made_since(self._begin[1])) if self._passes and is_evaluation else None
        if made is None or made != self._last:
            self._same, self._held = int(made is not None), None
        else:
            held = holdings_of(frame)
            self._is_watched = held is not None and (self._held is None or not held.has_kept(self._held))
            self._same, self._held = self._same + 1, held
        if not self._is_watched:
            self._repeating.clear()
        elif self._same == _SAME_PASSES:
            self._repeating.add(self._form)
        self._begin, self._last = (len(calls), ledger.count), made


def _form_of(value: Any) -> tuple[object, ...]:
    """Return the shapes of the tensors, arrays and images in `value`; where there are none, its texts, as of paths."""
    shapes, texts, seen, waiting = list[object](), list[object](), set[int](), [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str | bytes):
            texts.append(inner)
        elif id(inner) not in seen:
            seen.add(id(inner))
            form = next(
                (form for name in ("shape", "size") if isinstance(form := getattr(inner, name, None), tuple)), None
            )
            if form is None:
                waiting += contained_values(inner)
            else:
                shapes.append((tuple(form), str(getattr(inner, "dtype", ""))))
    return tuple(shapes or texts)


class _WatchedLoops(ast.NodeTransformer):
    """Passes what a `for` loop runs over through a function; not in a generator, whose caller may expect more."""

    def visit_For(self, node: ast.For) -> ast.For:
        """Return the loop over the function's result."""
        self.generic_visit(node)
        if not any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)):
            has_name = ast.Constant(not isinstance(node.iter, ast.Call))
            call = ast.Call(func=ast.Name(id=_WATCH, ctx=ast.Load()), args=[node.iter, has_name], keywords=[])
            node.iter = ast.fix_missing_locations(ast.copy_location(call, node.iter))
        return node


def _compile(source: bytes, file: str, mode: str) -> Any:
    """Return the code of a script whose loops are watched; its lines keep their numbers."""
    tree = ast.parse(source, file, mode)
    return compile(_WatchedLoops().visit(tree), file, mode, dont_inherit=True)
