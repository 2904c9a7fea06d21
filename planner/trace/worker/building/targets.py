"""Loading of targets: files and imports, and the modules that they define or return."""

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from torch import nn

from planner.errors import TraceError
from planner.trace.request import Argument, Target

_STAGE: Final = "load"
_FEW: Final = 12
_FORMS: Final = (
    "A target is a module class, a module, or a function that returns a module, (module, inputs) or "
    "(modules, inputs, step)."
)

Step = Callable[..., object]


@dataclass
class TargetOutput:
    """Modules of a target, in the structure that it returned, with optional inputs and step."""

    modules: Any
    inputs: Any = None
    step: Step | None = None

    @property
    def named(self) -> dict[str, nn.Module]:
        """Return the modules by name; a single one has an empty name, those of a list their index."""
        if isinstance(self.modules, nn.Module):
            return {"": self.modules}
        if isinstance(self.modules, Mapping):
            return {str(name): module for name, module in self.modules.items()}
        return {str(place): module for place, module in enumerate(self.modules)}


def load_target(target: Target, arguments: Sequence[Argument]) -> TargetOutput:
    """Load `target`, a file or an import path, and call it if it is a class or function.

    Raises:
        TraceError: If it cannot be found, rejects `arguments`, or does not return a module.
    """
    module = _from_file(target.place) if target.kind == "file" else _from_import(target.place)
    found = _named(module, target.name, target.place)
    if isinstance(found, nn.Module) or not callable(found):
        if arguments:
            raise TraceError(_STAGE, f"{target.title} takes no arguments: it is already a module", _FORMS)
        return _made(found, target.title)
    return _made(_called(found, arguments, target.title), target.title)


def load_function(place: str) -> Callable[..., Any]:
    """Return the function named by `place`, such as `losses.py:focal`.

    Raises:
        TraceError: If there is none.
    """
    file, _, name = place.rpartition(":")
    found = _named(_from_file(file), name, file)
    if not callable(found):
        raise TraceError(_STAGE, f"{place} is not a function", "Give a function, such as losses.py:focal.")
    return found  # type: ignore[no-any-return]  # a person's own object: that it can be called is all that is known


def _from_file(place: str) -> ModuleType:
    path = Path(place).expanduser().resolve()
    if not path.is_file():
        raise TraceError(_STAGE, f"there is no file {place}", "Check the spelling, or give the full path.")
    name = _module_name(path)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TraceError(_STAGE, f"{place} is not a Python file", "The name must end in .py.")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _module_name(path: Path) -> str:
    """Return the name under which the file is imported: its own, unless another module has it."""
    loaded = sys.modules.get(path.stem)
    taken = path.stem in sys.stdlib_module_names or (
        loaded is not None and getattr(loaded, "__file__", None) != str(path)
    )
    return f"{path.stem}@{path.parent}" if taken else path.stem


def _from_import(place: str) -> ModuleType:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise
        raise TraceError(
            _STAGE, f"there is no module {error.name!r}", "Install it, or run from the folder that contains it."
        ) from error


def _named(module: ModuleType, name: str, place: str) -> Any:
    found: Any = module
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    if found is not None and name:
        return found
    offered = ", ".join(_offered(module, name)) or "nothing that can be traced"
    reason = f"{place} has no {name!r}" if name else f"no part of {place} was named"
    raise TraceError(_STAGE, reason, f"Available are: {offered}. Write {place}:NAME.")


def _offered(module: ModuleType, name: str) -> list[str]:
    """Return possible targets in `module`: its own classes and functions, then imported modules.

    Names similar to `name` come first; the list is short.
    """
    public = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    own = [key for key, value in public.items() if getattr(value, "__module__", None) == module.__name__]
    able = [key for key in own if inspect.isfunction(public[key]) or _is_module(public[key])]
    able += [key for key, value in public.items() if key not in own and _is_module(value)]
    alike = difflib.get_close_matches(name, able, n=_FEW)
    return list(dict.fromkeys([*alike, *able]))[:_FEW]


def _is_module(value: object) -> bool:
    return isinstance(value, nn.Module) or (inspect.isclass(value) and issubclass(value, nn.Module))


def _called(found: Callable[..., Any], arguments: Sequence[Argument], title: str) -> Any:
    given = {argument.name: _listed(argument.value) for argument in arguments}
    try:
        signature = inspect.signature(found)
    except ValueError:
        return found(**given)
    try:
        signature.bind(**given)
    except TypeError as error:
        raise TraceError(
            _STAGE,
            f"{title}: {error}",
            f"Its arguments: {signature.replace(return_annotation=signature.empty)}; pass them with --arg NAME=VALUE.",
        ) from error
    return found(**given)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _made(result: Any, title: str) -> TargetOutput:
    if _are_modules(result):
        return TargetOutput(result)
    if isinstance(result, tuple) and len(result) in (2, 3) and _are_modules(result[0]):
        step = result[2] if len(result) == 3 else None
        if step is None or callable(step):
            return TargetOutput(result[0], result[1], step)
    raise TraceError(_STAGE, f"{title} returned {_described(result)}, not a module", _FORMS)


def _are_modules(value: Any) -> bool:
    if isinstance(value, nn.Module):
        return True
    inside = list(value.values()) if isinstance(value, Mapping) else value
    return isinstance(inside, list | tuple) and bool(inside) and all(isinstance(one, nn.Module) for one in inside)


def _described(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {', '.join(type(one).__name__ for one in value) or 'nothing'}"
    return type(value).__name__
