"""The words that queries of accelerators know: what each reads from a record, in which unit."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Final

from planner.hardware.derived import DERIVED_FIGURES, DerivedFigure
from planner.hardware.gpu import Gpu
from planner.hardware.vocabulary import Facet, Known, QueryField, Value, Vocabulary, parse_version
from planner.units import GB, GIB

_TERA: Final = 1e12
_NVLINK: Final = re.compile(r"NVLink(?!-C2C)")  # C2C joins a GPU to its processor, not to other GPUs


def _rate(dtype: str) -> Callable[[Gpu, Known], Value]:
    def read(gpu: Gpu, _: Known) -> Value:
        rate = gpu.rate(dtype)
        return None if rate is None else rate.ops_per_s / _TERA

    return read


def _price(word: str) -> Callable[[Gpu, Known], Value]:
    def read(gpu: Gpu, known: Known) -> Value:
        return known.price(gpu, word)

    return read


def _memory_gib(gpu: Gpu, _: Known) -> Value:
    return None if gpu.memory_bytes is None else gpu.memory_bytes / GIB


def _bandwidth(gpu: Gpu, _: Known) -> Value:
    return None if gpu.bandwidth_bytes_per_s is None else gpu.bandwidth_bytes_per_s / GB


@lru_cache(maxsize=1024)
def _has_nvlink(interconnect: str) -> bool:
    return _NVLINK.search(interconnect) is not None


def _nvlink(gpu: Gpu, _: Known) -> Value:
    return None if gpu.interconnect is None else _has_nvlink(gpu.interconnect)


@lru_cache(maxsize=1024)
def _capability_order(capability: str) -> tuple[int, ...] | str:
    return parse_version(capability) or capability


def _compute_capability(gpu: Gpu, _: Known) -> Value:
    return None if gpu.compute_capability is None else _capability_order(gpu.compute_capability)


def _derived(figure: DerivedFigure) -> QueryField[Gpu]:
    at_launch = ", at launch" if figure.priced else ""
    return QueryField(
        figure.key,
        figure.title,
        figure.unit,
        f"{figure.help}{at_launch}",
        "number",
        lambda gpu, _: figure.value(gpu),
    )


PRICE_WORDS: Final = {
    "street": ("Street price", "median of what shops ask"),
    "used": ("Used price", "median of what is asked second hand"),
    "rent": ("Rent", "lowest price of one card and hour, on demand"),
}
"""The words of prices that are not in a card's record, with titles and what they stand for; kinds are never mixed."""

QUERY_FIELDS: Final[Mapping[str, QueryField[Gpu]]] = {
    field.name: field
    for field in (
        QueryField("name", "Name", "", "as sold", "text", lambda gpu, _: gpu.name),
        QueryField(
            "vendor", "Vendor", "", "NVIDIA, AMD, Intel, Apple, Google or AWS", "text", lambda gpu, _: gpu.vendor
        ),
        QueryField(
            "segment",
            "Segment",
            "",
            "consumer, workstation, datacenter, edge, soc or tpu",
            "text",
            lambda gpu, _: gpu.segment,
        ),
        QueryField("architecture", "Architecture", "", "such as Ada Lovelace", "text", lambda gpu, _: gpu.architecture),
        QueryField("year", "Year", "", "of release", "number", lambda gpu, _: gpu.year),
        QueryField("memory_gib", "Memory", "GiB", "physical memory of the whole card", "number", _memory_gib),
        QueryField("bandwidth", "Bandwidth", "GB/s", "memory bandwidth of the whole card", "number", _bandwidth),
        QueryField("fp32", "FP32", "TFLOPS", "dense FP32 rate", "number", _rate("fp32")),
        QueryField("bf16_dense", "BF16", "TFLOPS", "dense BF16 rate", "number", _rate("bf16")),
        QueryField("fp16_dense", "FP16", "TFLOPS", "dense FP16 rate", "number", _rate("fp16")),
        QueryField("fp8_dense", "FP8", "TFLOPS", "dense FP8 rate", "number", _rate("fp8")),
        QueryField("int8_dense", "INT8", "TOPS", "dense INT8 rate", "number", _rate("int8")),
        QueryField("power", "Power", "W", "board power", "number", lambda gpu, _: gpu.board_power_watts),
        QueryField(
            "price", "Launch price", "USD", "list price at launch", "number", lambda gpu, _: gpu.launch_price_usd
        ),
        QueryField(
            "compute_capability",
            "Capability",
            "",
            "NVIDIA compute capability, compared as a version; AMD target such as gfx942",
            "version",
            _compute_capability,
        ),
        *(QueryField(word, title, "USD", said, "number", _price(word)) for word, (title, said) in PRICE_WORDS.items()),
        QueryField(
            "paid", "Paid", "USD", "what you paid for one of your own", "number", lambda gpu, _: gpu.purchase_price_usd
        ),
        *(_derived(figure) for figure in DERIVED_FIGURES.values()),
        QueryField("nvlink", "NVLink", "", "true where cards can be joined by NVLink", "flag", _nvlink),
        QueryField("mig", "MIG", "", "true where the card can be split into instances", "flag", lambda gpu, _: gpu.mig),
        QueryField(
            "devices",
            "Devices",
            "",
            "into how many devices frameworks see it split",
            "number",
            lambda gpu, _: gpu.device_count,
        ),
        QueryField("laptop", "Laptop", "", "true for parts of laptops", "flag", lambda gpu, _: gpu.is_laptop),
        QueryField(
            "preliminary", "Preliminary", "", "true where figures may change", "flag", lambda gpu, _: gpu.preliminary
        ),
        QueryField(
            "certainty",
            "Certainty",
            "",
            "confirmed where two documents agree; single-source, conflicting, preliminary or yours",
            "text",
            lambda gpu, _: gpu.provenance.certainty,
        ),
        QueryField(
            "fits",
            "Fits",
            "",
            "the plan's verdict: fits, tight or does-not-fit",
            "text",
            lambda gpu, known: known.judged(gpu).verdict,
        ),
        QueryField(
            "hours",
            "Hours of my job",
            "h",
            "of a run of the plan's job; of a month's work for services and daily hours",
            "number",
            lambda gpu, known: known.judged(gpu).hours,
        ),
        QueryField(
            "job_cost",
            "Cost of my job",
            "USD",
            "of a run, or of a month, at the cheapest offer that can be compared",
            "number",
            lambda gpu, known: known.judged(gpu).job_cost_usd,
        ),
        QueryField(
            "job_cost_tokens",
            "Cost of a million tokens",
            "USD",
            "of the job's work: compares cards that do different amounts of it in a month",
            "number",
            lambda gpu, known: known.judged(gpu).usd_per_million_tokens,
        ),
    )
}
JUDGED_FIELDS: Final = ("fits", "hours", "job_cost", "job_cost_tokens")
"""The words that need a plan."""
GPU_WORDS: Final = Vocabulary(
    "accelerators",
    QUERY_FIELDS,
    {
        name: Facet(name, QUERY_FIELDS[name].title, f"{name}s", attrgetter(name))
        for name in ("vendor", "segment", "architecture")
    },
    JUDGED_FIELDS,
    tuple(PRICE_WORDS),
)
"""What accelerators are asked for and counted by."""
