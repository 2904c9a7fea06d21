"""Cards whose power limit lowers the rate of large products."""

import pytest
from small_models import bundled

from planner.performance.power import share_within_power_limit


def test_a_t4_sustains_24_of_its_65_teraflops() -> None:
    t4 = bundled().hardware.gpu("tesla-t4")
    assert share_within_power_limit(t4, 0.6) == pytest.approx(24 / 65)
    assert share_within_power_limit(t4, 0.2) == 0.2


def test_other_cards_keep_their_share() -> None:
    assert share_within_power_limit(bundled().hardware.gpu("rtx-4090"), 0.6) == 0.6
