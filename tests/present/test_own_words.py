"""What a person says of a card, in words."""

import pytest

from planner.hardware.own import OwnHardware, make_card_change
from planner.plan.catalog import Catalog
from planner.present.catalog.gpu_row import change_summary, removal_summary


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"purchase_price_usd": 720, "power_limit_watts": 250, "note": "used"}, "paid $720, limited to 250 W, used"),
        ({"power_limit_watts": 1250}, "limited to 1,250 W"),
        ({"note": "water cooled"}, "water cooled"),
    ],
)
def test_only_what_is_said_is_told(told: dict[str, object], words: str) -> None:
    assert change_summary(make_card_change("l4", "2026-11-22", told)) == words


def test_what_is_lost_with_a_card_is_named(catalog: Catalog) -> None:
    card, change = catalog.hardware.gpu("l4"), make_card_change("l4", "2026-11-22", {"purchase_price_usd": 900})
    assert removal_summary(OwnHardware(cards=(card,)), "l4") == "your own card of 24 GB"
    assert removal_summary(OwnHardware(changes=(change,)), "l4") == "your changes: paid $900"
    both = OwnHardware(cards=(card,), changes=(change,))
    assert removal_summary(both, "l4") == "your own card of 24 GB; your changes: paid $900"
