"""Records as flat rows for files: their own figures, derived ones, and the sources."""

import csv
import io
import json

from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.own import CardChange, OwnHardware, with_own_hardware
from planner.paths import catalog_dir
from planner.present.catalog.gpu_row import GpuRow, JobSummary, gpu_rows
from planner.present.catalog.records import GPU_FIELDS, SYSTEM_FIELDS, gpu_fields, system_fields
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_row import system_rows
from planner.present.record_text import rows_to_csv, to_csv, to_json, to_tsv

HARDWARE: HardwareCatalog = load_hardware(catalog_dir())


def test_a_card_has_its_figures_derived_ones_and_every_source() -> None:
    rows = {row.id: gpu_fields(row) for row in gpu_rows(HARDWARE)}
    assert rows["rtx-4090"]["memory_bytes"] == 24 * 2**30
    assert rows["rtx-4090"]["bf16_ops_per_s"] == 1.652e14
    assert rows["rtx-4090"]["usd_per_gib"] == 1599 / 24
    assert rows["tesla-k80"]["usd_per_gib"] is None
    assert rows["l4"]["source"]
    assert "memory_bytes: derived, 24 × 2^30 bytes" in str(rows["l4"]["other_sources"])
    assert len({tuple(row) for row in rows.values()}) == 1
    assert {"ridge_point_flop_per_byte", "bandwidth_gb_per_s_per_usd", "rent_usd_per_hour"} < set(rows["l4"])
    assert not {"ridge_point", "bandwidth_per_usd", "bandwidth_per_watt"} & set(rows["l4"])
    card = next(gpu for gpu in HARDWARE.gpus if len(gpu.notes) > 1)
    assert rows[card.id]["notes"] == "; ".join(card.notes)


def test_a_persons_own_figure_is_called_theirs() -> None:
    own = OwnHardware(changes=(CardChange(gpu="l4", purchase_price_usd=900, date="2026-11-01"),))
    row = next(row for row in gpu_rows(with_own_hardware(HARDWARE, own)) if row.id == "l4")
    others = str(gpu_fields(row)["other_sources"]).split("; ")
    assert others[0] == "purchase_price_usd: yours, your own figure, 2026-11-01"


def test_the_header_is_there_without_a_row() -> None:
    assert tuple(gpu_fields(gpu_rows(HARDWARE)[0])) == GPU_FIELDS
    assert tuple(system_fields(system_rows(HARDWARE)[0])) == SYSTEM_FIELDS
    for fields in (GPU_FIELDS, SYSTEM_FIELDS):
        assert to_csv(fields, []) == f"{','.join(fields)}\n"


def test_a_job_is_told_in_one_line() -> None:
    job = JobSummary(2.0, 2.0, "2 h", "", 10.0, "$10", "Someone, eu-1\n8 × x, on demand", None)
    fields = gpu_fields(GpuRow(HARDWARE.gpu("l4"), job=job))
    assert fields["plan_job_cost_source"] == "Someone, eu-1; 8 × x, on demand"


def test_a_system_has_its_figures_and_its_source() -> None:
    row = next(row for row in system_rows(HARDWARE) if row.id == "dgx-2")
    fields = system_fields(row)
    assert fields["gpu_count"] == 16
    assert fields["source"]
    assert fields["bandwidth_bytes_per_s"] == 16 * HARDWARE.gpu("tesla-v100-sxm3-32gb").bandwidth_bytes_per_s
    assert (fields["bf16_ops_per_s"], fields["plan_verdict"], fields["plan_reason"]) == (None, None, "")


def test_a_system_has_the_sources_of_figures_that_have_their_own() -> None:
    row = next(row for row in system_rows(HARDWARE) if row.system.figure_notes)
    field = row.system.figure_notes[0].field
    assert f"{field}: published" in str(system_fields(row)["other_sources"])


def test_rows_as_csv_json_and_for_the_clipboard() -> None:
    rows = [gpu_fields(row) for row in gpu_rows(HARDWARE)]
    read = list(csv.DictReader(io.StringIO(to_csv(GPU_FIELDS, rows))))
    assert [row["id"] for row in read] == [gpu.id for gpu in HARDWARE.gpus]
    assert next(row["usd_per_gib"] for row in read if row["id"] == "tesla-k80") == ""
    assert json.loads(to_json(rows))[0]["id"] == HARDWARE.gpus[0].id
    assert rows_to_csv([["a", "b,c"]]) == 'a,"b,c"\n'
    systems = system_rows(HARDWARE)
    assert to_tsv(SYSTEM_COLUMNS, systems).splitlines()[0].startswith("Name\tFits my model\tMemory, GiB")
