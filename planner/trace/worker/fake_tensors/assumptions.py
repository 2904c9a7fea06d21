"""Assumed results of operators whose output depends on tensor values that are unknown without a real run.

A decision is assumed where an operator turns unknown numbers into booleans or whole numbers: a mask, a condition, a
choice. From there its values are followed like known ones, so that what depends on them fits together.
"""

import linecache
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

import torch

from planner.trace.request import AssumedValue, AssumptionKind, UnknownValues
from planner.trace.worker.refusals import UntraceableError

_aten: Final = torch.ops.aten
MOST_ROUNDS: Final = 100
"""How often in a row a condition has the same result: a loop that ends by its data ends at the latest then."""
_LEAST_NUMBER: Final = 2.0**-100
_COMPARISONS: Final = frozenset(
    getattr(getattr(_aten, name), overload)
    for name in ("lt", "le", "gt", "ge", "eq", "ne")
    for overload in ("Scalar", "Tensor")
)
_LINE_FACTOR: Final = 0.99
_NOT_FINITE: Final = frozenset(getattr(_aten, name).default for name in ("isnan", "isinf", "isposinf", "isneginf"))
_CHOICES: Final = frozenset(
    ("argmax", "argmin", "max", "min", "median", "nanmedian", "mode", "kthvalue", "topk", "sort", "multinomial")
)
"""Operators that choose positions along a dimension, or anywhere."""
_ANYWHERE: Final = frozenset((_aten.argmax.default, _aten.argmin.default))
_CHECK: Final = re.compile(r"\s*(?:el)?if (?P<negated>not\b)?.*:\s*raise\b")
"""A condition under which an error is raised, on this line or the next one."""
_PASSED: Final = "A check of the data was assumed to pass"
_SELECTION_TEXTS: Final = {0.0: "nothing", 1.0: "everything"}


class Assumptions:
    """Assumes results of operators that depend on unknown values, and tells each assumption that decides something.

    `line` returns the user's current line and the line of the library that it calls, by which `given` values are found.

    **Assumes** that a mask selects everything, that choices are spread evenly, that values are different, that matrices
    have full rank, that a number is 1 at first and halves each time that its line runs, and that a condition or a whole
    number follows from such a number, or else is false or 0. With the `fewest`, a mask selects nothing and numbers are
    small; with the `most`, conditions are true; with both, everyone chooses the first or the last, but each is chosen
    twice. With the `slowest` and the `most`, numbers fall slowly. With `drawn` ones, random numbers stand for unknown
    weights and inputs, and only what is too large to be computed is assumed. No condition has the same result more than
    `MOST_ROUNDS` times in a row, what is asserted is true, what raises an error is not, and numbers are finite.
    """

    def __init__(
        self,
        note: Callable[[str], None],
        line: Callable[[], tuple[str, str]] = lambda: ("", ""),
        unknown_values: UnknownValues = "bounded",
        given: Iterable[AssumedValue] = (),
    ) -> None:
        self._note = note
        self._line = line
        self._unknown_values = unknown_values
        self.are_drawn = unknown_values == "drawn"
        """Whether random numbers stand for unknown ones; what follows from them is computed."""
        self._given = {assumed.name: assumed.value for assumed in given}
        self.conditions: dict[str, bool] = {}
        """Each assumed condition by its line in the library or the user's code, with its first result."""
        self._rounds: dict[str, int] = {}
        self._readings: dict[str, tuple[int, int]] = {}
        self._assumed_results: dict[Any, Callable[..., Any]] = {
            _aten._local_scalar_dense.default: self._assume_scalar,
            _aten.equal.default: self._assume_unequal,
            _aten.nonzero.default: self._assume_nonzero,
            _aten._unique2.default: self._assume_unique,
            _aten.unique_dim.default: self._assume_unique_dim,
            _aten.repeat_interleave.Tensor: self._assume_repeat,
            _aten.bincount.default: self._assume_bincount,
            _aten.linalg_lstsq.default: self._assume_least_squares,
            "torchvision.nms.default": self._assume_boxes_kept,
        }

    def note(self, texts: Iterable[str]) -> None:
        """Note assumptions on which something is decided."""
        for text in sorted(texts):
            self._note(text)

    @contextmanager
    def read_as_numbers(self) -> Iterator[None]:
        """Let `Tensor.item` return numbers that note what was assumed only when something is decided by them."""
        tensor_class: Any = torch.Tensor
        read = tensor_class.item

        def item(tensor: torch.Tensor) -> Any:
            note, texts = self._note, list[str]()
            self._note = texts.append
            try:
                value = read(tensor)
            finally:
                self._note = note
            if texts and type(value) is float:
                return AssumedNumber(value, lambda: self.note(texts))
            self.note(texts)
            return value

        tensor_class.item = item
        try:
            yield
        finally:
            tensor_class.item = read

    def decision(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        fake: torch.Tensor,
        value_of: Callable[[Any, float], Any],
    ) -> tuple[torch.Tensor, frozenset[str]]:
        """Return assumed values for `fake`, booleans or whole numbers from unknown ones, and what was assumed.

        `value_of` returns an argument's value, or a number if it is unknown.
        """
        if fake.dtype != torch.bool:
            return self._choice(func, args, kwargs, fake)
        shape = tuple(fake.shape)
        if func in _NOT_FINITE:
            return torch.zeros(shape, dtype=torch.bool, device="cpu"), frozenset()
        if fake.numel() != 1:
            fraction, text = self._selected_fraction()
            values = torch.arange(fake.numel(), device="cpu") < round(fraction * fake.numel())
            return values.reshape(shape), frozenset((text,))
        is_number = func in _COMPARISONS and all(
            value.numel() == 1 for value in args if isinstance(value, torch.Tensor)
        )
        number = self._next_number() if is_number else 0.0
        is_true = is_number and bool(func(*(value_of(value, number) for value in args)))
        result, text = self._condition(is_true)
        return torch.full(shape, result, device="cpu"), frozenset((text,))

    def assumed_result(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an assumed result for `func`, the result of which depends on unknown values.

        Raises:
            UntraceableError: If no result can be assumed for `func`.
        """
        try:
            # Operators of libraries that need not be installed are found by their names.
            assume = self._assumed_results.get(func) or self._assumed_results[str(func)]
        except KeyError:
            reason = (
                f"the result of {func._overloadpacket.__name__} depends on tensor values, which a trace does not have"
            )
            raise UntraceableError(reason, "Trace a part of the network that does not depend on them.") from None
        return assume(*args, **kwargs)

    def _given_value(self, kind: AssumptionKind) -> float | None:
        """Return the value that the user gave for the current line, else for this kind of assumption."""
        lines = self._line()
        by_line = (value for name, value in self._given.items() if ":" in name and any(map(_names(name), lines)))
        return next(by_line, self._given.get(kind))

    def _text(self, text: str) -> str:
        """Return a sentence on an assumption with the user's current line."""
        user_line, _ = self._line()
        return f"{text} ({user_line})." if user_line else f"{text}."

    def _next_number(self) -> float:
        """Return the number that is assumed for the current reading of the current line."""
        given = self._given_value("number")
        if given is not None:
            return given
        _, line = self._line()
        order, reading = self._readings.get(line, (len(self._readings), -1))
        reading += 1
        self._readings[line] = order, reading
        if self._unknown_values == "fewest":
            return _LEAST_NUMBER
        is_slow = self._unknown_values in ("most", "slowest") and reading < MOST_ROUNDS
        number = 1 / (1 + reading) if is_slow else 0.5**reading
        # Numbers from different lines differ, as losses do that are compared.
        return float(max(number * _LINE_FACTOR**order, _LEAST_NUMBER))

    def _condition(self, is_true: bool) -> tuple[bool, str]:
        """Return the assumed result of a condition that is typically `is_true`, and what was assumed."""
        user_line, line = self._line()
        rounds = self._rounds.get(line, 0)
        given, longest = self._given_value("condition"), MOST_ROUNDS
        if given is not None:
            is_true, longest = given > 0, int(given) or MOST_ROUNDS
        elif _is_asserted(user_line) or _is_asserted(line):
            return True, self._text("A condition that depends on the data was assumed to be true")
        elif (passed := _passed_check(line)) is not None:
            return passed, self._text(_PASSED)
        elif self._unknown_values in ("fewest", "most"):
            is_true = self._unknown_values == "most"
        # Positive rounds count true results in a row, negative rounds false ones.
        if abs(rounds) >= longest and (rounds > 0) == is_true:
            is_true = not is_true
        self._rounds[line] = (max(rounds, 0) + 1) if is_true else (min(rounds, 0) - 1)
        first = self.conditions.setdefault(line, is_true)
        return is_true, self._text(
            f"A condition that depends on the data was assumed to be {str(first).lower()} at first"
        )

    def passed_check(self) -> bool | None:
        """Return the result with which the check of the data on the current line passes, and note it; else None."""
        passed = _passed_check(self._line()[1])
        if passed is not None:
            self._note(self._text(_PASSED))
        return passed

    def _selected_fraction(self) -> tuple[float, str]:
        """Return which fraction a mask is assumed to select, and what was assumed."""
        given = self._given_value("mask")
        if given is None:
            given = 0.0 if self._unknown_values == "fewest" else 1.0
        selection = _SELECTION_TEXTS.get(given, f"{given:.3g} of its elements")
        return given, self._text(f"A mask that depends on the data was assumed to select {selection}")

    def _choice(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], fake: torch.Tensor
    ) -> tuple[torch.Tensor, frozenset[str]]:
        """Return assumed positions along the dimension in which `func` chooses, or zeros."""
        if func._overloadpacket.__name__ not in _CHOICES:
            value, text = self._whole_number(is_converted=func is _aten._to_copy.default)
            return torch.full(tuple(fake.shape), value, dtype=fake.dtype, device="cpu"), frozenset((text,))
        arguments = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
        text = self._text("Choices that depend on the data were assumed to be spread evenly")
        source, dimension = args[0], arguments.get("dim", None if func in _ANYWHERE else -1)
        if dimension is None or fake.dim() < source.dim() or not source.dim():
            options = source.numel() if dimension is None or not source.dim() else source.shape[dimension]
            positions = self._positions(fake.numel(), 1, options)
        else:
            moved = fake.movedim(dimension, -1).shape
            positions = self._positions(fake.numel() // max(moved[-1], 1), moved[-1], source.shape[dimension])
            positions = positions.reshape(tuple(moved)).movedim(-1, dimension)
        return positions.reshape(tuple(fake.shape)), frozenset((text,))

    def _whole_number(self, is_converted: bool) -> tuple[int, str]:
        """Return an assumed whole number, which may be converted from a number that is assumed to be 1."""
        given = self._given_value("integer")
        if given is None:
            # Whole numbers select: 0 is valid wherever there is anything to select from.
            given = float(is_converted and self._unknown_values != "fewest")
        return int(given), self._text(f"A whole number that depends on the data was assumed to be {int(given)}")

    def _positions(self, rows: int, width: int, options: int) -> torch.Tensor:
        """Return `width` assumed positions among `options` for each of `rows`."""
        options = max(options, 1)
        columns = torch.arange(width, device="cpu")
        even = (torch.arange(rows, device="cpu").unsqueeze(1) * width + columns) % options
        given = self._given_value("choice")
        if given is not None:
            return (columns + int(given)).expand(rows, width) % options
        if self._unknown_values in ("fewest", "most"):
            first = 0 if self._unknown_values == "fewest" else options - width
            # Kernels treat a single row apart.
            even[2 * -(-options // max(width, 1)) :] = (columns + first) % options
        return even

    def _assume_scalar(self, tensor: torch.Tensor) -> bool | int | float:
        """Return an assumed number for a tensor of one element."""
        if tensor.dtype == torch.bool:
            result, text = self._condition(is_true=False)
            self._note(text)
            return result
        if tensor.is_floating_point() or tensor.is_complex():
            self._note(self._text("A number that depends on the data was assumed to be 1, and half as much each time"))
            return self._next_number()
        number, text = self._whole_number(is_converted=False)
        self._note(text)
        return number

    def _assume_unequal(self, _one: torch.Tensor, _other: torch.Tensor) -> bool:
        """Return False for whether two tensors are equal."""
        result, text = self._condition(is_true=False)
        self._note(text)
        return result

    def _selected_count(self, mask: torch.Tensor) -> int:
        """Return how many elements a mask is assumed to select."""
        fraction, text = self._selected_fraction()
        self._note(text)
        return round(mask.numel() * fraction)

    def _assume_nonzero(self, mask: torch.Tensor) -> torch.Tensor:
        """Return assumed indices of the elements that a mask selects."""
        # Column by column, as the kernels store the result.
        return torch.empty((mask.dim(), self._selected_count(mask)), dtype=torch.int64).t()

    def _assume_boxes_kept(self, boxes: torch.Tensor, _scores: torch.Tensor, _overlap: float) -> torch.Tensor:
        """Return assumed indices of boxes that no other box suppresses, as if a mask selected them."""
        return torch.empty((self._selected_count(boxes[:, 0]),), dtype=torch.int64)

    def note_longest_lengths(self) -> None:
        """Note that unknown lengths are assumed to be the longest possible."""
        self._note(self._text("Lengths that depend on the data were assumed to be the longest possible"))

    def _assume_unique(
        self, tensor: torch.Tensor, _sorted: bool = True, inverse: bool = False, counts: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """Return assumed results of `unique`, as if all values were different."""
        distinct = self.distinct_count(tensor.numel())
        return (
            torch.empty((distinct,), dtype=tensor.dtype),
            torch.empty(tensor.shape if inverse else (0,), dtype=torch.int64),
            torch.empty((distinct if counts else 0,), dtype=torch.int64),
        )

    def _assume_unique_dim(
        self, tensor: torch.Tensor, dim: int, _sorted: bool = True, inverse: bool = False, counts: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """Return assumed results of `unique` along a dimension, as if all slices were different."""
        size = tensor.shape[dim]
        distinct = self.distinct_count(size)
        shape = [distinct if place == dim % tensor.dim() else length for place, length in enumerate(tensor.shape)]
        return (
            torch.empty(shape, dtype=tensor.dtype),
            torch.empty((size if inverse else 0,), dtype=torch.int64),
            torch.empty((distinct if counts else 0,), dtype=torch.int64),
        )

    def distinct_count(self, count: int) -> int:
        """Return how many of `count` values are assumed to be different."""
        self._note(self._text("Values that depend on the data were assumed to be all different"))
        given = self._given_value("distinct")
        if given is None:
            given = 0.0 if self._unknown_values == "fewest" else 1.0
        return max(round(given * count), min(count, 1))

    def _assume_repeat(self, repeats: torch.Tensor, *, output_size: int | None = None) -> torch.Tensor:
        """Return assumed indices of `repeat_interleave`, as if each element occurred once."""
        if output_size is None:
            self._note(
                self._text("How often elements are repeated depends on the data: each was assumed to occur once")
            )
        return torch.empty((repeats.numel() if output_size is None else output_size,), dtype=torch.int64)

    def _assume_bincount(
        self, tensor: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
    ) -> torch.Tensor:
        """Return assumed counts of `bincount`, as if the largest value were the smallest possible."""
        self._note(self._text("The largest counted value depends on the data: the smallest possible was assumed"))
        return torch.empty((max(minlength, 1),), dtype=torch.int64 if weights is None else weights.dtype)

    def _assume_least_squares(
        self, matrix: torch.Tensor, wanted: torch.Tensor, _cutoff: float | None = None, *, driver: str | None = None
    ) -> tuple[torch.Tensor, ...]:
        """Return assumed results of a least-squares problem, as if its matrix had full rank.

        **Source**: `linalg_lstsq_out` in aten/src/ATen/native/BatchLinearAlgebra.cpp.
        """
        self._note(self._text("A matrix that depends on the data was assumed to have full rank"))
        driver = driver or ("gels" if matrix.is_cuda else "gelsy")
        rows, columns = matrix.shape[-2:]
        is_vector = wanted.dim() == 1 or wanted.shape == matrix.shape[:-1]
        batch = torch.broadcast_shapes(matrix.shape[:-2], wanted.shape[: -1 if is_vector else -2])
        sides = () if is_vector else wanted.shape[-1:]
        real = matrix.dtype.to_real()
        solution = torch.empty((*batch, max(rows, columns), *sides), dtype=matrix.dtype)
        has_residuals, has_values = rows > columns and driver != "gelsy", driver in ("gelsd", "gelss")
        return (
            solution.narrow(len(batch), 0, columns),
            torch.empty((*batch, *sides) if has_residuals else (0,), dtype=real),
            torch.empty((0,) if driver == "gels" else matrix.shape[:-2], dtype=torch.int64),
            torch.empty((*matrix.shape[:-2], min(rows, columns)) if has_values else (0,), dtype=real),
        )


def _names(name: str) -> Callable[[str], bool]:
    """Return a function that tells whether a line, `/path/file.py:42`, is the one that the user wrote as `name`."""
    return lambda line: line == name or line.endswith((f"/{name}", f"\\{name}"))


def _is_asserted(line: str) -> bool:
    """Return whether the source line, `/path/file.py:42`, asserts what it reads."""
    file, _, number = line.rpartition(":")
    return "assert" in linecache.getline(file, int(number or 0))


def _passed_check(line: str) -> bool | None:
    """Return the result of the condition on a source line, `/path/file.py:42`, after which it does not raise an error.

    None if an error is not what follows the condition.
    """
    file, _, number = line.rpartition(":")
    found = _CHECK.match("".join(linecache.getline(file, int(number or 0) + place) for place in (0, 1)))
    return None if found is None else found["negated"] is not None


class AssumedNumber(float):
    """An assumed number, which tells so when it is compared or converted: printing it and averaging decide nothing."""

    _note: Callable[[], None]

    def __new__(cls, value: float, note: Callable[[], None]) -> Self:
        """Return the number `value`."""
        number = super().__new__(cls, value)
        number._note = note
        return number

    def __reduce__(self) -> tuple[type[float], tuple[str]]:
        """Return how a copy is made, or what a file keeps: a plain number."""
        return float, (repr(self),)


def _deciding(name: str) -> Callable[..., Any]:
    """Return the method `name` of numbers, which tells what was assumed."""
    method = getattr(float, name)

    def decide(number: AssumedNumber, *others: Any) -> Any:
        number._note()
        return method(number, *others)

    return decide


def _calculating(name: str) -> Callable[..., Any]:
    """Return the method `name` of numbers, the result of which is an assumed number too."""
    method = getattr(float, name)

    def calculate(number: AssumedNumber, *others: Any) -> Any:
        result = method(number, *others)
        return AssumedNumber(result, number._note) if type(result) is float else result

    return calculate


for _name in ("lt", "le", "gt", "ge", "eq", "ne", "bool", "int", "round", "trunc", "floor", "ceil", "floordiv"):
    setattr(AssumedNumber, f"__{_name}__", _deciding(f"__{_name}__"))
for _name in ("add", "sub", "mul", "truediv", "pow", "radd", "rsub", "rmul", "rtruediv", "rpow", "neg", "abs"):
    setattr(AssumedNumber, f"__{_name}__", _calculating(f"__{_name}__"))
