"""Detection of log formats, and reading of a log by the reader of every format that occurs in it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from planner.errors import LogError
from planner.memory.logs.figures import read_figures, read_llama_bench_facts
from planner.memory.logs.llama_cpp import LlamaCppFacts, read_llama_cpp, read_llama_cpp_facts
from planner.memory.logs.nvidia_smi import read_nvidia_smi
from planner.memory.logs.reading import MAX_BYTES, LogFormat, LoggedAmount, LoggedFigure, LogReading, LogText
from planner.memory.logs.serving import read_metric_amounts
from planner.memory.logs.torch import (
    read_torch_errors,
    read_torch_snapshot,
    read_torch_stats,
    read_torch_summary,
    read_training,
)
from planner.memory.logs.vllm import VllmFacts, read_vllm, read_vllm_facts
from planner.units import MIB

Reader = Callable[[LogText], Iterator[LoggedAmount]]

MAX_MEASURED: Final = 1_000
"""Maximum number of amounts read from one log and format."""


class FormatReader(NamedTuple):
    """Reader function of one log format, with the format's title for users; formats of speeds alone have no amounts."""

    read: Reader
    title: str


def _no_amounts(_text: LogText) -> Iterator[LoggedAmount]:
    return iter(())


FORMATS: Final[Mapping[LogFormat, FormatReader]] = {
    "vllm": FormatReader(read_vllm, "start-up lines of vLLM"),
    "llama.cpp": FormatReader(read_llama_cpp, "buffer lines of llama.cpp"),
    "torch-summary": FormatReader(read_torch_summary, "torch.cuda.memory_summary()"),
    "torch-stats": FormatReader(read_torch_stats, "torch.cuda.memory_stats()"),
    "torch-snapshot": FormatReader(read_torch_snapshot, "a PyTorch memory snapshot as JSON"),
    "torch-out-of-memory": FormatReader(read_torch_errors, "an out-of-memory message of PyTorch"),
    "training": FormatReader(read_training, "memory metrics of the Trainer, PEFT's examples or torchtune"),
    "nvidia-smi": FormatReader(read_nvidia_smi, "nvidia-smi, as a table or with --format=csv"),
    "llama-bench": FormatReader(_no_amounts, "llama-bench"),
    "llama-batched-bench": FormatReader(_no_amounts, "llama-batched-bench"),
    "serving-benchmark": FormatReader(_no_amounts, "the table of vllm bench serve"),
    "serving-metrics": FormatReader(read_metric_amounts, "a scrape of the metrics of vLLM, SGLang or TensorRT-LLM"),
    "serving-results": FormatReader(
        _no_amounts, "result files of vllm bench serve, SGLang's bench_serving, guidellm, AIPerf or GenAI-Perf"
    ),
    "step-times": FormatReader(_no_amounts, "times of steps"),
}
_SPLITTING: Final = ("vllm", "llama.cpp")
_OF_LLAMA_CPP: Final = ("llama.cpp", "llama-bench", "llama-batched-bench")
_OF_PYTORCH: Final = ("torch-summary", "torch-stats", "torch-snapshot", "torch-out-of-memory", "training", "step-times")


def read_log(text: str) -> LogReading:
    """Return the memory amounts, speeds, engine, model and devices in the log `text` of a run.

    Raises:
        LogError: If it is too long, or in no supported format; the hint lists the formats.
    """
    if len(text) > MAX_BYTES:
        hint = f"Cut it down to the lines about memory: at most {MAX_BYTES // MIB} MiB."
        raise LogError(f"the log has {len(text):,} characters", hint)
    log = LogText(text)
    amounts = {name: tuple(format_reader.read(log))[:MAX_MEASURED] for name, format_reader in FORMATS.items()}
    figures = read_figures(log)
    found = {name: len(amounts[name]) + len(figures.get(name, ())) for name in FORMATS}
    formats = tuple(sorted((name for name in FORMATS if found[name]), key=lambda name: -found[name]))
    if not formats:
        known = "; ".join(format_reader.title for format_reader in FORMATS.values())
        raise LogError("no memory amounts or speeds were recognized in this text", f"Supported formats: {known}.")
    measured = tuple(item for name in formats for item in amounts[name])
    return _log_reading(log, formats, measured, tuple(item for name in formats for item in figures.get(name, ())))


def _log_reading(
    log: LogText,
    formats: tuple[LogFormat, ...],
    measured: tuple[LoggedAmount, ...],
    figures: tuple[LoggedFigure, ...],
) -> LogReading:
    build, file, card = read_llama_bench_facts(log) if "llama-bench" in formats else (None, None, None)
    vllm = read_vllm_facts(log) if "vllm" in formats else VllmFacts()
    llama = read_llama_cpp_facts(log) if "llama.cpp" in formats else LlamaCppFacts()
    devices = tuple(dict.fromkeys(item.device for item in measured if item.device is not None and item.term))
    return LogReading(
        formats=formats,
        measured=measured,
        engine=_engine_of_formats(formats),
        version=vllm.version or llama.version or build,
        model=vllm.model or llama.model or file,
        devices=llama.cards or devices or ((card,) if card else ()),
        splits_model=len(devices) > 1 and any(name in _SPLITTING for name in formats),
        context_length=vllm.context_length or llama.context_length,
        cache_tokens=vllm.cache_tokens
        or next((round(figure.value) for figure in figures if figure.name == "cache-tokens"), None),
        figures=figures,
        notes=("The log is too long to be read completely: only its first part was used.",) if log.is_cut else (),
    )


def _engine_of_formats(formats: tuple[LogFormat, ...]) -> Literal["pytorch", "vllm", "llama.cpp"] | None:
    """Return the engine that writes logs of `formats`, None if all of them may be of any engine."""
    if "vllm" in formats:
        return "vllm"
    if any(name in _OF_LLAMA_CPP for name in formats):
        return "llama.cpp"
    return "pytorch" if any(name in _OF_PYTORCH for name in formats) else None
