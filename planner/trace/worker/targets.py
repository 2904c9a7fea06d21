"""Loading of targets: files and imports, the modules that they define or return, and the inputs of a run."""

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import torch
from torch import nn

from planner.errors import TraceError
from planner.trace.request import Argument, Input, InputValue, ListInput, PlainInput, Target, TensorInput
from planner.trace.worker.observer import map_tensors, tensors_in

_SEED: Final = 0
_MAX_DESCRIBED_TENSORS: Final = 8
_BYTE_INTEGER_BOUND: Final = 128
"""Exclusive upper bound of random one-byte integers, so that every one-byte type can hold them."""


@dataclass
class ForwardCall:
    """Arguments of one call of `forward`."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def arguments_by_name(self, names: Sequence[str]) -> dict[str, Any]:
        """Return all arguments by parameter name; `names` are the parameters of `forward`, in order."""
        return dict(zip(names, self.args, strict=False)) | self.kwargs

    @classmethod
    def from_inputs(cls, inputs: Any) -> "ForwardCall":
        """Return the call for a target's `inputs`: a tuple is positional, a dictionary by name."""
        if inputs is None:
            return cls()
        if isinstance(inputs, ForwardCall):
            return inputs
        if isinstance(inputs, Mapping):
            return cls(kwargs=dict(inputs))
        return cls(args=tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,))


def inputs_from_shapes(inputs: Sequence[Input], modules: Mapping[str, nn.Module]) -> Any:
    """Return generated inputs: a tuple if none has a name, a dictionary if every input has, else a `ForwardCall`."""
    generator = torch.Generator().manual_seed(_SEED)
    high = _embedding_entries(modules)
    args = tuple(_generated_value(input_.value, high, generator) for input_ in inputs if not input_.name)
    kwargs = {input_.name: _generated_value(input_.value, high, generator) for input_ in inputs if input_.name}
    if args and kwargs:
        return ForwardCall(args, kwargs)
    return kwargs or args


def resize_inputs(inputs: Any, batch: int | None, sequence_length: int | None) -> Any:
    """Return `inputs` with `batch` as the first and `sequence_length` as the second dimension of each tensor."""
    if batch is None and sequence_length is None:
        return inputs

    def resized_tensor(tensor: torch.Tensor) -> torch.Tensor:
        for dimension, size in enumerate((batch, sequence_length)):
            if size is not None and tensor.dim() > dimension and tensor.shape[dimension] not in (0, size):
                indices = torch.arange(size, device=tensor.device) % tensor.shape[dimension]
                tensor = tensor.index_select(dimension, indices)
        return tensor

    return map_tensors(inputs, resized_tensor)


def cast_floating_point(inputs: Any, dtype: torch.dtype) -> Any:
    """Return `inputs` with floating-point tensors in `dtype`."""
    return map_tensors(inputs, lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def describe_inputs(call: ForwardCall) -> str:
    """Return the shapes of the first tensors of `call` as text."""
    values = {**{str(place): value for place, value in enumerate(call.args)}, **call.kwargs}
    descriptions = []
    for name, value in values.items():
        prefix = "" if name.isdigit() else f"{name} "
        for tensor in tensors_in(value):
            sizes = "×".join(f"{size:,}" for size in tensor.shape) or "a number"
            descriptions.append(f"{prefix}{sizes} {str(tensor.dtype).removeprefix('torch.')}")
    return ", ".join(descriptions[:_MAX_DESCRIBED_TENSORS]) + (
        ", …" if len(descriptions) > _MAX_DESCRIBED_TENSORS else ""
    )


def random_integers(
    shape: Sequence[int], high: int, dtype: torch.dtype = torch.int64, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Return integers from 0 up to, but excluding, `high`: always the same numbers without a `generator`."""
    generator = generator or torch.Generator().manual_seed(_SEED)
    return torch.randint(0, high, tuple(shape), dtype=dtype, generator=generator)


def _generated_value(value: InputValue, high: int, generator: torch.Generator) -> Any:
    """Return the value of one input: random tensors, or the constants that the user wrote."""
    if isinstance(value, PlainInput):
        return value.value
    if isinstance(value, ListInput):
        items = (_generated_value(item, high, generator) for item in value.items)
        return tuple(items) if value.kind == "tuple" else list(items)
    return _random_tensor(value, high, generator)


def _random_tensor(value: TensorInput, high: int, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor of random numbers, integers below `high`."""
    dtype: torch.dtype = getattr(torch, str(value.dtype))
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(value.shape, dtype=dtype, generator=generator)
    if dtype is torch.bool:
        return torch.ones(value.shape, dtype=dtype)
    limit = value.high or (min(high, _BYTE_INTEGER_BOUND) if dtype.itemsize == 1 else high)
    return random_integers(value.shape, limit, dtype, generator)


def _embedding_entries(modules: Mapping[str, nn.Module]) -> int:
    """Return the number of entries in the first embedding, which bounds valid integers; 2 without an embedding."""
    for module in modules.values():
        for inner in module.modules():
            if isinstance(inner, nn.Embedding):
                return inner.num_embeddings
    return 2


_STAGE: Final = "load"
_MAX_SUGGESTIONS: Final = 12
_TARGET_FORMS: Final = (
    "A target is a module class, a module, or a function that returns a module, (module, inputs) or "
    "(modules, inputs, step)."
)

StepFunction = Callable[..., object]


@dataclass
class TargetOutput:
    """Modules that a target returned, in their structure, with optional inputs and an optional step function."""

    modules: Any
    inputs: Any = None
    step: StepFunction | None = None

    @property
    def modules_by_name(self) -> dict[str, nn.Module]:
        """Return the modules by name; a single module has an empty name, modules in a list have their index."""
        if isinstance(self.modules, nn.Module):
            return {"": self.modules}
        if isinstance(self.modules, Mapping):
            return {str(name): module for name, module in self.modules.items()}
        return {str(place): module for place, module in enumerate(self.modules)}


def load_target(target: Target, arguments: Sequence[Argument]) -> TargetOutput:
    """Load `target`, a file or an import path, and call it if it is a class or function.

    Raises:
        TraceError: If the target cannot be found, rejects `arguments`, or does not return a module.
    """
    module = _load_file(target.place) if target.kind == "file" else _import_module(target.place)
    target_object = _named_object(module, target.name, target.place)
    if isinstance(target_object, nn.Module) or not callable(target_object):
        if arguments:
            raise TraceError(_STAGE, f"{target.title} takes no arguments: it is already a module", _TARGET_FORMS)
        return _target_output(target_object, target.title)
    return _target_output(_call_target(target_object, arguments, target.title), target.title)


def load_function(function_path: str) -> Callable[..., Any]:
    """Return the user's function at `function_path`, such as `losses.py:focal`.

    Raises:
        TraceError: If there is no such function.
    """
    file, _, name = function_path.rpartition(":")
    loaded = _named_object(_load_file(file), name, file)
    if not callable(loaded):
        raise TraceError(_STAGE, f"{function_path} is not a function", "Give a function, such as losses.py:focal.")
    return loaded  # type: ignore[no-any-return]  # an object from the user's code: only known to be callable


def _load_file(file_path: str) -> ModuleType:
    path = Path(file_path).expanduser().resolve()
    if not path.is_file():
        raise TraceError(_STAGE, f"there is no file {file_path}", "Check the spelling, or give the full path.")
    name = _module_name(path)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TraceError(_STAGE, f"{file_path} is not a Python file", "The name must end in .py.")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _module_name(path: Path) -> str:
    """Return the module name of the file at `path`: its stem, unless another module has that name."""
    loaded = sys.modules.get(path.stem)
    taken = path.stem in sys.stdlib_module_names or (
        loaded is not None and getattr(loaded, "__file__", None) != str(path)
    )
    return f"{path.stem}@{path.parent}" if taken else path.stem


def _import_module(module_name: str) -> ModuleType:
    if (working_folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, working_folder)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise TraceError(
            _STAGE, f"there is no module {error.name!r}", "Install it, or run from the folder that contains it."
        ) from error


def _named_object(module: ModuleType, name: str, place: str) -> Any:
    """Return the object called `name` in `module`, such as `Net` or `models.Net`."""
    named_object: Any = module
    for attribute in name.split(".") if name else ():
        named_object = getattr(named_object, attribute, None)
    if named_object is not None and name:
        return named_object
    possible_targets = ", ".join(_possible_targets(module, name))
    reason = f"{place} has no {name!r}" if name else f"no part of {place} was named"
    nothing = "It has no public class or function that could be traced."
    raise TraceError(
        _STAGE, reason, f"Available are: {possible_targets}. Write {place}:NAME." if possible_targets else nothing
    )


def _possible_targets(module: ModuleType, name: str) -> list[str]:
    """Return possible targets in `module`: its own classes and functions, then imported modules.

    Names similar to `name` come first; the list is short.
    """
    public_objects = {key: value for key, value in vars(module).items() if not key.startswith("_")}
    own_names = [key for key, value in public_objects.items() if getattr(value, "__module__", None) == module.__name__]
    traceable_names = [
        key for key in own_names if inspect.isfunction(public_objects[key]) or _is_module(public_objects[key])
    ]
    traceable_names += [key for key, value in public_objects.items() if key not in own_names and _is_module(value)]
    similar_names = difflib.get_close_matches(name, traceable_names, n=_MAX_SUGGESTIONS)
    return list(dict.fromkeys([*similar_names, *traceable_names]))[:_MAX_SUGGESTIONS]


def _is_module(value: object) -> bool:
    return isinstance(value, nn.Module) or (inspect.isclass(value) and issubclass(value, nn.Module))


def _call_target(callable_target: Callable[..., Any], arguments: Sequence[Argument], title: str) -> Any:
    """Return what the target returns when called with `arguments`."""
    keywords = {argument.name: _tuple_as_list(argument.value) for argument in arguments}
    try:
        signature = inspect.signature(callable_target)
    except ValueError:
        return callable_target(**keywords)
    try:
        signature.bind(**keywords)
    except TypeError as error:
        raise TraceError(
            _STAGE,
            f"{title}: {error}",
            f"Its arguments: {signature.replace(return_annotation=signature.empty)}; pass them with --arg NAME=VALUE.",
        ) from error
    return callable_target(**keywords)


def _tuple_as_list(value: Any) -> Any:
    """Return an argument's value with tuples as lists, as JSON has them."""
    return list(value) if isinstance(value, tuple) else value


def _target_output(result: Any, title: str) -> TargetOutput:
    """Return a target's result as modules with optional inputs and step; reject any other result."""
    if _are_modules(result):
        return TargetOutput(result)
    if isinstance(result, tuple) and len(result) in (2, 3) and _are_modules(result[0]):
        step = result[2] if len(result) == 3 else None
        if step is None or callable(step):
            return TargetOutput(result[0], result[1], step)
    raise TraceError(_STAGE, f"{title} returned {_type_text(result)}, not a module", _TARGET_FORMS)


def _are_modules(value: Any) -> bool:
    if isinstance(value, nn.Module):
        return True
    items = list(value.values()) if isinstance(value, Mapping) else value
    return isinstance(items, list | tuple) and bool(items) and all(isinstance(item, nn.Module) for item in items)


def _type_text(value: Any) -> str:
    """Return the type of a value as text, for error messages."""
    if isinstance(value, tuple):
        return f"a tuple of {', '.join(type(item).__name__ for item in value) or 'nothing'}"
    return type(value).__name__
