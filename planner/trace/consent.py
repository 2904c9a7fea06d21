"""User files that a trace runs, and a digest of their contents for asking consent once per version."""

import hashlib
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from planner.errors import TraceError
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
