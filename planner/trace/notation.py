"""Parsing and formatting of inputs and arguments written as text.

Arguments are `width=64, bias=False`. Inputs are `x=8x3x224x224:float32`, `ids=4x512:int64<50257`,
`state=(8x128,8x128)`, `scale=0.5`:

- A tensor is its sizes with `x` between them, then `:` and its element type, by default float32; `8:float32` has one
  dimension, `:float32` none. `<50257` bounds the random values of integers.
- `( , )` is a tuple and `[ , ]` a list, of tensors, values and further tuples and lists.
- A number alone, `True`, `False`, `None` or a quoted string is that value.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Final, NoReturn

from pydantic import ValidationError

from planner.errors import SpecError
from planner.trace.request import (
    DTYPES,
    Argument,
    AssumedValue,
    Input,
    InputValue,
    ListInput,
    PlainInput,
    TensorInput,
)

_NAMED_VALUE: Final = re.compile(r"\s*(?:(?P<name>[^\W\d]\w*)\s*=(?!=))?(?P<value>.*)", re.DOTALL)
_TOKEN: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[()\[\],]|[^()\[\],'"]+|.""", re.DOTALL)
_TENSOR: Final = re.compile(
    r"(?P<shape>\d{1,18}(?:\s*[x×]\s*\d{1,18})*)?\s*(?::\s*(?P<dtype>\w+)\s*(?:<\s*(?P<high>\d{1,18}))?)?"
)
_CLOSING: Final = {"(": ")", "[": "]"}
_ALIASES: Final = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u8": "uint8",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}
"""Short names of element types: GPU Planner's own, and PyTorch's aliases."""

_CONSTANTS: Final = {"true": "True", "false": "False", "none": "None", "null": "None"}
"""Constants by their spellings in JSON and in lower case."""
_SYNTAX_ERRORS: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python's parser raises for a text that is no expression, is nested too deeply, or is too long."""

_MAX_DEPTH: Final = 20
_INPUT_HINT: Final = "Examples: x=8x3x224x224:float32, ids=4x512:int64 or state=(8x128,8x128)."


def parse_input(text: str) -> Input:
    """Parse one input of `forward`, such as `x=8x3x224x224:float32`.

    Raises:
        SpecError: If `text` is not a valid input.
    """
    match = _NAMED_VALUE.fullmatch(text)
    name, value = (match["name"] or "", match["value"]) if match else ("", text)
    tokens = [token for token in _TOKEN.findall(value) if not token.isspace()]
    return Input(name=name, value=_InputParser(text, tokens).parse())


def input_text(input_: Input) -> str:
    """Return the input as text that `parse_input` reads."""
    return f"{input_.name}={_value_text(input_.value)}" if input_.name else _value_text(input_.value)


class _InputParser:
    """Recursive-descent parser over the tokens of an input."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self._text = text
        self._tokens = tokens
        self._position = 0

    def parse(self) -> InputValue:
        """Return the value that all tokens together describe."""
        value = self._parse_value(0)
        if self._position < len(self._tokens):
            self._raise_invalid_input(f"{self._tokens[self._position].strip()!r} is unexpected")
        return value

    def _parse_value(self, depth: int) -> InputValue:
        token = self._next_token()
        if token not in _CLOSING:
            return self._parse_tensor_or_constant(token.strip())
        if depth == _MAX_DEPTH:
            self._raise_invalid_input(f"it is nested more than {_MAX_DEPTH} deep")
        items = tuple(self._parse_items(_CLOSING[token], depth + 1))
        return ListInput(kind="tuple" if token == "(" else "list", items=items)

    def _parse_items(self, closing: str, depth: int) -> Iterator[InputValue]:
        """Parse values separated by commas, up to the `closing` bracket."""
        while self._peek_token() != closing:
            yield self._parse_value(depth)
            if self._peek_token() != closing and self._next_token() != ",":
                self._raise_invalid_input(f"a comma or {closing} is missing")
        self._position += 1

    def _parse_tensor_or_constant(self, token: str) -> InputValue:
        tensor = _TENSOR.fullmatch(token)
        if tensor is not None and (tensor["dtype"] or not (tensor["shape"] or "").isdigit()):
            return self._parse_tensor(tensor)
        try:
            value = ast.literal_eval(_parse_expression(_CONSTANTS.get(token, token)))
        except _SYNTAX_ERRORS:
            self._raise_invalid_input(f"{token!r} is neither a shape nor a value")
        if value is not None and not isinstance(value, bool | int | float | str):
            self._raise_invalid_input(f"{token!r} is neither a shape nor a value")
        return PlainInput(value=value)

    def _parse_tensor(self, match: re.Match[str]) -> TensorInput:
        dtype_name = match["dtype"] or "float32"
        dtype = _ALIASES.get(dtype_name, dtype_name)
        if dtype not in DTYPES:
            self._raise_invalid_input(f"there is no element type {dtype_name!r}", f"Choose one of {', '.join(DTYPES)}.")
        if match["high"] is not None and int(match["high"]) < 1:
            self._raise_invalid_input("the upper bound of random integers must be at least 1")
        shape = tuple(int(size) for size in re.findall(r"\d+", match["shape"] or ""))
        high = None if match["high"] is None else int(match["high"])
        return TensorInput.model_validate({"shape": shape, "dtype": dtype, "high": high})

    def _peek_token(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _next_token(self) -> str:
        token = self._peek_token()
        if not token:
            self._raise_invalid_input("it is incomplete")
        self._position += 1
        return token

    def _raise_invalid_input(self, reason: str, hint: str = _INPUT_HINT) -> NoReturn:
        """Raise the error that the input text is not valid, with the reason."""
        raise SpecError("input", f"{self._text[:80]!r} is not valid: {reason}", hint)


def _value_text(value: InputValue) -> str:
    """Return an input's value as text that the parser reads."""
    if isinstance(value, TensorInput):
        bound = "" if value.high is None else f"<{value.high}"
        return f"{'x'.join(map(str, value.shape))}:{value.dtype}{bound}"
    if isinstance(value, PlainInput):
        return repr(value.value)
    items = ",".join(map(_value_text, value.items))
    return f"({items})" if value.kind == "tuple" else f"[{items}]"


def _parse_expression(text: str) -> ast.expr:
    """Return the syntax tree of a Python expression; Python's warnings about its style do not concern who typed it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body


_ASSUMED_HINT = "Example: mask=0.15, net.py:42=30."
_ARGUMENTS_HINT = "Example: width=64, bias=False."


def parse_arguments(text: str) -> tuple[Argument, ...]:
    """Parse named arguments such as `width=64, bias=False`, without evaluating any code.

    Raises:
        SpecError: If `text` is not a list of names with numbers, strings, booleans, None, or tuples of such values.
    """
    try:
        call = _parse_expression(f"f({text.strip()})")
    except _SYNTAX_ERRORS as error:
        raise SpecError("arguments", f"{text!r} is not valid", _ARGUMENTS_HINT) from error
    if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
        raise SpecError("arguments", "each argument needs its name", _ARGUMENTS_HINT)
    return tuple(_parse_argument(keyword) for keyword in call.keywords)


def arguments_text(arguments: tuple[Argument, ...]) -> str:
    """Return the arguments as text that `parse_arguments` reads."""
    return ", ".join(f"{argument.name}={argument.value!r}" for argument in arguments)


def _parse_argument(keyword: ast.keyword) -> Argument:
    try:
        value = ast.literal_eval(keyword.value)
        return Argument.model_validate(
            {"name": keyword.arg, "value": tuple(value) if isinstance(value, list) else value}
        )
    except (ValueError, ValidationError) as error:
        raise SpecError("arguments", f"the value of {keyword.arg or '**'} is not valid", _ARGUMENTS_HINT) from error


def parse_assumed_values(text: str) -> tuple[AssumedValue, ...]:
    """Parse values that only data has, such as `mask=0.15, net.py:42=30`.

    Raises:
        SpecError: If a part has another form, or names neither a source line nor a kind of values.
    """
    return tuple(_parse_assumed_value(part.strip()) for part in text.split(",") if part.strip())


def assumed_values_text(values: tuple[AssumedValue, ...]) -> str:
    """Return the values as text that `parse_assumed_values` reads."""
    return ", ".join(f"{assumed.name}={assumed.value:.15g}" for assumed in values)


def _parse_assumed_value(text: str) -> AssumedValue:
    name, equals, value = text.rpartition("=")
    if not (name and equals):
        raise SpecError("assume", f"{text!r} is not NAME=VALUE", _ASSUMED_HINT)
    try:
        return AssumedValue.model_validate({"name": name.strip(), "value": value.strip()})
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        raise SpecError("assume", problem.reason, problem.hint or _ASSUMED_HINT) from error
