"""The door: which format a text is, and what it says. A text may hold several, and each is read."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from planner.errors import LogError
from planner.memory.logs.llama_cpp import LlamaCppFacts, read_llama_cpp, read_llama_cpp_facts
from planner.memory.logs.nvidia_smi import read_nvidia_smi
from planner.memory.logs.reading import LogFormat, LogReading, Measured
from planner.memory.logs.text import MAX_BYTES, LogText
from planner.memory.logs.torch import read_torch_errors, read_torch_snapshot, read_torch_stats, read_torch_summary
from planner.memory.logs.training import read_training
from planner.memory.logs.vllm import VllmFacts, read_vllm, read_vllm_facts
from planner.units import MIB

Reader = Callable[[LogText], Iterator[Measured]]

MAX_MEASURED: Final = 1_000
"""The most amounts that are kept of one text."""


class Format(NamedTuple):
    """A format that is read: its reader, and what a person calls it."""

    read: Reader
    title: str


FORMATS: Final[Mapping[LogFormat, Format]] = {
    "vllm": Format(read_vllm, "start-up lines of vLLM"),
    "llama.cpp": Format(read_llama_cpp, "buffer lines of llama.cpp"),
    "torch-summary": Format(read_torch_summary, "torch.cuda.memory_summary()"),
    "torch-stats": Format(read_torch_stats, "torch.cuda.memory_stats()"),
    "torch-snapshot": Format(read_torch_snapshot, "a PyTorch memory snapshot as JSON"),
    "torch-out-of-memory": Format(read_torch_errors, "an out-of-memory message of PyTorch"),
    "training": Format(read_training, "memory metrics of the Trainer, PEFT's examples or torchtune"),
    "nvidia-smi": Format(read_nvidia_smi, "nvidia-smi, as a table or with --format=csv"),
}
_SPLITTING: Final = ("vllm", "llama.cpp")


def read_log(text: str) -> LogReading:
    """Return what `text`, printed by a run, says about memory.

    Raises:
        LogError: If it is too long, or in none of the formats that are read; the hint lists them.
    """
    if len(text) > MAX_BYTES:
        hint = f"Take the part about memory: {MAX_BYTES // MIB} MiB at most."
        raise LogError(f"the log has {len(text):,} characters", hint)
    log = LogText(text)
    found = {name: tuple(form.read(log))[:MAX_MEASURED] for name, form in FORMATS.items()}
    formats = tuple(sorted((name for name in FORMATS if found[name]), key=lambda name: -len(found[name])))
    if not formats:
        known = "; ".join(form.title for form in FORMATS.values())
        raise LogError("nothing about memory was recognised in this text", f"What can be read: {known}.")
    measured = tuple(item for name in formats for item in found[name])
    return _reading(log, formats, measured)


def _reading(log: LogText, formats: tuple[LogFormat, ...], measured: tuple[Measured, ...]) -> LogReading:
    vllm = read_vllm_facts(log) if "vllm" in formats else VllmFacts()
    llama = read_llama_cpp_facts(log) if "llama.cpp" in formats else LlamaCppFacts()
    devices = tuple(dict.fromkeys(item.device for item in measured if item.device is not None and item.term))
    return LogReading(
        formats=formats,
        measured=measured,
        engine=_engine(formats),
        version=vllm.version or llama.version,
        model=vllm.model or llama.model,
        devices=llama.cards or devices,
        splits_model=len(devices) > 1 and any(name in _SPLITTING for name in formats),
        context_length=vllm.context_length or llama.context_length,
        cache_tokens=vllm.cache_tokens,
        notes=("Only the first part of the log was read: it is very long.",) if log.is_cut else (),
    )


def _engine(formats: tuple[LogFormat, ...]) -> Literal["pytorch", "vllm", "llama.cpp"] | None:
    if "vllm" in formats:
        return "vllm"
    if "llama.cpp" in formats:
        return "llama.cpp"
    return "pytorch" if any(name.startswith("torch") or name == "training" for name in formats) else None
