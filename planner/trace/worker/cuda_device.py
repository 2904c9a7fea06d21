"""A card that is not there: what asks for a CUDA device gets the CPU's tensors, and a plausible card's answers."""

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.optim import optimizer
from torch.utils import _foreach_utils

from planner.trace.worker.cuda_dispatch import attributes

_CPU: Final = torch.device("cpu")
_PIN: Final = Tensor.pin_memory
_IS_CUDA: Final = Tensor.is_cuda.__get__  # type: ignore[attr-defined]  # typed as a bool, but it is a descriptor


def on_the_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `func` with the CPU in the place of CUDA devices."""
    if func is Tensor.cuda or func is _PIN:
        return args[0]
    if func == _IS_CUDA:
        return True
    if "device" in kwargs and _is_cuda(kwargs["device"]):
        kwargs["device"] = _CPU
    if len(args) > 1 and func is Tensor.to and _is_cuda(args[1]):
        args = (args[0], _CPU, *args[2:])
    return func(*args, **kwargs)


def _is_cuda(device: Any) -> bool:
    if isinstance(device, torch.device):
        return device.type == "cuda"
    # A number is a card's; in `to` a bool could only be a mistake.
    return isinstance(device, int) or (isinstance(device, str) and device.startswith("cuda"))


@contextlib.contextmanager
def pretended_card(capability: tuple[int, int]) -> Iterator[None]:
    """Let `torch.cuda` answer as with one card of `capability`, and optimizers choose as they do for CUDA tensors.

    **Source**: torch/optim/optimizer.py: on CUDA tensors, optimizers use the `_foreach_` operators unless told
    otherwise.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(attributes(torch.cuda, **_answers(capability)))
        stack.enter_context(attributes(nn.Module, cuda=lambda module, _device=None: module, to=_module_to))
        devices = _foreach_utils._get_foreach_kernels_supported_devices()
        for module in (optimizer, _foreach_utils):
            types = [*module._foreach_supported_types, FakeTensor]
            stack.enter_context(attributes(module, _foreach_supported_types=types))
            found = {"_get_foreach_kernels_supported_devices": lambda: [*devices, "cpu"]}
            stack.enter_context(attributes(module, **found))
        yield


_MODULE_TO: Final[Any] = nn.Module.to


def _module_to(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    # Every tensor is on the device already; what would be a copy of each to itself is left out.
    with torch._C.DisableTorchFunction():
        device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*args, **kwargs)
    if device is None or not _is_cuda(device):
        _MODULE_TO(module, *args, **kwargs)
        return module
    if dtype is not None:
        _MODULE_TO(module, dtype, non_blocking)
    if memory_format is not None:
        _MODULE_TO(module, memory_format=memory_format)
    return module


def _answers(capability: tuple[int, int]) -> dict[str, Any]:
    major, minor = capability
    properties = SimpleNamespace(name="NVIDIA", major=major, minor=minor, multi_processor_count=108, warp_size=32)

    def nothing(*_: object, **__: object) -> None: ...

    def zero(*_: object, **__: object) -> int:
        return 0

    return (
        dict.fromkeys(("synchronize", "empty_cache", "ipc_collect", "set_device", "init"), nothing)
        | dict.fromkeys(("manual_seed", "manual_seed_all", "reset_peak_memory_stats"), nothing)
        | dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"), zero)
        | {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "current_device": zero,
            "is_initialized": lambda: True,
            "get_device_name": lambda *_: properties.name,
            "get_device_capability": lambda *_: capability,
            "get_device_properties": lambda *_: properties,
            "is_bf16_supported": lambda *_, **__: major >= 8,
        }
    )
