"""Named arguments as people write them: `width=64, bias=False, sizes=(1, 2)`."""

import ast

from pydantic import ValidationError

from planner.errors import SpecError
from planner.trace.request import Argument

_EXAMPLE = "Write them such as width=64, bias=False."


def parse_arguments(text: str) -> tuple[Argument, ...]:
    """Return the arguments that `text` lists, without running anything.

    Raises:
        SpecError: If it is no list of names with numbers, texts, truth values, None, or tuples of these.
    """
    try:
        call = ast.parse(f"f({text.strip()})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpecError("arguments", f"{text!r} is not understood", _EXAMPLE) from error
    if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
        raise SpecError("arguments", "each argument needs its name", _EXAMPLE)
    return tuple(_argument(word) for word in call.keywords)


def arguments_text(arguments: tuple[Argument, ...]) -> str:
    """Return arguments as `parse_arguments` reads them."""
    return ", ".join(f"{argument.name}={argument.value!r}" for argument in arguments)


def _argument(word: ast.keyword) -> Argument:
    try:
        value = ast.literal_eval(word.value)
        return Argument.model_validate({"name": word.arg, "value": tuple(value) if isinstance(value, list) else value})
    except (ValueError, ValidationError) as error:
        raise SpecError("arguments", f"the value of {word.arg or '**'} is not understood", _EXAMPLE) from error
