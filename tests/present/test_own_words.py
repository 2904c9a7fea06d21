"""What a person says of a card, in words."""

import pytest

from planner.hardware.own import card_change
from planner.present.own_words import change_words


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"purchase_price_usd": 720, "power_limit_watts": 250, "note": "used"}, "paid $720, limited to 250 W, used"),
        ({"power_limit_watts": 1250}, "limited to 1,250 W"),
        ({"note": "water cooled"}, "water cooled"),
    ],
)
def test_only_what_is_said_is_told(told: dict[str, object], words: str) -> None:
    assert change_words(card_change("l4", "2026-11-22", told)) == words
