"""Sources of one card each, read by the fakes of AMD's and Intel's libraries."""

import pytest
from cards_kit import AMD, INTEL, arc, radeon, write_cards

from planner.monitor.sources import amd_smi, level_zero
from planner.monitor.sources.library import LibrarySource


@pytest.fixture
def amd(near_vendors):
    write_cards(near_vendors.root, radeon())
    near_vendors.say_of_vendors(**AMD)
    source = LibrarySource(near_vendors.root, amd_smi.AMD_SMI)
    yield source
    source.close()


@pytest.fixture
def intel(near_vendors):
    write_cards(near_vendors.root, arc())
    near_vendors.say_of_vendors(**INTEL)
    source = LibrarySource(near_vendors.root, level_zero.LEVEL_ZERO)
    yield source
    source.close()
