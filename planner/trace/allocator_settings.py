"""Settings of PyTorch's CUDA caching allocator, in the syntax of its environment variable.

**Source**: `c10/core/AllocatorConfig.h` and `c10/cuda/CUDAAllocatorConfig.h` of PyTorch 2.13.0 (commit cf30153c4c13),
and <https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf>.
"""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, ValidationError

from planner.base import Spec
from planner.errors import SpecError
from planner.memory.segments import LARGE_SEGMENT_BYTES
from planner.units import MIB

_IGNORED_OPTIONS: Final = frozenset(
    {
        "graph_capture_record_stream_reuse",
        "pinned_free_catch_all",
        "pinned_max_cached_size_mb",
        "pinned_max_round_threshold_mb",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",
        "pinned_use_cuda_host_register",
        "release_lock_on_cudamalloc",
    }
)
"""Options for host memory, speed or graph capture, which do not affect eager device memory."""
_UNMODELED_OPTION_HINTS: Final = {
    "large_segment_size_mb": "Omit it: segments of 20 MiB are assumed.",
    "max_non_split_rounding_mb": "Omit it: a slack of 20 MiB is assumed.",
    "per_process_memory_fraction": "Omit it, and give the capacity that it allows.",
    "throw_on_cudamalloc_oom": "Omit it: cached memory is released before the run fails.",
}
_OPTION_SEPARATOR: Final = re.compile(r",(?![^\[]*\])")


def _checked_power_of_two(value: int) -> int:
    """Return `value` if it is a power of two."""
    if value & (value - 1):
        raise ValueError("it must be a power of two")
    return value


class AllocatorSettings(Spec):
    """Options of `PYTORCH_CUDA_ALLOC_CONF` that affect reserved memory; `None` is PyTorch's default.

    **Assumes** that `garbage_collection_threshold` is a fraction of the replayed capacity. PyTorch collects only in a
    process that is limited to a part of the card (`torch.cuda.set_per_process_memory_fraction` below 1), and then the
    threshold is a fraction of that part.
    """

    expandable_segments: bool = False
    max_split_size_bytes: int | None = Field(default=None, ge=LARGE_SEGMENT_BYTES, multiple_of=MIB)
    garbage_collection_threshold: float | None = Field(default=None, gt=0, lt=1)
    roundup_power2_divisions: Annotated[int, Field(ge=1), AfterValidator(_checked_power_of_two)] | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `text` as PyTorch does, such as `expandable_segments:True,max_split_size_mb:128`.

        As in PyTorch, white space is ignored, the last of several values counts, and options that do not affect the
        card's memory are ignored.

        Raises:
            SpecError: If an option is unknown, wrong or not modeled; the error's field is the option's name.
        """
        values: dict[str, object] = {}
        for option, value in _option_values(text):
            if option in _OPTION_READERS:
                field, read = _OPTION_READERS[option]
                values[field] = read(option, value)
                _check_option_value(cls, option, {field: values[field]})
            else:
                _check_ignored_option(option, value)
        return cls.model_validate(values)

    @property
    def text(self) -> str:
        """Return the settings in PyTorch's syntax; empty if all are defaults."""
        split = None if self.max_split_size_bytes is None else self.max_split_size_bytes // MIB
        options = {
            "expandable_segments": self.expandable_segments or None,
            "max_split_size_mb": split,
            "garbage_collection_threshold": self.garbage_collection_threshold,
            "roundup_power2_divisions": self.roundup_power2_divisions,
        }
        return ",".join(f"{name}:{value}" for name, value in options.items() if value is not None)

    def __str__(self) -> str:
        return self.text


DEFAULT_SETTINGS: Final = AllocatorSettings()
"""PyTorch's default allocator settings."""


def _option_values(text: str) -> Iterator[tuple[str, str]]:
    """Yield each option's name and value from `text`."""
    for part in _OPTION_SEPARATOR.split("".join(text.split())):
        option, colon, value = part.partition(":")
        if part and not (option and colon and value):
            raise SpecError(part, "an option needs a name and a value", hint="Write name:value, with commas between.")
        if part:
            yield option, value


def _check_option_value(settings: type[AllocatorSettings], option: str, value: dict[str, object]) -> None:
    """Reject a value that is out of range, naming the option."""
    try:
        settings.model_validate(value)
    except ValidationError as error:
        reason = SpecError.from_validation(error).reason
        raise SpecError(option, reason, hint=_VALUE_HINTS.get(option, "")) from error


def _check_ignored_option(option: str, value: str) -> None:
    """Accept an option without effect on device memory; reject one that is unknown or not modeled."""
    if option in _UNMODELED_OPTION_HINTS:
        raise SpecError(option, "this option is not modeled", hint=_UNMODELED_OPTION_HINTS[option])
    if option == "backend" and value != "native":
        raise SpecError(option, f"the allocator {value} is not modeled", hint="Write native, or omit it.")
    if option != "backend" and option not in _IGNORED_OPTIONS:
        option_names = ", ".join(_OPTION_READERS)
        raise SpecError(option, "PyTorch's allocator has no such option", hint=f"Options are {option_names}.")


def _read_boolean(option: str, value: str) -> bool:
    if value not in ("True", "False"):
        raise SpecError(option, f"must be True or False, not {value}", hint="Write it with a capital first letter.")
    return value == "True"


def _read_integer(option: str, value: str) -> int:
    if value.startswith("["):
        raise SpecError(option, "size intervals are not modeled", hint="Write one number for all sizes.")
    if not (value.isascii() and value.isdigit()):
        raise SpecError(option, f"must be a whole number, not {value}")
    return int(value)


def _read_mebibytes(option: str, value: str) -> int:
    """Return the size in bytes of an option that is written in MiB."""
    return _read_integer(option, value) * MIB


def _read_fraction(option: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise SpecError(option, f"must be a fraction, not {value}") from None


_OPTION_READERS: Final[dict[str, tuple[str, Callable[[str, str], object]]]] = {
    "expandable_segments": ("expandable_segments", _read_boolean),
    "max_split_size_mb": ("max_split_size_bytes", _read_mebibytes),
    "garbage_collection_threshold": ("garbage_collection_threshold", _read_fraction),
    "roundup_power2_divisions": ("roundup_power2_divisions", _read_integer),
}
_VALUE_HINTS: Final = {
    "max_split_size_mb": "The minimum is 20 MiB.",
    "garbage_collection_threshold": "It must be between 0 and 1.",
    "roundup_power2_divisions": "Write 1, 2, 4, 8 or another power of two.",
}
