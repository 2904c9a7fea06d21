import pytest

import planner
from planner.errors import SpecError
from planner.launch.places.clouds import DSTACK, SKYPILOT, card_name
from planner.launch.places.containers import KUBERNETES

CATALOG = planner.load_catalog()


@pytest.mark.parametrize("place", [DSTACK, KUBERNETES, SKYPILOT])
def test_each_name_is_of_one_card_of_the_catalog(place):
    assert all(CATALOG.hardware.gpu(name).id == name for name in place.card_names)
    assert len(set(place.card_names.values())) == len(place.card_names)


def test_a_name_of_several_cards_is_refused():
    with pytest.raises(SpecError, match="no name that means H100 PCIe"):
        card_name(CATALOG.hardware.gpu("h100-pcie-80gb"), SKYPILOT.card_names, "SkyPilot")
    assert card_name(CATALOG.hardware.gpu("l4"), SKYPILOT.card_names, "SkyPilot") == "L4"
