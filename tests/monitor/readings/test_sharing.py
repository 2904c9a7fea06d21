"""How processes share a card."""

from state_kit import A, latest_of

from planner.monitor.readings.inventory import Device
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess, Sample
from planner.monitor.readings.sharing import card_sharing


def _sharing(*kinds, **facts):
    device = Device(A, "NVIDIA A", 0, facts=facts)
    latest = latest_of(device)
    processes = tuple(CardProcess(number, A, kind, Reading(1)) for number, kind in enumerate(kinds))
    latest.note_sample(Sample(2.0, 3.0, processes=(*processes, CardProcess(9, "GPU-other", "compute", Reading(1)))))
    return card_sharing(device, latest)


def test_what_shares_a_card_follows_from_its_mode_and_its_processes():
    assert _sharing("compute") is None
    assert _sharing("compute", "graphics") is None
    assert _sharing("compute", "compute") == "time-slicing"
    assert _sharing("compute", "mps") == "mps"
    assert _sharing("compute", mig_enabled=Reading(1)) == "mig"
