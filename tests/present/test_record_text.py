"""Records as text for the clipboard and for files."""

import csv
import io
import json

from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.paths import catalog_dir
from planner.present.catalog.gpu_row import gpu_rows
from planner.present.catalog.records import GPU_FIELDS, gpu_fields
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_row import system_rows
from planner.present.columns import rows_to_csv, to_csv, to_json, to_tsv

HARDWARE: HardwareCatalog = load_hardware(catalog_dir())


def test_rows_are_exported_as_csv_json_and_tab_separated_text() -> None:
    rows = [gpu_fields(row) for row in gpu_rows(HARDWARE)]
    read = list(csv.DictReader(io.StringIO(to_csv(GPU_FIELDS, rows))))
    assert [row["id"] for row in read] == [gpu.id for gpu in HARDWARE.gpus]
    assert next(row["usd_per_gib"] for row in read if row["id"] == "tesla-k80") == ""
    assert json.loads(to_json(rows))[0]["id"] == HARDWARE.gpus[0].id
    assert rows_to_csv([["a", "b,c"]]) == 'a,"b,c"\n'
    systems = system_rows(HARDWARE)
    assert to_tsv(SYSTEM_COLUMNS, systems).splitlines()[0].startswith("Name\tFits my model\tMemory, GiB")
