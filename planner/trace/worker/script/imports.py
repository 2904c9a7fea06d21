"""Changes to a package that the script may import: made when it does, and no package is imported for them."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

ChangeModule = Callable[[Any], AbstractContextManager[Any]]
"""A function from a module to the context in which the module is changed."""


@contextmanager
def changed_on_import(changes: Mapping[str, ChangeModule]) -> Iterator[None]:
    """Change modules by name: those that are imported already at once, others right after their import."""
    with ExitStack() as stack:
        for name in changes.keys() & sys.modules.keys():
            stack.enter_context(changes[name](sys.modules[name]))
        finder = _ChangingFinder(changes, stack)
        sys.meta_path.insert(0, finder)
        stack.callback(sys.meta_path.remove, finder)
        yield


class _ChangingFinder(MetaPathFinder):
    """Finder whose modules are changed after they have run."""

    def __init__(self, changes: Mapping[str, ChangeModule], stack: ExitStack) -> None:
        self._changes = changes
        self._stack = stack

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that is to be changed, None for all others."""
        change = self._changes.get(fullname)
        spec = None if change is None else PathFinder.find_spec(fullname, path, target)
        if change is None or spec is None or spec.loader is None:
            return None
        run_module = spec.loader.exec_module

        def run_and_change(module: ModuleType) -> None:
            run_module(module)
            self._stack.enter_context(change(module))

        spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec
