"""PyTorch's own layer over CUDA as on the simulated card, so that the Python code of `torch.cuda` runs as it is.

A build without CUDA lacks that layer: functions of `torch._C` whose names begin with `_cuda`, and the classes of
streams, events and graphs. What is not pretended here is refused by name (`failures.py`).
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from types import SimpleNamespace
from typing import Any, Final, Self

import torch
from torch import Tensor, nn
from torch.autograd import profiler
from torch.backends import cuda as cuda_switches
from torch.backends import cudnn
from torch.cuda import graphs, nvtx, streams

from planner.errors import PlannerError
from planner.trace.recording import Allocations, TraceDifference
from planner.trace.request import TracedCard
from planner.trace.worker.cuda.card_memory import CardMemory
from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.observer import RunObserver, map_tensors

_ASSUMED_CARD: Final = TracedCard(name="NVIDIA A100-SXM4-80GB", memory_bytes=85_097_971_712, multiprocessors=108)
"""The card that code sees if none was chosen, of the compute capability that is assumed then."""
_MOST_CARDS: Final = 16
_CUDA_VERSION: Final = "13.0"
_CUDNN_VERSION: Final = 91_501
_NCCL_VERSION: Final = 2 << 32 | 28 << 16 | 9
_CUDA_TYPE_NUMBER: Final = 1
_THREADS_OF_MULTIPROCESSOR: Final = {(7, 5): 1024, (8, 6): 1536, (8, 9): 1536, (12, 0): 1536, (12, 1): 1536}
"""Compute capabilities that have other than 2,048, from the table of NVIDIA's CUDA programming guide."""
_TENSOR_TYPES: Final = (
    *("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor"),
    *("ShortTensor", "IntTensor", "LongTensor", "BoolTensor"),
)
_PREFIX: Final = "torch.cuda."


class CurrentCard:
    """The cards as a program selects among them: it may name more of them than there would be."""

    def __init__(self) -> None:
        self.index = 0
        self.streams: dict[int, int] = {}
        """Number of the current stream by card; 0 is the default stream."""

    def select(self, index: int) -> int:
        """Select a card, and return the one that was selected; a negative number selects none."""
        before = self.index
        if index >= 0:
            self.index = index
        return before


def visible_cards() -> int:
    """Return how many cards a program sees: those that it made visible itself, else those of its launcher, else one."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return len(visible) or int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def card_index(device: Any, current: int) -> int | None:
    """Return the number of the card that `device` names, None if it names none."""
    if isinstance(device, bool) or device is None:
        return None
    if isinstance(device, int):
        return device
    kind, _, number = str(device).partition(":")
    return (int(number) if number else current) if kind == "cuda" else None


def _nothing(*_: object, **__: object) -> None: ...


def _returning(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


class _Stream:
    """Stream of the simulated card, which runs each operation at once."""

    made = 0

    def __new__(cls, device: Any = None, priority: int = 0, **known: Any) -> Self:
        stream = super().__new__(cls)
        if not known:
            _Stream.made += 1
        stream.priority = priority
        stream.stream_id = stream.cuda_stream = known.get("stream_id", _Stream.made)
        stream.device_index = known.get("device_index", card_index(device, torch.cuda.current_device()) or 0)
        stream.device_type = _CUDA_TYPE_NUMBER
        stream.device = torch.device("cuda", stream.device_index)
        stream.before = list[Any]()
        return stream

    def __init__(self, *_: object, **__: object) -> None:
        self.before: list[Any]
        self.priority: int
        self.stream_id: int
        self.cuda_stream: int
        self.device_index: int
        self.device_type: int
        self.device: torch.device

    wait_event = wait_stream = synchronize = _nothing
    query = _returning(True)
    is_capturing = _returning(False)
    priority_range = staticmethod(_returning((0, -5)))

    def record_event(self, event: Any = None) -> Any:
        """Return an event that is recorded now."""
        event = _Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Self:
        self.before.append(torch.cuda.current_stream())
        torch.cuda.set_stream(self)  # type: ignore[arg-type]  # it stands for one
        return self

    def __exit__(self, *_: object) -> None:
        torch.cuda.set_stream(self.before.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Stream) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, int]:
        return self.stream_id, self.device_index


class _Event:
    """An event of the simulated card; the time between two is that of the trace."""

    def __init__(self, *_: object, **__: object) -> None:
        self.device = torch.device("cuda", 0)
        self._seconds = 0.0

    wait = synchronize = _nothing
    query = _returning(True)

    def record(self, _stream: object = None) -> None:
        """Remember the time."""
        self._seconds = time.perf_counter()

    def elapsed_time(self, end: "_Event") -> float:
        """Return the milliseconds from this event to `end`, more than none."""
        return max(1e3 * (end._seconds - self._seconds), 1e-3)


class _Properties(SimpleNamespace):
    """Properties of the card, as far as they are known."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise PlannerError(f"the code asks for {name} of the GPU, which is not known", "Set it by hand for the trace.")


class _Context:
    """A context that changes nothing."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    id = (0, 1)


class _Nvtx:
    """NVIDIA's tools extension: each mark and range is accepted."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        return _returning(0)


class _GeneratorClass(type(torch.Generator)):  # type: ignore[misc]  # the class of an extension's class
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch._C.Generator)


class _Generator(torch._C.Generator, metaclass=_GeneratorClass):
    """Generator of random numbers that reports the device it was made for, but runs on the CPU."""

    def __new__(cls, device: Any = "cpu") -> Self:
        made = super().__new__(cls, "cpu")  # type: ignore[call-arg]  # the stubs have only __init__
        index = card_index(device, 0)
        made.named_device = torch.device(device) if index is None else torch.device("cuda", index)
        return made

    def __init__(self, *_: object, **__: object) -> None:
        self.named_device: torch.device

    @property
    def device(self) -> torch.device:  # type: ignore[override]  # a class attribute in the stubs
        """Return the device that was named."""
        return self.named_device


class _TensorType(type):
    """Type of tensors on a card, such as `torch.cuda.FloatTensor`, made of the type of those on the host."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.type() == f"{_PREFIX}{cls.__name__}"

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        tensor: Tensor = getattr(torch, cls.__name__)(*args, **kwargs).cuda()
        return tensor

    @property
    def dtype(cls) -> torch.dtype:
        """Return the type of the elements."""
        dtype: torch.dtype = getattr(torch, cls.__name__).dtype
        return dtype


TENSOR_TYPES: Final = {name: _TensorType(name, (), {"__module__": "torch.cuda"}) for name in _TENSOR_TYPES}


def host_type(kind: Any) -> str | None:
    """Return the name of the host's type of tensors for a card's type, or its name; None if `kind` is no such type."""
    name = kind.__name__ if isinstance(kind, _TensorType) else str(kind) if isinstance(kind, str) else ""
    name = name.removeprefix(_PREFIX) if isinstance(kind, str) else name
    return name if name in TENSOR_TYPES and name != kind else None


class CardDriver:
    """The layer over CUDA of a build that has it, with the figures of one card and a trace's memory."""

    def __init__(
        self, capability: tuple[int, int], card: TracedCard | None, memory: CardMemory, watcher: RunObserver
    ) -> None:
        self._capability = capability
        self._is_known = card is not None and card.memory_bytes is not None
        self._card = card or _ASSUMED_CARD
        self._memory = memory
        self._watcher = watcher
        self._current = CurrentCard()
        self._limit = 1.0
        self._captures: list[tuple[int, int]] = []
        """Event numbers at which captures of CUDA graphs began and ended."""

    @contextmanager
    def pretended(self) -> Iterator[None]:
        """Let `torch.cuda` and `torch.accelerator` run on this layer."""
        generators = tuple(_Generator(torch.device("cuda", index)) for index in range(_MOST_CARDS))
        stream_classes = {"Stream": _Stream, "ExternalStream": _Stream, "Event": _Event}
        graph_class = self._graph_class()
        replaced: tuple[tuple[Any, dict[str, Any]], ...] = (
            (torch._C, self._functions()),
            (torch, {"Generator": _Generator, "Stream": _Stream, "Event": _Event}),
            (torch, {"set_default_tensor_type": _set_default_tensor_type}),
            (torch.version, {"cuda": _CUDA_VERSION}),
            (torch.cuda, stream_classes | TENSOR_TYPES | self._python_functions()),
            (torch.cuda, {"CUDAGraph": graph_class, "MemPool": _Context, "use_mem_pool": _Context}),
            (torch.cuda, {"default_generators": generators, "_initialized": True}),
            (torch.cuda.memory, {"MemPool": _Context, "use_mem_pool": _Context, "mem_get_info": self._memory_info}),
            (torch.cuda.memory, dict.fromkeys(("_record_memory_history", "_dump_snapshot"), _nothing)),
            (streams, stream_classes),
            (graphs, {"CUDAGraph": graph_class, "is_current_stream_capturing": _returning(False)}),
            (graphs, {"graph_pool_handle": _returning((0, 1))}),
            (graphs.graph, {"default_capture_stream": None}),
            (nvtx, {"_nvtx": _Nvtx()}),
            (profiler, {"emit_nvtx": _Context}),
            (torch.cuda.profiler, {"start": _nothing, "stop": _nothing, "init": _nothing, "profile": _Context}),
            (cuda_switches, dict.fromkeys(("preferred_linalg_library", "preferred_blas_library"), _nothing)),
            (cuda_switches, {"is_built": _returning(True), "is_flash_attention_available": _returning(True)}),
            (cuda_switches, {"cufft_plan_cache": SimpleNamespace(size=0, max_size=4096, clear=_nothing)}),
            (nn.DataParallel, self._data_parallel_on_one_card()),
            (nn.parallel, {"data_parallel": self._run_on_one_card}),
            (cudnn, {"version": _returning(_CUDNN_VERSION), "is_available": _returning(True)}),
            # Without cuDNN here, a recurrent layer cannot lay its weights out in one buffer, as large as they are.
            (cudnn, {"is_acceptable": _returning(False)}),
        )
        with ExitStack() as stack:
            stack.enter_context(_restored_defaults())
            for owner, values in replaced:
                stack.enter_context(patched_attributes(owner, **values))
            yield

    def differences(self, allocations: Allocations) -> list[TraceDifference]:
        """Return how much more memory CUDA graphs may keep than what they captured has at the end."""
        if not self._captures:
            return []
        return [
            TraceDifference(
                name="memory pools of CUDA graphs",
                explanation="a graph keeps all memory that its operators used when they were captured for itself, as "
                "long as it lives; only what is still in use is counted",
                source="aten/src/ATen/cuda/CUDAGraph.cpp, capture_begin",
                high_bytes=sum(_pool_bytes(allocations, begin, end) for begin, end in self._captures),
            )
        ]

    def _functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions of `torch._C`.

        **Source**: torch/csrc/cuda/Module.cpp and torch/csrc/DeviceAccelerator.cpp, by their names.
        """
        current, memory = self._current, self._memory
        nothing = (
            *("_cuda_synchronize", "_cuda_ipc_collect", "_cuda_sleep", "_cuda_set_sync_debug_mode", "_cuda_init"),
            *("_cuda_resetAccumulatedMemoryStats", "_cuda_resetAccumulatedHostMemoryStats"),
            *("_cuda_resetPeakHostMemoryStats", "_cuda_record_memory_history", "_cuda_record_memory_history_legacy"),
            *("_accelerator_synchronizeDevice", "_accelerator_resetAccumulatedStats", "_accelerator_setStream"),
            *("_cuda_set_cudnn_benchmark_limit", "_cuda_attach_out_of_memory_observer"),
            *("_host_emptyCache", "_cuda_clearCublasWorkspaces", "_cuda_cudaCachingAllocator_enable"),
            *("_cuda_tunableop_enable", "_cuda_tunableop_tuning_enable", "_cuda_tunableop_set_filename"),
        )
        zero = (
            *("_cuda_get_sync_debug_mode", "_cuda_getCurrentBlasHandle", "_cuda_getCurrentSolverHandle"),
            *("_cuda_getCurrentRawStream",),
        )

        def set_stream(stream_id: int, device_index: int, device_type: int) -> None:
            current.streams[device_index] = stream_id

        return (
            dict.fromkeys(nothing, _nothing)
            | dict.fromkeys(zero, _returning(0))
            | dict.fromkeys(("_cuda_getDevice", "_accelerator_getDeviceIndex"), lambda: current.index)
            | dict.fromkeys(("_cuda_setDevice", "_accelerator_setDeviceIndex"), current.select)
            | dict.fromkeys(("_cuda_exchangeDevice", "_accelerator_exchangeDevice"), current.select)
            | dict.fromkeys(("_cuda_maybeExchangeDevice", "_accelerator_maybeExchangeDevice"), current.select)
            | dict.fromkeys(("_cuda_emptyCache", "_accelerator_emptyCache"), memory.empty_cache)
            | dict.fromkeys(("_cuda_memoryStats", "_accelerator_getDeviceStats"), memory.statistics)
            | dict.fromkeys(("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"), memory.reset_peaks)
            | {
                "_cuda_getDeviceCount": visible_cards,
                "_cuda_getArchFlags": lambda: "sm_{}{}".format(*self._capability),
                "_cuda_getAllocatorBackend": lambda: "native",
                "_cuda_canDeviceAccessPeer": lambda one, other: one != other,
                "_cuda_setMemoryFraction": self._limit_memory,
                "_cuda_getMemoryFraction": lambda _device: self._limit,
                "_cuda_memorySnapshot": lambda *_: {"segments": [], "device_traces": [[]]},
                "_cuda_hostMemoryStats": dict,
                "_cuda_tunableop_is_enabled": _returning(False),
                "_nccl_version": _returning(_NCCL_VERSION),
                "_nccl_version_suffix": _returning(b""),
                "_nccl_unique_id": _returning(b""),
                "_cuda_getCurrentStream": lambda card: (current.streams.get(card, 0), card, _CUDA_TYPE_NUMBER),
                "_cuda_getDefaultStream": lambda card: (0, card, _CUDA_TYPE_NUMBER),
                "_cuda_setStream": set_stream,
                "_cuda_isCurrentStreamCapturing": _returning(False),
                "_accelerator_getAccelerator": lambda: torch.device("cuda"),
                "_accelerator_getStream": lambda card: torch.cuda.current_stream(card),
                "_accelerator_isAllocatorInitialized": _returning(True),
                "_accelerator_getMemoryInfo": self._memory_info,
            }
        )

    def _python_functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions of `torch.cuda` that ask the card's own driver, or the build."""
        major, minor = self._capability
        properties = _Properties(
            name=self._card.name,
            major=major,
            minor=minor,
            total_memory=self._card.memory_bytes or _ASSUMED_CARD.memory_bytes,
            multi_processor_count=self._card.multiprocessors or _ASSUMED_CARD.multiprocessors,
            max_threads_per_multi_processor=_THREADS_OF_MULTIPROCESSOR.get(self._capability, 2048),
            regs_per_multiprocessor=65_536,
            warp_size=32,
            shared_memory_per_block=49_152,
            is_integrated=0,
            is_multi_gpu_board=0,
        )

        def properties_of(_device: Any = None) -> _Properties:
            self._tell_memory()
            return properties

        runtime = SimpleNamespace(cudaMemGetInfo=self._memory_info, **_RUNTIME)
        unmeasured = ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate")
        return (
            dict.fromkeys(("init", "_lazy_init", "check_error"), _nothing)
            | dict.fromkeys(unmeasured, _returning(0))
            | {
                "list_gpu_processes": _returning(""),
                "is_available": _returning(True),
                "is_initialized": _returning(True),
                "_is_in_bad_fork": _returning(False),
                "_lazy_call": lambda callable_, **_: callable_(),
                "device_count": visible_cards,
                "get_device_properties": properties_of,
                "get_device_name": _returning(properties.name),
                "get_device_capability": _returning(self._capability),
                "is_bf16_supported": _returning(major >= 8),
                "is_tf32_supported": _returning(major >= 8),
                "mem_get_info": self._memory_info,
                "device_memory_used": self._used_memory,
                "cudart": lambda: runtime,
                "_exchange_device": self._current.select,
                "_maybe_exchange_device": self._current.select,
                "is_current_stream_capturing": _returning(False),
                "graph_pool_handle": _returning((0, 1)),
            }
        )

    def _tell_memory(self) -> None:
        if not self._is_known:
            gib = (_ASSUMED_CARD.memory_bytes or 0) / (1 << 30)
            self._watcher.add_note(
                f"The code asks for figures of the GPU, and none was chosen: {_ASSUMED_CARD.name}, with "
                f"{gib:.1f} GiB, is assumed."
            )

    def _memory_info(self, device: Any = None) -> tuple[int, int]:
        """Return the free and the total bytes of a card."""
        self._tell_memory()
        total = self._card.memory_bytes or _ASSUMED_CARD.memory_bytes or 0
        index = card_index(device, self._current.index)
        return max(total - self._memory.reserved_bytes(self._current.index if index is None else index), 0), total

    def _used_memory(self, device: Any = None) -> int:
        """Return the bytes of a card that are in use."""
        free, total = self._memory_info(device)
        return total - free

    def _limit_memory(self, fraction: float, _device: int) -> None:
        self._limit = fraction

    def _data_parallel_on_one_card(self) -> dict[str, Callable[..., Any]]:
        """Return the methods of `DataParallel` as on one card: its inputs are moved there, and nothing is scattered."""

        def init(parallel: Any, module: nn.Module, *_: object, **__: object) -> None:
            nn.Module.__init__(parallel)
            parallel.module, parallel.device_ids = module, []

        def forward(parallel: Any, *args: Any, **kwargs: Any) -> Any:
            return self._run_on_one_card(parallel.module, args, module_kwargs=kwargs)

        return {"__init__": init, "forward": forward}

    def _run_on_one_card(
        self,
        module: nn.Module,
        inputs: Any,
        device_ids: object = None,  # one card has the whole batch
        output_device: object = None,
        dim: int = 0,
        module_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return what `module` returns for its inputs, which are moved to the card."""
        self._watcher.add_note("DataParallel is traced on one GPU, which has the whole batch.")
        args, kwargs = map_tensors((inputs, module_kwargs or {}), lambda tensor: tensor.cuda())
        return module(*args, **kwargs) if isinstance(args, tuple) else module(args, **kwargs)

    def _graph_class(self) -> type:
        """Return the class of CUDA graphs, whose operators are run as they are captured, and not again."""
        driver = self

        class CUDAGraph(_Context):
            """A CUDA graph, which was run when it was captured."""

            def capture_begin(self, *_: object, **__: object) -> None:
                """Let the operators that follow run as always."""
                driver._watcher.add_note("What is captured as a CUDA graph is run once, operator by operator.")
                driver._captures.append((driver._memory.events, driver._memory.events))

            def capture_end(self) -> None:
                """Note that the capture is over."""
                driver._captures[-1] = driver._captures[-1][0], driver._memory.events

            def pool(self) -> tuple[int, int]:
                """Return the name of its memory pool."""
                return self.id

            instantiate = replay = reset = enable_debug_mode = debug_dump = _nothing

        return CUDAGraph


_RUNTIME: Final = dict.fromkeys(
    (
        *("cudaProfilerStart", "cudaProfilerStop", "cudaHostRegister", "cudaHostUnregister"),
        *("cudaStreamCreate", "cudaStreamDestroy", "cudaDeviceSynchronize"),
    ),
    _returning(0),
)


def _pool_bytes(allocations: Allocations, begin: int, end: int) -> int:
    """Return the peak bytes of the tensors made between two events, up to the second event."""
    changes = []
    for size, made, freed in zip(allocations.bytes, allocations.made, allocations.freed, strict=True):
        if begin <= made < end:
            changes.append((made, size))
            changes += [(freed, -size)] if made < freed < end else []
    return max(accumulate(size for _, size in sorted(changes)), default=0)


def _set_default_tensor_type(kind: Any) -> None:
    """Make tensors of this type from now on, on a card too."""
    name = host_type(kind)
    if name is None:
        _DEFAULT_TENSOR_TYPE(kind)
        return
    torch.set_default_dtype(TENSOR_TYPES[name].dtype)
    torch.set_default_device("cuda")


_DEFAULT_TENSOR_TYPE: Final[Any] = torch.set_default_tensor_type


@contextmanager
def _restored_defaults() -> Iterator[None]:
    """Restore the default device and number format of new tensors on exit."""
    dtype = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(dtype)
