"""Putting Python kernels in the place of the dispatcher's, for as long as a context lasts."""

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


def overload(name: str) -> Any:
    """Return the operator `name` of ATen, such as `softmax.int`."""
    packet, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), rest or "default")


def exists(name: str) -> bool:
    """Return whether this version of PyTorch has the operator `name` of ATen."""
    packet, _, rest = name.partition(".")
    return (rest or "default") in getattr(getattr(torch.ops.aten, packet, None), "overloads", list)()


@contextlib.contextmanager
def kernels(key: str, replacements: Mapping[str, Kernel]) -> Iterator[None]:
    """Run `replacements` where the dispatcher would run what it has for `key`; the old kernels come back afterwards."""
    library = _library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            # Some of them have kernels of their own, and the dispatcher warns once that those are overridden.
            warnings.simplefilter("ignore", UserWarning)
            for name, kernel in replacements.items():
                if exists(name):
                    library.impl(name, kernel, key)
        yield
    finally:
        library._destroy()


@contextlib.contextmanager
def compositions(replacements: Mapping[str, Kernel]) -> Iterator[None]:
    """Compose the operators of `replacements` by them, whatever records gradients or not."""
    present = {overload(name): kernel for name, kernel in replacements.items() if exists(name)}
    with kernels("AutogradCPU", replacements):
        try:
            for operator, kernel in present.items():
                operator.py_kernels[_COMPOSITE] = kernel
                operator._dispatch_cache.clear()
            yield
        finally:
            for operator in present:
                operator.py_kernels.pop(_COMPOSITE, None)
                operator._dispatch_cache.clear()


@contextlib.contextmanager
def fake_results(replacements: Mapping[str, Kernel]) -> Iterator[None]:
    """Answer operators on fake tensors by `replacements`, which take the mode, the operator and its arguments."""
    known = fake_impls.op_implementations_dict
    present = {overload(name): kernel for name, kernel in replacements.items() if exists(name)}
    before = {operator: known[operator] for operator in present if operator in known}
    FakeTensorMode.cache_clear()
    known.update(present)
    try:
        yield
    finally:
        for operator in present:
            del known[operator]
        known.update(before)
        FakeTensorMode.cache_clear()


@contextlib.contextmanager
def attributes(owner: Any, **values: Any) -> Iterator[None]:
    """Set attributes of `owner`; what it had of its own comes back afterwards."""
    before = {name: vars(owner)[name] for name in values if name in vars(owner)}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name in values:
            if name in before:
                setattr(owner, name, before[name])
            else:
                delattr(owner, name)
