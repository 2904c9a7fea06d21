"""Writing of catalog records from a table of figures or a folder of config.json files; for maintainers.

    python benchmarks/catalog_update.py cards FIGURES.csv
    python benchmarks/catalog_update.py models FOLDER --file qwen.json --family "Qwen 3"
        --source owner/repository@commit:path/ --as-of 2026-11-23

Each record is checked as the program checks it; what cannot be read is listed with the reason and not written.
"""

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from planner.dtypes import SCHEMES
from planner.errors import PlannerError
from planner.hardware.gpu import Gpu
from planner.models.catalog import ModelRecord, load_models
from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.config_json import quantization_scheme, read_config
from planner.paths import catalog_dir
from planner.units import GB, GIB, MIB

_RECORD: Final = re.compile(r"^  \{\n.*?^  \}", re.MULTILINE | re.DOTALL)
_RATE: Final = re.compile(
    r"(?P<dtype>\w+) (?P<amount>[\d.]+)(?P<cores>\*cores)? (?P<unit>vector|tensor)(?: (?P<accumulate>\w+))?"
)
_LISTS: Final = ("rates", "figure_notes", "notes")
_LARGE: Final = 1e6


def record_text(record: Mapping[str, Any]) -> str:
    """Return a record as the catalog's files have it: a line for each field, rate, source and note."""
    lines = []
    for name, value in record.items():
        if name in _LISTS and value:
            inner = ",\n".join(f"      {_json(each)}" for each in value)
            lines.append(f'    "{name}": [\n{inner}\n    ]')
        else:
            lines.append(f'    "{name}": {_json(value)}')
    return "  {\n" + ",\n".join(lines) + "\n  }"


def _json(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{name}": {_json(each)}' for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    if isinstance(value, float) and value >= _LARGE:
        digits, _, power = f"{Decimal(repr(value)):e}".partition("e+")
        return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}e{power}"
    return json.dumps(value, ensure_ascii=False)


def write_records(path: Path, records: Mapping[str, Mapping[str, Any]]) -> None:
    """Write `records` into the list in `path`: in the place of the record with the same id, else at the end."""
    texts = {
        json.loads(text)["id"]: text
        for text in (_RECORD.findall(path.read_text(encoding="utf-8")) if path.exists() else ())
    }
    texts |= {name: record_text(record) for name, record in records.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(texts.values()) + "\n]\n", encoding="utf-8")


def _text(cell: str) -> str:
    return cell


def _number(cell: str) -> int | float:
    value = float(cell)
    return int(value) if value.is_integer() else value


def _flag(cell: str) -> bool:
    return {"yes": True, "no": False}[cell]


def _list(cell: str) -> list[str]:
    return [each.strip() for each in cell.split("|")]


def _scaled(unit: float) -> Callable[[str], float]:
    return lambda cell: float(Decimal(cell) * Decimal(unit))


def _whole(unit: int) -> Callable[[str], int]:
    return lambda cell: int(Decimal(cell) * unit)


_COLUMNS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    **{
        name: (name, _text)
        for name in ("id", "name", "vendor", "segment", "architecture", "announced", "released", "memory_type")
    },
    "aliases": ("aliases", _list),
    "memory_bus_bits": ("memory_bus_bits", _number),
    "bandwidth_gb_per_s": ("bandwidth_bytes_per_s", _scaled(GB)),
    "unified_memory": ("unified_memory", _flag),
    "device_count": ("device_count", _number),
    "shader_cores": ("shader_cores", _number),
    "tensor_cores": ("tensor_cores", _number),
    "boost_clock_mhz": ("boost_clock_hz", _scaled(1e6)),
    "l1_cache_mib": ("l1_cache_bytes", _whole(MIB)),
    "l2_cache_mib": ("l2_cache_bytes", _whole(MIB)),
    "compute_capability": ("compute_capability", _text),
    "board_power_watts": ("board_power_watts", _number),
    "form_factor": ("form_factor", _text),
    "interconnect": ("interconnect", _text),
    "mig": ("mig", _flag),
    "ecc": ("ecc", _flag),
    "launch_price_usd": ("launch_price_usd", _number),
    "preliminary": ("preliminary", _flag),
    "notes": ("notes", _list),
}
"""Columns of a table of figures: the field of the record, and the value of a cell. Empty cells are left out.

Further columns: `memory_gib` (with `memory_label` where it is not sold by this number), `rates` (in 10¹² a second,
`fp32 15.7 vector; fp16 125 tensor fp32`, or `fp32 2*cores vector`, times the boost clock), and `certainty`, `source`
and `as_of`. Several names or notes are separated by `|`.
"""


def card_record(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the record that a row of a table of figures describes.

    Raises:
        ValueError: If a cell is not of its column's form, or the record does not validate.
    """
    unknown = row.keys() - _COLUMNS.keys() - {"memory_gib", "memory_label", "rates", "certainty", "source", "as_of"}
    if unknown:
        raise ValueError(f"unknown column {sorted(unknown)[0]!r}")
    told = {"certainty": row["certainty"], "source": row["source"], "as_of": row["as_of"]}
    read = {
        field: value(row[column].strip()) for column, (field, value) in _COLUMNS.items() if row.get(column, "").strip()
    }
    gib = row["memory_gib"].strip()
    memory = int(Decimal(gib) * GIB) if gib else None
    figures = read | {
        "memory_label": row.get("memory_label") or (f"{gib} GB" if gib else "not published"),
        "memory_bytes": memory,
        "rates": [_rate(each.strip(), read, told) for each in row["rates"].split(";") if each.strip()],
        "provenance": {"basis": "published"} | told,
        "figure_notes": [_counted(gib, told)] if gib else [],
    }
    record = {
        name: figures[name] for name in Gpu.model_fields if figures.get(name) or name in ("memory_bytes", "rates")
    }
    Gpu.model_validate_json(json.dumps(record))
    return record


def _counted(gib: str, told: Mapping[str, str]) -> dict[str, Any]:
    formula = f"{gib} × 2^30 bytes (the label counts GiB of DRAM)"
    return {"field": "memory_bytes", "provenance": {"basis": "derived"} | told | {"formula": formula}}


def _rate(text: str, figures: Mapping[str, Any], told: Mapping[str, str]) -> dict[str, Any]:
    found = _RATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a rate, such as fp16 125 tensor fp32")
    rate: dict[str, Any] = {"dtype": found["dtype"]}
    if found["cores"]:
        cores, clock = figures["shader_cores"], figures["boost_clock_hz"]
        formula = f"{found['amount']} FLOP × {cores} cores × {clock / GB:g} GHz (boost)"
        rate["ops_per_s"] = float(Decimal(found["amount"]) * cores * Decimal(clock))
    else:
        rate["ops_per_s"] = float(Decimal(found["amount"]) * 10**12)
    rate["unit"] = found["unit"]
    if found["accumulate"]:
        rate["accumulate"] = found["accumulate"]
    if found["cores"]:
        rate["provenance"] = {"basis": "derived"} | told | {"formula": formula}
    return rate


def card_path(folder: Path, vendor: str, architecture: str) -> Path:
    """Return the file of a vendor's architecture: the one that has it, else one of its own."""
    own = folder / "gpus" / vendor.lower().replace(" ", "-")
    for path in sorted(own.glob("*.json")):
        if any(each["architecture"] == architecture for each in json.loads(path.read_text(encoding="utf-8"))):
            return path
    return own / f"{re.sub(r'[^a-z0-9.]+', '-', architecture.lower()).strip('-')}.json"


def update_cards(table: Path, folder: Path) -> list[str]:
    """Write a record for each row of `table` to the catalog in `folder`, and return a line on each row."""
    said = []
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        try:
            record = card_record(row)
        except (ValueError, KeyError) as error:
            said.append(f"refused  {row.get('id')}: {error}")
            continue
        path = card_path(folder, record["vendor"], record["architecture"])
        write_records(path, {record["id"]: record})
        said.append(f"written  {record['id']}: {path.relative_to(folder)}")
    return said


_FORMAT_SUFFIX: Final = re.compile(r"(-(FP8|NVFP4|BF16|AWQ|GPTQ\S*|FP8-Static-PerTensor))+$")
_QUANTIZED: Final = re.compile(r"FP8|FP4|AWQ|GPTQ|int[48]", re.IGNORECASE)
_FORMAT_FIELDS: Final = ("torch_dtype", "dtype", "quantization_config")


def config_name(path: Path) -> str:
    """Return the model's name that a file's name says: `owner--model_config.json`, or `owner/model/config.json`."""
    if path.name == "config.json":
        return "/".join(path.parts[-3:-1])
    return path.name.removesuffix("config.json").rstrip("_.-").replace("--", "/", 1)


def model_record(path: Path, family: str, source: str, as_of: str) -> dict[str, Any]:
    """Return the record of the model whose config.json `path` is, with its parameters counted by the reader.

    Raises:
        PlannerError: If no reader covers it.
        ValueError: If the format of its checkpoint cannot be told.
    """
    config = json.loads(path.read_text(encoding="utf-8"))
    told_format = _drop_layer_lists(config)
    architecture = read_config(config, str(path))
    if told_format and architecture.quantization is None:
        raise ValueError("the format of the checkpoint is not one that the reader knows")
    if not told_format and _QUANTIZED.search(config_name(path)):
        raise ValueError("its name says a format that its configuration does not")
    told = f"{source}{path.name if path.name != 'config.json' else '/'.join(path.parts[-3:])}"
    stored = any(name in part for part in (config, config.get("text_config", {})) for name in _FORMAT_FIELDS)
    record = {
        "id": config_name(path),
        "family": family,
        "kind": architecture.kind,
        "config": config,
        "parameters": architecture.parameters,
        "published": None,
        "sources": [told, *([f"stored format: {told}"] if stored else [])],
        "verification": "config_copy",
        "as_of": as_of,
    }
    ModelRecord.model_validate_json(json.dumps(record))
    return record


def _drop_layer_lists(config: dict[str, Any]) -> bool:
    """Leave only the format itself in the quantization of `config`; return whether it has one.

    Lists of each layer's names would be most of a record. One that leaves attention alone says so by `attn`.
    """
    parts = [part for part in (config, config.get("text_config", {})) if part.get("quantization_config")]
    for part in parts:
        settings = part["quantization_config"]
        part["quantization_config"] = {
            name: value
            for name, value in settings.items()
            if name == "weight_block_size" or not isinstance(value, list | dict)
        }
        if settings.get("quant_algo") and any("attn" in each for each in settings.get("ignore", [])):
            part["quantization_config"]["ignore"] = ["attn"]
    return bool(parts)


def update_models(folder: Path, path: Path, family: str, source: str, as_of: str) -> list[str]:
    """Write a record for each new configuration in `folder` to the file `path` of a catalog; return a line on each.

    A checkpoint of a known network in another format, such as `GLM-5.2-FP8`, becomes a variant of its record.
    """
    records = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    names = {name for record in load_models(path.parent).records for name in record.names}
    said = []
    for config in sorted(folder.rglob("*config.json"), key=lambda each: (len(config_name(each)), each)):
        name = config_name(config)
        if name in names:
            said.append(f"known    {name}")
            continue
        try:
            record = model_record(config, family, source, as_of)
        except (PlannerError, ValueError) as error:
            said.append(f"refused  {name}: {error}")
            continue
        names.add(name)
        network = _network_of(record, records)
        scheme = quantization_scheme(ConfigFields(record["config"], name))
        if network is not None and scheme in SCHEMES:
            network.setdefault("variants", {})[name] = scheme
            said.append(f"variant  {name}: {scheme} of {network['id']}")
        else:
            records.append(record)
            said.append(f"written  {name}: {record['parameters']:,} parameters")
    if records:
        path.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return said


def _network_of(record: Mapping[str, Any], records: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the one of `records` whose network `record` has in another format, by name and parameters."""
    plain = _FORMAT_SUFFIX.sub("", record["id"].rpartition("/")[2])
    return next(
        (
            each
            for each in records
            if each["id"].rpartition("/")[2] == plain and each["parameters"] == record["parameters"]
        ),
        None,
    )


def _lines(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.what == "cards":
        yield from update_cards(arguments.table, arguments.catalog)
    else:
        path = arguments.catalog / "models" / arguments.file
        yield from update_models(arguments.folder, path, arguments.family, arguments.source, arguments.as_of)


def main(words: list[str] | None = None) -> int:
    """Write the records that the command line names, and print a line on each; return 1 if one was refused."""
    parser = argparse.ArgumentParser(description="Write catalog records from figures or configurations.")
    parser.add_argument("--catalog", type=Path, default=catalog_dir(), help="folder of the catalog")
    what = parser.add_subparsers(dest="what", required=True)
    cards = what.add_parser("cards", help="records of cards from a table")
    cards.add_argument("table", type=Path, help="a CSV file; its columns are listed in this script")
    models = what.add_parser("models", help="records of models from config.json files")
    models.add_argument("folder", type=Path, help="owner/model/config.json or owner--model_config.json in it")
    models.add_argument("--file", required=True, help="file of the catalog that they belong to, such as qwen.json")
    models.add_argument("--family", required=True, help="family of the models, such as Qwen 3")
    models.add_argument("--source", required=True, help="where the files come from, as repository@commit:folder/")
    models.add_argument("--as-of", required=True, help="day on which they were read, such as 2026-11-23")
    said = list(_lines(parser.parse_args(words)))
    print("\n".join(said))
    return int(any(line.startswith("refused") for line in said))


if __name__ == "__main__":
    sys.exit(main())
