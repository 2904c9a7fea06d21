"""Published speeds: the records of catalog/speeds, as the table of measurements has them."""

import csv
from pathlib import Path

import pytest

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.published_speeds import TASK_TITLES, PublishedSpeed, speeds_of
from planner.paths import catalog_dir
from planner.records import read_records

TRUTH = Path(__file__).parent.parent / "truth" / "throughput.csv"


@pytest.fixture(scope="module")
def speeds() -> tuple[PublishedSpeed, ...]:
    return read_records(catalog_dir() / "speeds", PublishedSpeed)


def test_every_record_is_of_a_card_and_as_the_truth_table_has_it(
    speeds: tuple[PublishedSpeed, ...], hardware: HardwareCatalog
) -> None:
    with TRUTH.open(encoding="utf-8", newline="") as stream:
        rows = {row["id"]: row for row in csv.DictReader(stream)}
    assert len(speeds) > 200
    for speed in speeds:
        hardware.gpu(speed.gpu)
        row = rows[speed.id.removeprefix(f"{speed.gpu}-")]
        assert row["quality"] == "A"
        assert (float(row["value"]), row["model"], row["source"]) == (speed.value_per_second, speed.model, speed.source)
        assert int(row["n_gpus"]) == speed.gpu_count
        assert row["unit"].endswith("/GPU") == speed.per_gpu


def test_few_of_each_task_and_in_order(speeds: tuple[PublishedSpeed, ...]) -> None:
    found = speeds_of("rtx-4090", speeds)
    places = [(speed.gpu_count, list(TASK_TITLES).index(speed.task)) for speed in found]
    assert places == sorted(places)
    assert max(places.count(place) for place in places) <= 3
    assert speeds_of("tpu-v3", speeds) == ()


def test_settings_and_price_by_hand() -> None:
    speed = PublishedSpeed(
        id="x", gpu="h100-sxm5-80gb", gpu_count=8, task="training", model="Llama-3-8B", precision="bf16", batch="8",
        length="8192", parallelism="FSDP", framework="torchtitan", value_per_second=5_000, unit="tokens/s",
        per_gpu=True, source="made up", as_of="2026-11-21",
    )  # fmt: skip
    assert speed.settings == "bf16, batch 8, length 8192, FSDP, torchtitan"
    assert speed.total_per_second == 40_000
    # 2 USD × 8 cards an hour for 40,000 × 3,600 = 144 million tokens
    assert speed.usd_per_million(2) == pytest.approx(16 / 144)
    assert speed.evolve(per_gpu=False).total_per_second == 5_000
