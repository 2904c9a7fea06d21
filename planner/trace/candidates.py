"""Traceable classes and functions of a Python file, and whether it is a script; the file is parsed, never run."""

import ast
import warnings
from pathlib import Path
from typing import Final, Literal, NamedTuple

from planner.errors import ModelFileError

_MAX_FILE_BYTES: Final = 2**20
_MODULE_NAME_ENDINGS: Final = ("Module", "Model", "Sequential", "ModuleList", "ModuleDict")
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_MAIN: Final = "__main__"
_BLOCK: Final = (ast.For, ast.While, ast.With)
_TRAINING_CALLS: Final = ("backward", "step", "fit")
"""Methods that a script calls to train, and a module's demonstration does not."""


class CandidateParameter(NamedTuple):
    """A parameter of a function; `default` is the default's source text, None if a value is required."""

    name: str
    default: str | None


class TraceCandidate(NamedTuple):
    """A class or function that can be traced.

    `arguments` are the parameters of the constructor or function, `inputs` those of `forward` if in the file.
    `returns_inputs` means that the function returns inputs along with the module.
    """

    name: str
    kind: Literal["class", "function"]
    line: int
    summary: str
    arguments: tuple[CandidateParameter, ...]
    inputs: tuple[CandidateParameter, ...]
    returns_inputs: bool


def find_trace_candidates(path: Path) -> tuple[TraceCandidate, ...]:
    """Return the traceable classes and functions in the file at `path`, in source order.

    Raises:
        ModelFileError: If the file cannot be read, is too large or is not Python.
    """
    return tuple(_trace_candidates(_parse_file(path)))


def runs_as_script(path: Path) -> bool:
    """Return whether the file at `path` is a script to run, rather than a collection of modules with a demonstration.

    Raises:
        ModelFileError: If the file cannot be read, is too large or is not Python.
    """
    tree = _parse_file(path)
    if not any(map(_is_run, tree.body)):
        return False
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    trains = any(isinstance(called, ast.Attribute) and called.attr in _TRAINING_CALLS for called in calls)
    return trains or not any(candidate.kind == "class" for candidate in _trace_candidates(tree))


def _is_run(statement: ast.stmt) -> bool:
    """Return whether a statement of a file does more than to define something."""
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return (
        is_call
        or isinstance(statement, _BLOCK)
        or (isinstance(statement, ast.If) and _MAIN in ast.dump(statement.test))
    )


def _parse_file(path: Path) -> ast.Module:
    """Return the parsed file, or raise a `ModelFileError`."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ModelFileError(path, "is too large for a Python file", "Choose a file of at most 1 MiB.")
        return _parse_source(path.read_bytes())
    except OSError as error:
        raise ModelFileError(
            path, f"cannot be read ({error.strerror})", "Check the path and its permissions."
        ) from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ModelFileError(path, f"is not Python: {_parse_error_text(error)}", "Choose a Python file.") from error


def _parse_source(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        # Warnings about the file's style are irrelevant when it is only parsed.
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _parse_error_text(error: BaseException) -> str:
    """Return why a file is not valid Python, with the line if known."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"line {error.lineno}, {error.msg}"
    return str(error) or type(error).__name__


def _trace_candidates(tree: ast.Module) -> list[TraceCandidate]:
    """Return the traceable classes and functions in a parsed file."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    candidates = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _is_module_class(node, classes, frozenset()):
            candidates.append(_class_candidate(node, classes))
        elif isinstance(node, _FunctionNode) and not node.name.startswith("_"):
            candidates.append(_function_candidate(node))
    return candidates


def _is_module_class(node: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: frozenset[str]) -> bool:
    """Return whether the class derives from `nn.Module`, also through base classes in the same file."""
    if _own_method(node, "forward") is not None:
        return True
    names = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    bases_in_file = [classes[name] for name in names if name in classes and name not in seen]
    return any(name.endswith(_MODULE_NAME_ENDINGS) for name in names) or any(
        _is_module_class(base, classes, seen | {node.name}) for base in bases_in_file
    )


def _class_candidate(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> TraceCandidate:
    return TraceCandidate(
        name=node.name,
        kind="class",
        line=node.lineno,
        summary=_docstring_summary(node),
        arguments=_named_parameters(_inherited_method(node, "__init__", classes))[1:],
        inputs=_named_parameters(_inherited_method(node, "forward", classes))[1:],
        returns_inputs=False,
    )


def _function_candidate(node: _FunctionNode) -> TraceCandidate:
    returned_values = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return)]
    return TraceCandidate(
        name=node.name,
        kind="function",
        line=node.lineno,
        summary=_docstring_summary(node),
        arguments=_named_parameters(node),
        inputs=(),
        returns_inputs=any(isinstance(value, ast.Tuple) for value in returned_values),
    )


def _inherited_method(node: ast.ClassDef, name: str, classes: dict[str, ast.ClassDef]) -> _FunctionNode | None:
    """Return the method `name` of the class, or of the first base class in the file that has it."""
    seen, queue = set(), [node]
    while queue:
        current = queue.pop(0)
        method = _own_method(current, name)
        if method is not None:
            return method
        seen.add(current.name)
        names = (ast.unparse(base) for base in current.bases)
        queue += [classes[base] for base in names if base in classes and base not in seen]
    return None


def _own_method(node: ast.ClassDef, name: str) -> _FunctionNode | None:
    """Return the method `name` that the class itself defines, or None."""
    return next((inner for inner in node.body if isinstance(inner, _FunctionNode) and inner.name == name), None)


def _named_parameters(node: _FunctionNode | None) -> tuple[CandidateParameter, ...]:
    """Return the named parameters, in order; `*args` and `**kwargs` are left out."""
    if node is None:
        return ()
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
    pairs = [
        *zip(positional, [*defaults, *node.args.defaults], strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    return tuple(
        CandidateParameter(place.arg, None if default is None else ast.unparse(default)) for place, default in pairs
    )


def _docstring_summary(node: ast.ClassDef | _FunctionNode) -> str:
    """Return the first line of the docstring, or an empty text."""
    return (ast.get_docstring(node) or "").partition("\n")[0]
