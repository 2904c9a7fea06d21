"""What the Monitor tab says: alerts, faults with since when, the doctor's checks, its own cost."""

import pytest

from planner.monitor.alerts import Alert, AlertKind
from planner.monitor.doctor import SetupCheck
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess, HostProcess, SamplingCost
from planner.present.monitor.events import alert_sentence, elapsed_text, fault_views
from planner.present.monitor.readings import check_lines, monitoring_cost

CARD = Device("GPU-a", "NVIDIA RTX 4090", 0)


def test_alerts_are_sentences():
    host = HostProcess("python", "ada", "python train.py", 0.0, None, 1, is_own=True)
    ended = CardProcess(7, CARD.uuid, "compute", Reading(1.0), host=host)
    alerts = (
        Alert(AlertKind.TEMPERATURE, CARD, 1.0, 91.4),
        Alert(AlertKind.MEMORY, CARD, 1.0, 0.96),
        Alert(AlertKind.LOST, CARD, 1.0),
        Alert(AlertKind.IDLE, CARD, 1.0, 0.0),
        Alert(AlertKind.PROCESS_ENDED, CARD, 1.0, process=ended),
        Alert(AlertKind.PROCESS_ENDED, CARD, 1.0, process=CardProcess(8, CARD.uuid, "compute", Reading(1.0))),
    )
    assert [alert_sentence(alert).replace("\u2009", " ") for alert in alerts] == [
        "Card 0 RTX 4090 is at 91 °C",
        "Card 0 RTX 4090 uses 96 % of its memory",
        "Card 0 RTX 4090 is lost",
        "Card 0 RTX 4090 is idle",
        "Card 0 RTX 4090: process 7 (python) ended",
        "Card 0 RTX 4090: process 8 ended",
    ]


def test_faults_come_the_worst_first_with_since_when_and_what_to_do():
    latest = Latest()
    faults = (Fault(FaultKind.WSL, 10.0), Fault(FaultKind.NOT_ANSWERING, 20.0), Fault(FaultKind.LOST, 30.0, CARD.uuid))
    latest.note_inventory(Inventory("1", devices=(CARD,), faults=faults))
    views = fault_views(latest, 155.0)
    assert [view.severity for view in views] == ["error", "warning", "note"]
    assert views[0].title.startswith("Card 0: ")
    assert "(2 min 5 s)" in views[0].since
    assert views[0].advice in views[0].as_text


@pytest.mark.parametrize(
    ("seconds", "said"), [(8, "8 s"), (125, "2 min 5 s"), (3600, "1 h"), (12_000, "3 h 20 min"), (190_000, "2 d 4 h")]
)
def test_spans_are_told_in_their_two_largest_units(seconds, said):
    assert elapsed_text(seconds) == said


def test_checks_have_a_mark_and_what_to_do():
    checks = (SetupCheck("Driver", "fails", "does not answer", "Reboot."), SetupCheck("PCI", "works", "0000:01:00.0"))
    assert check_lines(checks) == "✗ Driver: does not answer\n    Reboot.\n✓ PCI: 0000:01:00.0"


def test_cards_that_are_alike_are_told_once():
    checks = [SetupCheck(f"Card {number} H100", "works", "19 of 42 quantities") for number in range(8)]
    assert check_lines(checks) == "✓ Card 0 H100 and 7 more: 19 of 42 quantities"


def test_the_monitor_tells_its_own_cost_as_far_as_it_is_known():
    assert monitoring_cost(None, None) == ""
    cost = SamplingCost(0.0021, 46, 0.001, 1, 0.0024, 20 << 20)
    said = monitoring_cost(cost, 0.012).replace("\u2009", " ")
    assert said == "monitoring takes 2.1 ms per reading, sampler 0.24 % of a core, 20.0 MiB, window 1.2 %"
