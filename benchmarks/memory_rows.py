"""A row of the published memory measurements, its prediction, or the reason why there is none."""

import re
from typing import Final, NamedTuple, Self

from planner.dtypes import KV_FORMATS, SCHEMES
from planner.errors import PlannerError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_gpu
from planner.memory.chance import ByteInterval

_SCHEMES: Final = {
    "unstated (fp32 by the numbers)": "fp32",
    "int8 (GPTQ)": "gptq8-128",
    "int4 (GPTQ, g128)": "gptq4-128",
    "int4 (GPTQ)": "gptq4-128",
    "int4 (AWQ, g128)": "awq4-128",
    "fp8 (block)": "fp8-block128",
    "nf4 double-quant (bnb)": "nf4-dq",
    "fp4 (bnb)": "nf4",
}
_GGUF_SIZES: Final = ("Small", "Medium", "Large")


_CARDS: Final = {
    "A100": "a100-sxm4-80gb",
    "A100-40GB": "a100-sxm4-40gb",
    "A100-80GB": "a100-sxm4-80gb",
    "A100-SXM-80GB": "a100-sxm4-80gb",
    "A800-80GB": "a800-sxm4-80gb",
    "H100-80GB": "h100-sxm5-80gb",
    "V100-16GB": "tesla-v100-sxm2-16gb",
    "V100-32GB": "tesla-v100-sxm2-32gb",
}
"""Cards whose form is not stated, which the workspaces and the context of a process do not depend on."""


def card_named(written: str, hardware: HardwareCatalog) -> Gpu | None:
    """Return the card that a source calls `written`, None if it names none or several kinds."""
    name = written.split(" (")[0]
    try:
        return resolve_gpu(hardware, _CARDS.get(name, name))
    except PlannerError:
        return None


def scheme_named(precision: str) -> str | None:
    """Return the command line's name of the weight format that a source calls `precision`, None if it has none."""
    if precision in _SCHEMES:
        return _SCHEMES[precision]
    plain, _, size = precision.split(" (")[0].partition(" - ")
    if "(GGUF)" in precision:
        sized = f"{plain}_{size[0]}" if size in _GGUF_SIZES else plain
        return next((name for name in (sized, plain, plain.upper()) if name in SCHEMES), None)
    of_bitsandbytes = "bnb" in precision and "torchao" not in precision
    of_no_library = "(" not in precision or "stated elsewhere" in precision
    return plain if plain in SCHEMES and (of_bitsandbytes or of_no_library) else None


def cache_formats(kv_format: str) -> tuple[str, str] | None:
    """Return the command line's names of the formats of keys and of values, None if one has no such name."""
    keys, _, values = kv_format.partition("/")
    names = tuple({"f16": "fp16"}.get(name, name) for name in (keys, values or keys))
    return (names[0], names[1]) if all(name in KV_FORMATS for name in names) else None


class Row(NamedTuple):
    """A published memory measurement with the fields that the comparison needs."""

    id: str
    kind: str
    model: str
    gpu: str
    cards: int
    precision: str
    compute: str
    optimizer: str
    technique: str
    batch: str
    length: str
    other: str
    kv_format: str
    measured_gib: float
    metric: str
    scope: str
    confidence: str
    complete: bool

    @classmethod
    def from_csv(cls, record: dict[str, str]) -> Self:
        """Return the row that a record of the table describes."""
        cards = record["n_gpus"]
        return cls(
            id=record["id"],
            kind=record["kind"],
            model=record["model"].split(" (")[0],
            gpu=record["gpu"],
            cards=int(cards) if cards.isdigit() else 1,
            precision=record["precision"],
            compute=record["compute_precision"],
            optimizer=record["optimizer"],
            technique=record["technique"],
            batch=record["batch_size"],
            length=record["seq_len"],
            other=record["image_size_or_other"],
            kv_format=record["kv_dtype"],
            measured_gib=float(record["measured_gib"]),
            metric=record["metric"],
            scope=record["mem_scope"],
            confidence=record["confidence"],
            complete=record["config_complete"] == "yes",
        )

    @property
    def strict(self) -> bool:
        """Return whether the row belongs to the strictest set: confidence A and a complete configuration."""
        return self.confidence == "A" and self.complete

    @property
    def scheme(self) -> str | None:
        """Return the weight format under its name on the command line, None if it has none."""
        return scheme_named(self.precision)

    @property
    def family(self) -> str:
        """Return the source's prefix."""
        return re.sub(r"[-_]?\d+$", "", self.id)


class Predicted(NamedTuple):
    """The estimated bytes for a row, a description of the estimate, and its interval if it is uncertain.

    `has_profile` is False for a program that the planner has no profile of: its own modules are written down here.
    """

    bytes: int
    how: str
    low: int | None = None
    high: int | None = None
    has_profile: bool = True

    @property
    def interval(self) -> ByteInterval | None:
        """Return the stated interval, or None if the bytes are certain."""
        return None if self.low is None or self.high is None else ByteInterval(self.low, self.bytes, self.high)


class Excluded(NamedTuple):
    """The reason why a row is not covered."""

    reason: str
