"""Inputs as people write them: `x=8x3x224x224:float32`, `ids=4x512:int64<32000`, `state=(8x128, 8x128)`, `flag=True`.

A tensor is its dimensions with an `x` between them (`scalar` has none), then a colon and its element type unless that
is float32; behind integers, `<` bounds their random values. Tuples stand in round brackets, lists in square ones. A
number that is no tensor has a decimal point or is written `int(3)`; texts stand in quotes.
"""

import ast
import re
from typing import Final, NamedTuple

from pydantic import ValidationError

from planner.errors import SpecError
from planner.trace.request import DTYPES, Input, InputValue, ListInput, PlainInput, TensorInput, Value

_HINT: Final = "Write it such as x=8x3x224x224:float32, or (8x128, 8x128) for a tuple."
_NAME: Final = re.compile(r"\s*([^\W\d]\w*)\s*=")
_TENSOR: Final = re.compile(
    r"(?P<shape>scalar|\d[\d_]*(?:\s*[x×*]\s*\d[\d_]*)*)"
    r"(?:\s*:\s*(?P<dtype>\w+))?(?:\s*<\s*(?P<high>\d[\d_]*))?(?![\w.])"
)
_INTEGER: Final = re.compile(r"int\(\s*(-?\d+)\s*\)")
_PLAIN: Final = re.compile(r"True|False|None|-?\d+\.\d*(?:e-?\d+)?|-?\d+e-?\d+|'[^']*'|\"[^\"]*\"")
_CLOSING: Final = {"(": ")", "[": "]"}
_SHORT: Final = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32"}
_DEEPEST: Final = 16


class _Read(NamedTuple):
    """A value and the place behind it."""

    value: InputValue
    end: int


def parse_input(text: str) -> Input:
    """Return the argument of `forward` that `text` describes, with its name if one stands before `=`.

    Raises:
        SpecError: If it is not understood; it says what is wrong.
    """
    named = _NAME.match(text)
    start = named.end() if named else 0
    read = _value(text, _skip(text, start), depth=0)
    rest = text[read.end :].strip()
    if rest:
        raise SpecError("input", f"{text!r} is not understood from {rest!r} on", _HINT)
    return Input(name=named[1] if named else "", value=read.value)


def input_text(given: Input) -> str:
    """Return an input as `parse_input` reads it."""
    return f"{given.name}={_text(given.value)}" if given.name else _text(given.value)


def _value(text: str, at: int, depth: int) -> _Read:
    if depth > _DEEPEST:
        raise SpecError("input", "is nested too deep", _HINT)
    if text[at : at + 1] in _CLOSING:
        return _items(text, at, depth)
    for pattern, read in ((_PLAIN, _plain), (_INTEGER, _integer), (_TENSOR, _tensor)):
        found = pattern.match(text, at)
        if found is not None:
            return _Read(read(found), found.end())
    raise SpecError("input", f"{text[at:] or text!r} is not a shape", _HINT)


def _items(text: str, at: int, depth: int) -> _Read:
    opening, items = text[at], []
    closing = _CLOSING[opening]
    at = _skip(text, at + 1)
    while text[at : at + 1] != closing:
        if at >= len(text):
            raise SpecError("input", f"{text!r} lacks a {closing}", _HINT)
        read = _value(text, at, depth + 1)
        items.append(read.value)
        at = _skip(text, read.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] not in (closing, ""):
            raise SpecError("input", f"a comma is missing before {text[at:]!r}", _HINT)
    return _Read(ListInput(kind="tuple" if opening == "(" else "list", items=tuple(items)), at + 1)


def _tensor(found: re.Match[str]) -> InputValue:
    shape = () if found["shape"] == "scalar" else tuple(map(int, re.split(r"\s*[x×*]\s*", found["shape"])))
    dtype = found["dtype"] or "float32"
    dtype = _SHORT.get(dtype, dtype)
    if dtype not in DTYPES:
        raise SpecError("input", f"{dtype!r} is no element type", f"Choose {', '.join(DTYPES)}.")
    high = int(found["high"]) if found["high"] else None
    try:
        return TensorInput.model_validate({"shape": shape, "dtype": dtype, "high": high})
    except ValidationError as error:
        raise SpecError("input", SpecError.from_validation(error).reason, _HINT) from error


def _integer(found: re.Match[str]) -> InputValue:
    return PlainInput(value=int(found[1]))


def _plain(found: re.Match[str]) -> InputValue:
    value: Value = ast.literal_eval(found[0])
    return PlainInput(value=value)


def _text(value: InputValue) -> str:
    if isinstance(value, TensorInput):
        shape = "x".join(map(str, value.shape)) or "scalar"
        return f"{shape}:{value.dtype}{f'<{value.high}' if value.high else ''}"
    if isinstance(value, ListInput):
        inner = ", ".join(map(_text, value.items))
        return f"({inner})" if value.kind == "tuple" else f"[{inner}]"
    plain = value.value
    return f"int({plain})" if isinstance(plain, int) and not isinstance(plain, bool) else repr(plain)


def _skip(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at
