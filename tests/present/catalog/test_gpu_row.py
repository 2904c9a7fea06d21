"""Cards as table rows, and the user's changes to them as text."""

import pytest
from catalog_samples import PRICES, card

from planner.hardware.own import OwnHardware, make_card_change
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import fits_by_gpu
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.gpu_row import change_summary, gpu_rows, product_kind, removal_summary
from planner.workload.workload import Inference

LLAMA = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"purchase_price_usd": 720, "power_limit_watts": 250, "note": "used"}, "paid $720, limited to 250 W, used"),
        ({"power_limit_watts": 1250}, "limited to 1,250 W"),
        ({"note": "water cooled"}, "water cooled"),
    ],
)
def test_the_summary_lists_only_the_users_changes(told: dict[str, object], words: str) -> None:
    assert change_summary(make_card_change("l4", "2026-11-22", told)) == words


def test_the_removal_summary_names_what_is_deleted(catalog: Catalog) -> None:
    card, change = catalog.hardware.gpu("l4"), make_card_change("l4", "2026-11-22", {"purchase_price_usd": 900})
    assert removal_summary(OwnHardware(cards=(card,)), "l4") == "your own card of 24 GB"
    assert removal_summary(OwnHardware(changes=(change,)), "l4") == "your changes: paid $900"
    both = OwnHardware(cards=(card,), changes=(change,))
    assert removal_summary(both, "l4") == "your own card of 24 GB; your changes: paid $900"


def test_rows_carry_the_verdicts_of_a_plan(catalog):
    rows = {row.id: row for row in gpu_rows(catalog.hardware, fits_by_gpu(LLAMA, catalog))}
    assert rows["rtx-4090"].verdict == "fits"
    assert rows["tpu-v5e"].reason
    assert {row.id for row in gpu_rows(catalog.hardware)} == set(rows)


def test_product_kinds_distinguish_cards_laptop_parts_and_systems_on_a_chip():
    assert product_kind(card()) == "card"
    assert product_kind(card(name="RTX 9 Laptop GPU")) == "laptop part"
    assert product_kind(card(device_count=2)) == "card, 2 devices of 12.0\u2009GiB"
    assert product_kind(card(segment="soc", unified_memory=True)) == "system on chip, memory shared with the CPU"


def test_rows_have_verdicts_and_prices_only_if_given():
    catalog = load_catalog()
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(), gpu="rtx-4090")
    rows = {row.id: row for row in gpu_rows(catalog.hardware, fits_by_gpu(plan, catalog), prices={"rtx-4090": PRICES})}
    assert rows["rtx-4090"].verdict == "fits"
    assert rows["rtx-4090"].prices is PRICES
    assert rows["rtx-3090"].prices is None
    assert gpu_rows(catalog.hardware)[0].verdict is None
