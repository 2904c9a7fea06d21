"""Sources of one card each, read by the fakes of AMD's and Intel's libraries."""

import pytest
from cards_kit import AMD, INTEL, arc, radeon, write_cards

from planner.monitor.sources.amd_smi import AmdSmiSource
from planner.monitor.sources.level_zero import LevelZeroSource


@pytest.fixture
def amd(near_vendors):
    write_cards(near_vendors.root, radeon())
    near_vendors.say_of_vendors(**AMD)
    source = AmdSmiSource(near_vendors.root)
    yield source
    source.close()


@pytest.fixture
def intel(near_vendors):
    write_cards(near_vendors.root, arc())
    near_vendors.say_of_vendors(**INTEL)
    source = LevelZeroSource(near_vendors.root)
    yield source
    source.close()
