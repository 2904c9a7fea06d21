"""Traceable classes and functions of a Python file, found by parsing it, never by running it."""

import ast
import warnings
from pathlib import Path
from typing import Final, Literal, NamedTuple

from planner.errors import ModelFileError

_LARGEST_BYTES: Final = 2**20
_MODULE_ENDS: Final = ("Module", "Model", "Sequential", "ModuleList", "ModuleDict")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Parameter(NamedTuple):
    """A parameter; `default` is its source text, None if a value is required."""

    name: str
    default: str | None


class TraceCandidate(NamedTuple):
    """A class or function that can be traced.

    `arguments` are those of the constructor or function, `inputs` those of `forward` if it is in the file.
    `brings_inputs` means that the function returns inputs along with the module.
    """

    name: str
    kind: Literal["class", "function"]
    line: int
    summary: str
    arguments: tuple[Parameter, ...]
    inputs: tuple[Parameter, ...]
    brings_inputs: bool


def find_trace_candidates(path: Path) -> tuple[TraceCandidate, ...]:
    """Return the traceable classes and functions of a file, in source order.

    Raises:
        ModelFileError: If it cannot be read, is too large or is not Python.
    """
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise ModelFileError(path, "is too large for a Python file", "Choose a file of at most 1 MiB.")
        tree = _parse(path.read_bytes())
    except OSError as error:
        raise ModelFileError(
            path, f"cannot be read ({error.strerror})", "Check the path and its permissions."
        ) from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ModelFileError(path, f"is not Python: {_problem(error)}", "Choose a Python file.") from error
    return tuple(_candidates(tree))


def _parse(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        # Warnings about the file's style are irrelevant when it is only parsed.
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _problem(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"line {error.lineno}, {error.msg}"
    return str(error) or type(error).__name__


def _candidates(tree: ast.Module) -> list[TraceCandidate]:
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _is_module(node, classes, frozenset()):
            found.append(_of_class(node, classes))
        elif isinstance(node, _Function) and not node.name.startswith("_"):
            found.append(_of_function(node))
    return found


def _is_module(node: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: frozenset[str]) -> bool:
    if _method(node, "forward") is not None:
        return True
    names = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    own = [classes[name] for name in names if name in classes and name not in seen]
    return any(name.endswith(_MODULE_ENDS) for name in names) or any(
        _is_module(base, classes, seen | {node.name}) for base in own
    )


def _of_class(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> TraceCandidate:
    return TraceCandidate(
        name=node.name,
        kind="class",
        line=node.lineno,
        summary=_summary(node),
        arguments=_parameters(_inherited(node, "__init__", classes))[1:],
        inputs=_parameters(_inherited(node, "forward", classes))[1:],
        brings_inputs=False,
    )


def _of_function(node: _Function) -> TraceCandidate:
    returned = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return)]
    return TraceCandidate(
        name=node.name,
        kind="function",
        line=node.lineno,
        summary=_summary(node),
        arguments=_parameters(node),
        inputs=(),
        brings_inputs=any(isinstance(value, ast.Tuple) for value in returned),
    )


def _inherited(node: ast.ClassDef, name: str, classes: dict[str, ast.ClassDef]) -> _Function | None:
    """Return the method `name` of the class, or of the first base class in the file that has it."""
    seen, waiting = set(), [node]
    while waiting:
        here = waiting.pop(0)
        found = _method(here, name)
        if found is not None:
            return found
        seen.add(here.name)
        names = (ast.unparse(base) for base in here.bases)
        waiting += [classes[base] for base in names if base in classes and base not in seen]
    return None


def _method(node: ast.ClassDef, name: str) -> _Function | None:
    return next((inner for inner in node.body if isinstance(inner, _Function) and inner.name == name), None)


def _parameters(node: _Function | None) -> tuple[Parameter, ...]:
    """Return the named parameters, in order; `*args` and `**kwargs` are left out."""
    if node is None:
        return ()
    places = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(places) - len(node.args.defaults))
    pairs = [
        *zip(places, [*defaults, *node.args.defaults], strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    return tuple(Parameter(place.arg, None if default is None else ast.unparse(default)) for place, default in pairs)


def _summary(node: ast.ClassDef | _Function) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]
