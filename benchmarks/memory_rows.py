"""A row of the published memory measurements, its prediction, or the reason why there is none."""

import re
from typing import NamedTuple, Self

from planner.memory.chance import ByteInterval


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
    def family(self) -> str:
        """Return the source's prefix."""
        return re.sub(r"[-_]?\d+$", "", self.id)


class Predicted(NamedTuple):
    """The estimated bytes for a row, a description of the estimate, and its interval if it is uncertain."""

    bytes: int
    how: str
    low: int | None = None
    high: int | None = None

    @property
    def interval(self) -> ByteInterval | None:
        """Return the stated interval, or None if the bytes are certain."""
        return None if self.low is None or self.high is None else ByteInterval(self.low, self.bytes, self.high)


class Excluded(NamedTuple):
    """The reason why a row is not covered."""

    reason: str
