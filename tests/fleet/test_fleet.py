"""A fleet over time: diagnoses from its last minutes, the past of a card, and memory that stays the same."""

import pytest
import scrapes
from fleet_kit import FakePrometheus, dcgm_fleet, serving

from planner.fleet.connection import FleetConnection
from planner.fleet.fleet import Fleet, FleetWatch, read_fleet
from planner.fleet.sources import Poll
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.metrics import HOST_BY_NAME, checked_reading
from planner.parsing.metrics import parse_prometheus


class Played:
    """A source that plays polls."""

    title = "played"

    def __init__(self, *polls: Poll) -> None:
        self.polls = [*polls]

    def poll(self) -> Poll:
        return self.polls.pop(0)


def connection(url: str) -> FleetConnection:
    return FleetConnection(url=url)


def test_the_first_diagnosis_comes_from_the_servers_past():
    fake = FakePrometheus(dcgm_fleet(8, use=lambda place: 0 if place == 3 else 100))
    with serving(fake) as url:
        fleet = read_fleet([connection(url)], {})
    kinds = [fleet.verdicts[card.key].kind for card in fleet.cards]
    assert kinds[3] is VerdictKind.IDLE
    assert kinds.count(VerdictKind.IDLE) == 1
    assert VerdictKind.TOO_EARLY not in kinds
    assert fleet.host_names == ("node1",)
    assert fleet.cards_of("node1") == fleet.cards
    assert fleet.cards_of("node2") == ()


def test_without_a_past_a_diagnosis_needs_some_polls():
    polls = [Poll(1_000.0 + 15 * place, 15.0, dcgm_fleet(2, use=lambda _: 0.0)) for place in range(9)]
    watch = FleetWatch(Played(*polls))
    with pytest.raises(ValueError, match="after its first poll"):
        watch.diagnose()
    watch.load_last_minutes()
    first = watch.poll()
    watch.load_last_minutes()
    assert first.verdicts == {}
    assert {one.kind for one in watch.diagnose().verdicts.values()} == {VerdictKind.TOO_EARLY}
    for _ in range(8):
        watch.poll()
    assert watch.diagnose(["elsewhere"]).verdicts == watch.fleet.verdicts
    assert {one.kind for one in watch.diagnose(["node1"]).verdicts.values()} == {VerdictKind.IDLE}
    assert len(watch._rings[first.cards[0].key, "power_watts"].values) == 9


def test_hosts_of_node_exporter_belong_to_cards_by_name_or_address():
    busy = {name: checked_reading(HOST_BY_NAME[name], 0.99) for name in ("cpu_fraction",)}

    def played(host: str) -> Fleet:
        polls = [
            Poll(15.0 * at, 15.0, dcgm_fleet(1, use=lambda _, at=at: 12.0 if at == 3 else 5.0), hosts={host: busy})
            for at in range(1, 10)
        ]
        watch = FleetWatch(Played(*polls))
        for _ in polls[:]:
            watch.poll()
        return watch.diagnose()

    for host in ("node1", "10.0.0.0"):
        (verdict,) = played(host).verdicts.values()
        assert verdict.kind is VerdictKind.INPUT_BOUND
    (verdict,) = played("other").verdicts.values()
    assert verdict.kind is not VerdictKind.INPUT_BOUND


def test_memory_stays_the_same_and_old_readings_go():
    watch = FleetWatch(Played(*(Poll(15.0 * place, 15.0, dcgm_fleet(1)) for place in range(1, 200))))
    for _ in range(199):
        fleet = watch.poll()
    assert len(watch._rings[fleet.cards[0].key, "utilization_fraction"].values) == 64


def test_what_is_gone_for_a_day_is_forgotten_with_its_diagnosis():
    watch = FleetWatch(Played(Poll(1.0, 15.0, dcgm_fleet(2)), Poll(86_500.0, 15.0, dcgm_fleet(1))))
    watch.poll()
    assert len(watch.diagnose().verdicts) == 2
    fleet = watch.poll()
    assert (len(fleet.cards), len(fleet.verdicts)) == (1, 1)


def test_a_card_that_misses_more_than_two_scrapes_is_silent():
    seen = dcgm_fleet(2)
    keys = ["00000001-0000-0000-0000-000000000000", "00000002-0000-0000-0000-000000000000"]
    poll = Poll(100.0, 10.0, seen, seen=dict(zip(keys, (76.0, 74.0), strict=True)))
    assert [card.is_silent for card in FleetWatch(Played(poll)).poll().cards] == [False, True]


def test_a_poll_that_is_repeated_adds_nothing():
    poll = Poll(100.0, 15.0, dcgm_fleet(1))
    watch = FleetWatch(Played(poll, poll))
    watch.poll()
    fleet = watch.poll()
    assert len(watch._rings[fleet.cards[0].key, "utilization_fraction"].values) == 1


def test_hosts_are_in_their_natural_order_and_instances_after_their_card():
    samples = [*dcgm_fleet(90)[-23:], *dcgm_fleet(9)]
    fleet = FleetWatch(Played(Poll(1.0, 15.0, samples))).poll()
    assert fleet.host_names == ("node1", "node2", "node12")
    odd = [
        (name, {**labels, "Hostname": f"node{'²' if labels['gpu'] == '0' else '9' * 5_000}"}, value)
        for name, labels, value in dcgm_fleet(2)
    ]
    assert FleetWatch(Played(Poll(1.0, 15.0, odd))).poll().host_names == (f"node{'9' * 5_000}", "node²")
    ours = [(one.name, {**one.labels, "instance": "l4:9836"}, one.value) for one in parse_prometheus(scrapes.OURS)]
    cards = FleetWatch(Played(Poll(1.0, 15.0, ours))).poll().cards
    assert [card.device.mig_parent for card in cards] == [None, "cccc0000-1"]


def test_pods_that_share_a_card_are_said():
    samples = dcgm_fleet(1)
    shared = [(name, {**labels, "exported_pod": pod}, value) for pod in "ab" for name, labels, value in samples]
    fleet = FleetWatch(Played(Poll(1.0, 15.0, shared))).poll()
    assert "1 GPUs are shared by several pods; their readings are those of all together." in fleet.notes


def test_what_changes_slowly_keeps_its_last_reading_between_whole_polls():
    whole, use = dcgm_fleet(2), "DCGM_FI_DEV_GPU_UTIL"
    parts = [(name, labels, 33.0) for name, labels, _ in whole if name == use]
    late = [(name, {**labels, "UUID": "GPU-new"}, 1.0) for name, labels, _ in parts[:1]]
    polls = (Poll(15.0, 15.0, whole), Poll(30.0, 15.0, [*parts, *late], is_whole=False))
    watch = FleetWatch(Played(*polls))
    before = watch.poll().cards[0]
    cards = watch.poll().cards
    after = next(card for card in cards if card.key == before.key)
    assert after.value("utilization_fraction") == 0.33
    assert after.value("power_watts") == before.value("power_watts")
    assert (after.device, after.seen_seconds, len(cards)) == (before.device, 30.0, 3)
