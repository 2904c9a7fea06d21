"""Simulated CUDA card: requests for a CUDA device get CPU tensors, which say that they are on the card."""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch._C import DispatchKey
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.jit import _builtins
from torch.optim import optimizer
from torch.utils import _foreach_utils

from planner.trace.worker.cuda.dispatch import Kernel, aten_overload, patched_attributes
from planner.trace.worker.cuda.driver import host_type
from planner.trace.worker.ledger import AllocationLedger

_CPU: Final = torch.device("cpu")


def device_move_kernels() -> dict[str, Kernel]:
    """Return kernels for moves between devices, which leave tensors on the CPU."""
    return {name: _move_kernel(aten_overload(name)) for name in ("to.device", "to.dtype_layout")}


def _move_kernel(operator: Any) -> Kernel:
    """Return a kernel that runs a move between devices on the CPU."""

    def move_on_the_cpu(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        args = tuple(_CPU if _is_cuda(value) else value for value in args)
        return operator._op_dk(DispatchKey.CompositeImplicitAutograd, tensor, *args, **_with_cpu_device(kwargs))

    return move_on_the_cpu


def _with_cpu_device(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return `kwargs` with a CUDA device replaced by the CPU."""
    return kwargs | {"device": _CPU} if _is_cuda(kwargs.get("device")) else kwargs


def _is_cuda(value: Any) -> bool:
    return isinstance(value, torch.device) and value.type == "cuda"


@contextlib.contextmanager
def simulated_card() -> Iterator[None]:
    """Let code written for CUDA run on CPU fake tensors.

    Tensors made on a card are made on the CPU, and optimizers choose the kernels that they choose for CUDA tensors.

    **Source**: torch/optim/optimizer.py: on CUDA tensors, optimizers use the `_foreach_` operators unless configured
    otherwise.
    """
    replaced: tuple[tuple[Any, dict[str, Any]], ...] = (
        (nn.Module, {"cuda": _return_unchanged, "to": _module_to}),
        (Tensor, {"cuda": _return_unchanged, "to": _tensor_to, "pin_memory": _return_unchanged, "is_cuda": True}),
        (Tensor, {"record_stream": lambda *_: None, "_make_wrapper_subclass": staticmethod(_make_wrapper)}),
        (FakeTensorMode, {"dispatch": _cpu_dispatch(FakeTensorMode.dispatch)}),
        (torch, {name: _on_the_cpu(getattr(torch, name)) for name in _SPARSE_FACTORIES}),
        (_builtins, {"_find_builtin": _find_original(_builtins._find_builtin)}),
        (optimizer, _foreach_overrides(optimizer)),
        (_foreach_utils, _foreach_overrides(_foreach_utils)),
    )
    with contextlib.ExitStack() as stack:
        for owner, values in replaced:
            stack.enter_context(patched_attributes(owner, **values))
        yield


def _cpu_dispatch(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    """Return the dispatch function of a fake-tensor mode, with the device of every new tensor set to the CPU."""

    def dispatch_on_the_cpu(mode: FakeTensorMode, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(mode, func, types, args, _with_cpu_device(kwargs) if kwargs else kwargs)

    return dispatch_on_the_cpu


def _on_the_cpu(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a factory that makes its tensors on the CPU: PyTorch looks for a card before it calls a mode."""
    return made_from(make, lambda *args, **kwargs: make(*args, **kwargs | {"device": _CPU}))


def made_from(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of a function of `torch`, by which TorchScript finds the original."""
    replacement.__wrapped__ = original  # type: ignore[attr-defined]
    return replacement


def _find_original(find: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function by which TorchScript finds its operator for a function of `torch` that is replaced."""
    return lambda function: find(inspect.unwrap(function) if callable(function) else function)


def _make_wrapper(*args: Any, **kwargs: Any) -> Tensor:
    """Make a tensor that wraps others, on the CPU: autograd would look for a card."""
    args = tuple(_CPU if _is_cuda(value) else value for value in args)
    wrapper: Tensor = _MAKE_WRAPPER(*args, **_with_cpu_device(kwargs))
    return wrapper


def _foreach_overrides(module: Any) -> dict[str, Any]:
    """Return the attributes of `module` that make its foreach kernels accept CPU fake tensors."""
    devices = [*module._get_foreach_kernels_supported_devices(), "cpu"]
    return {
        "_get_foreach_kernels_supported_devices": lambda: devices,
        "_foreach_supported_types": [*module._foreach_supported_types, FakeTensor],
    }


@contextlib.contextmanager
def tensors_on_cards(ledger: AllocationLedger) -> Iterator[None]:
    """Let fake tensors say that they are on the card on which the ledger counts them, or else on the host."""

    def card_type(tensor: Tensor, kind: Any = None, *args: Any, **kwargs: Any) -> Any:
        if kind is None:
            name: str = _TENSOR_TYPE(tensor)
            return name.replace("torch.", "torch.cuda.", 1) if tensor.is_cuda else name
        host_kind = host_type(kind)
        converted = _TENSOR_TYPE(tensor, kind if host_kind is None else f"torch.{host_kind}", *args, **kwargs)
        return converted if host_kind is None else converted.cuda()

    def card_number(tensor: Tensor) -> int:
        card = ledger.card_of(tensor)
        return -1 if card is None else card

    devices = property(lambda tensor: _device_of(tensor, ledger))
    on_card = property(lambda tensor: ledger.card_of(tensor) is not None)
    with (
        patched_attributes(FakeTensor, device=devices),
        patched_attributes(Tensor, is_cuda=on_card, is_pinned=lambda tensor, *_: not tensor.is_cuda),
        patched_attributes(Tensor, get_device=card_number, type=card_type, type_as=lambda one, other: one.to(other)),
    ):
        yield


def _device_of(tensor: Tensor, ledger: AllocationLedger) -> torch.device:
    """Return the device of a fake tensor that a program sees; PyTorch's own code for fake tensors sees the CPU."""
    device: torch.device = _FAKE_DEVICE(tensor)
    if device.type != "cpu" or sys._getframe(2).f_code.co_filename.startswith(_FAKE_CODE):
        return device
    card = ledger.card_of(tensor)
    return device if card is None else torch.device("cuda", card)


def _return_unchanged(value: Any, *_: object, **__: object) -> Any:
    """Return `value`, for calls that would move it to a card."""
    return value


_SPARSE_FACTORIES: Final = tuple(
    f"sparse_{layout}_tensor" for layout in ("coo", "csr", "csc", "bsr", "bsc", "compressed")
)
_FAKE_CODE: Final = (
    str(Path(__file__).parent.parent),
    *(
        str(Path(torch.__file__).parent / name)
        for name in (
            *("_subclasses", "_refs", "_prims", "_decomp", "_meta_registrations", "_dynamo"),
            "_higher_order_ops/flex_attention",
        )
    ),
)
_FAKE_DEVICE: Final[Any] = vars(FakeTensor)["device"].fget
_MAKE_WRAPPER: Final[Any] = Tensor._make_wrapper_subclass
_TENSOR_TYPE: Final[Any] = Tensor.type
_MODULE_TO: Final[Any] = nn.Module.to
_TENSOR_TO: Final[Any] = Tensor.to


def _tensor_to(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Replacement of `Tensor.to`, which accepts a card's number."""
    args, kwargs = _with_device_name(args, kwargs)
    return _TENSOR_TO(tensor, *args, **kwargs)


def _module_to(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """Replacement of `Module.to`, which converts types but moves nothing to a card."""
    # Every tensor is on the device already; copies of tensors to themselves are left out.
    args, kwargs = _with_device_name(args, kwargs)
    device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
    if not _is_cuda(device):
        _MODULE_TO(module, *args, **kwargs)
        return module
    if dtype is not None:
        _MODULE_TO(module, dtype, non_blocking)
    if memory_format is not None:
        _MODULE_TO(module, memory_format=memory_format)
    return module


def _with_device_name(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with a card's number replaced by the device `cuda`, as CPU builds accept no numbers."""
    if args and type(args[0]) is int:
        args = ("cuda", *args[1:])
    if type(kwargs.get("device")) is int:
        kwargs = kwargs | {"device": "cuda"}
    return args, kwargs
