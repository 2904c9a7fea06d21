"""Published speeds as rows, and the catalog names of their models and cards."""

import csv
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, Self

from throughput_names import CONFIGS, GPUS, MODELS

from planner.errors import PlannerError
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_gpu
from planner.models.architecture import Architecture
from planner.models.catalog import resolve_model
from planner.models.readers.config_json import read_config
from planner.performance.efficiency import family_of
from planner.plan.catalog import Catalog

TRUTH: Final = Path(__file__).resolve().parent.parent / "tests" / "truth" / "throughput.csv"


class Row(NamedTuple):
    """A published speed; numbers that the source does not state are None."""

    id: str
    task: str
    model: str
    parameters: float | None
    active_parameters: float | None
    gpu: str
    cards: int
    precision: str
    batch: int | None
    micro_batch: int | None
    length: int | None
    output_length: int | None
    parallelism: str
    recompute: str
    framework: str
    value: float | None
    unit: str
    quality: str
    notes: str

    @classmethod
    def from_csv(cls, record: dict[str, str]) -> Self:
        """Return the row that a record of the table describes."""
        return cls(
            id=record["id"],
            task=record["task"],
            model=record["model"],
            parameters=_scaled_number(record["params_b"]),
            active_parameters=_scaled_number(record["active_params_b"]),
            gpu=record["gpu"],
            cards=_leading_number(record["n_gpus"]) or 1,
            precision=record["precision"],
            batch=_leading_number(record["batch_global"]) or _sequences(record["batch_global"], record["seq_len"]),
            micro_batch=_leading_number(record["batch_micro"]),
            length=_leading_number(record["seq_len"]),
            output_length=_leading_number(record["output_len"]),
            parallelism=record["parallelism"],
            recompute=record["recompute"],
            framework=record["framework"],
            value=float(record["value"]) if record["value"] else None,
            unit=record["unit"],
            quality=record["quality"],
            notes=record["notes"],
        )

    @property
    def source(self) -> str:
        """Return the prefix that rows of one source share."""
        return self.id.partition("-")[0]


class Excluded(NamedTuple):
    """The reason why a row is not compared."""

    reason: str


class Speeds(NamedTuple):
    """Speed of a row in its own unit, estimated and by two rules of thumb.

    The rules are 6ND at 40 % of the dense rate, and the bytes that have to be read at the whole bandwidth. `low` and
    `high` bound the estimate, `assumed` names what the source does not state.
    """

    ours: float
    flat_mfu: float
    bandwidth: float
    low: float | None = None
    high: float | None = None
    assumed: str = ""


def truth(path: Path | None = None) -> list[Row]:
    """Return the published speeds of the table at `path`, by default the bundled one."""
    with (path or TRUTH).open(encoding="utf-8", newline="") as stream:
        return [Row.from_csv(record) for record in csv.DictReader(stream)]


def gpu_of(row: Row, catalog: Catalog) -> Gpu | Excluded:
    """Return the card of a row, ignoring text in brackets after its name, or the reason why it is unknown."""
    key = row.gpu, id(catalog)
    if key not in _CARDS:
        _CARDS[key] = _card_named(row.gpu, catalog)
    return _CARDS[key]


_CARDS: Final[dict[tuple[str, int], Gpu | Excluded]] = {}
_NETWORKS: Final[dict[tuple[str, int], Architecture | None]] = {}
"""What was looked up before: a name that is not found is compared with every other one."""


def _card_named(name: str, catalog: Catalog) -> Gpu | Excluded:
    for text in (name, name.partition(" (")[0]):
        try:
            return resolve_gpu(catalog.hardware, GPUS.get(text, text))
        except PlannerError:
            continue
    return Excluded(f"card not in the catalog: {name}")


def architecture_of(row: Row, catalog: Catalog, models: Mapping[str, str] = MODELS) -> Architecture | Excluded:
    """Return the network of a row by `models`, a table from names to ids, or by its name; else the reason."""
    name = _name_with_size(row)
    if name in CONFIGS:
        return _built(name)
    return network_named(models.get(name) or name, catalog) or Excluded(f"shape not known: {row.model}")


def network_named(name: str, catalog: Catalog) -> Architecture | None:
    """Return the network of the catalog that `name` means, or None."""
    key = name, id(catalog)
    if key not in _NETWORKS:
        try:
            _NETWORKS[key] = catalog.models.model(resolve_model(catalog.models, name))
        except PlannerError:
            _NETWORKS[key] = None
    return _NETWORKS[key]


def family(row: Row, catalog: Catalog) -> str:
    """Return the family of the row's card as text, or the card's name if it is not in the catalog."""
    gpu = gpu_of(row, catalog)
    return row.gpu if isinstance(gpu, Excluded) else family_of(gpu)


def _name_with_size(row: Row) -> str:
    """Return the model's name, with its size if the name alone is ambiguous."""
    if row.model == "Llama 2" and row.parameters:
        return "LLAMA2-7B" if row.parameters < 1e10 else "LLAMA2-13B"
    return row.model


@cache
def _built(name: str) -> Architecture:
    return read_config(CONFIGS[name], name)


def _scaled_number(text: str) -> float | None:
    return float(text) * 1e9 if text else None


def _sequences(text: str, length: str) -> int | None:
    """Return the sequences of a batch stated in millions of tokens."""
    found = re.fullmatch(r"(\d+)M tokens", text)
    return int(found[1]) * 2**20 // int(length) if found and length.isdigit() else None


def _leading_number(text: str) -> int | None:
    """Return the number that a field begins with; "max 4096 (unpacked)" and "16M tokens" state none."""
    found = re.fullmatch(r"(\d+)(\.0)?", text)
    return int(found[1]) if found else None
