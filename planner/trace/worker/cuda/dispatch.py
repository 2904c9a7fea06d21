"""Temporary replacement of the dispatcher's kernels by Python functions."""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch
from torch._C import DispatchKey
from torch._subclasses import fake_impls
from torch._subclasses.fake_tensor import FakeTensorMode

Kernel = Callable[..., Any]

_library: Final[Any] = torch.library
_COMPOSITE: Final = DispatchKey.CompositeImplicitAutograd


def aten_overload(name: str) -> Any:
    """Return the ATen operator overload `name`, such as `softmax.int`."""
    packet, _, overload_name = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload_name or "default")


def operator_exists(name: str) -> bool:
    """Return whether this version of PyTorch has the ATen operator overload `name`."""
    packet, _, overload_name = name.partition(".")
    return (overload_name or "default") in getattr(getattr(torch.ops.aten, packet, None), "overloads", list)()


@contextlib.contextmanager
def replaced_kernels(key: str, replacements: Mapping[str, Kernel]) -> Iterator[None]:
    """Replace the dispatcher's kernels for `key` within the context."""
    library = _library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            # Where an operator already has a kernel, the dispatcher warns once that the kernel is overridden.
            warnings.simplefilter("ignore", UserWarning)
            for name, kernel in replacements.items():
                if operator_exists(name):
                    library.impl(name, kernel, key)
        yield
    finally:
        library._destroy()


@contextlib.contextmanager
def replaced_compositions(replacements: Mapping[str, Kernel]) -> Iterator[None]:
    """Replace, within the context, how composite operators are built from others, with and without gradients."""
    replaced = {aten_overload(name): kernel for name, kernel in replacements.items() if operator_exists(name)}
    with replaced_kernels("AutogradCPU", replacements):
        try:
            for operator, kernel in replaced.items():
                operator.py_kernels[_COMPOSITE] = kernel
                operator._dispatch_cache.clear()
            yield
        finally:
            for operator in replaced:
                operator.py_kernels.pop(_COMPOSITE, None)
                operator._dispatch_cache.clear()


@contextlib.contextmanager
def replaced_fake_results(replacements: Mapping[str, Kernel]) -> Iterator[None]:
    """Replace fake-tensor implementations within the context; replacements take the mode, operator and arguments."""
    implementations = fake_impls.op_implementations_dict
    replaced = {aten_overload(name): kernel for name, kernel in replacements.items() if operator_exists(name)}
    previous = {operator: implementations[operator] for operator in replaced if operator in implementations}
    FakeTensorMode.cache_clear()
    implementations.update(replaced)
    try:
        yield
    finally:
        for operator in replaced:
            del implementations[operator]
        implementations.update(previous)
        FakeTensorMode.cache_clear()


@contextlib.contextmanager
def patched_attributes(owner: Any, **values: Any) -> Iterator[None]:
    """Set attributes of `owner` within the context; its own attributes are restored afterwards."""
    previous = {name: vars(owner)[name] for name in values if name in vars(owner)}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name in values:
            if name in previous:
                setattr(owner, name, previous[name])
            else:
                delattr(owner, name)
