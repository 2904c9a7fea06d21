"""The user's Python files that a trace runs: their digest for asking consent, and what of them can be traced."""

import ast
import hashlib
import os
import sys
import warnings
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Final, Literal, NamedTuple

from planner.errors import ModelFileError, TraceError
from planner.trace.request import Target, TraceRequest


def content_digest(request: TraceRequest) -> str | None:
    """Return the SHA-256 digest of the user's files that the trace would run; None if it would run none.

    Files that the user's files import are not included. For an import path without a readable file, its name is hashed.

    Raises:
        TraceError: If a named file cannot be read.
    """
    if not request.runs_user_code:
        return None
    digest = hashlib.sha256()
    for content in _file_contents(request):
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()


def user_files(request: TraceRequest) -> tuple[Path, ...]:
    """Return the absolute paths of the user's files named by `request`, each once.

    The files need not exist; an import path without a source file is left out.
    """
    folder = request.target.folder
    named_paths = [Path(os.path.abspath(os.path.join(folder, place))) for place in _named_files(request)]
    module_file = _file_of_package_target(request.target)
    return tuple(dict.fromkeys([*([module_file] if module_file else ()), *named_paths]))


def with_absolute_paths(request: TraceRequest) -> TraceRequest:
    """Return the request with absolute file paths, so that it is valid in any working directory."""
    target = request.target
    if target.has_file:
        target = target.evolve(place=os.path.abspath(os.path.join(target.folder, target.place)))
    if target.folder:
        target = target.evolve(folder=os.path.abspath(target.folder))
    return request.evolve(target=target, loss=_with_absolute_file(request.loss), step=_with_absolute_file(request.step))


def _file_of_package_target(target: Target) -> Path | None:
    """Return the source file of a package's module that is a target, None for other targets and without a file."""
    if target.kind == "program":
        return find_module_file(f"{target.place}.__main__", target.folder) or find_module_file(
            target.place, target.folder
        )
    return find_module_file(target.place) if target.kind == "import" else None


def find_module_file(name: str, folder: str = "") -> Path | None:
    """Return the source file of the module `name`, without running the module or its parent packages.

    It is looked for in the working `folder`, by default the current one, and then among the installed packages.
    """
    first, *inner = name.split(".")
    spec = PathFinder.find_spec(first, [os.path.abspath(folder)]) or _find_installed_spec(first)
    for part in inner:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations))
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    return origin if origin is not None and origin.is_file() else None


def _find_installed_spec(name: str) -> ModuleSpec | None:
    """Return the import spec of the top-level module `name`, or None, without importing it."""
    # Not PathFinder alone: editable installations add import finders of their own.
    specs = (finder.find_spec(name, None) for finder in sys.meta_path)
    return next((spec for spec in specs if spec is not None), None)


def _file_contents(request: TraceRequest) -> Iterator[bytes]:
    """Yield the content of each user file that the trace would run."""
    files = user_files(request)
    for file in files:
        try:
            yield file.read_bytes()
        except OSError as error:
            raise TraceError("load", f"{file}: {(error.strerror or str(error)).lower()}", "Check its path.") from error
    if request.target.kind in ("import", "program") and _file_of_package_target(request.target) is None:
        yield request.target.title.encode()


def _named_files(request: TraceRequest) -> Iterator[str]:
    """Yield the paths of the files that `request` names: target, loss and step."""
    if request.target.has_file:
        yield request.target.place
    for place in (request.loss, request.step):
        if place is not None and ":" in place:
            yield place.rpartition(":")[0]


def _with_absolute_file(place: str | None) -> str | None:
    """Return `place`, such as `losses.py:focal`, with an absolute file path."""
    if place is None or ":" not in place:
        return place
    file, _, name = place.rpartition(":")
    return f"{os.path.abspath(file)}:{name}"


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
