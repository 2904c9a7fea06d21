"""Replay of a recording: advancing, jumping and speed."""

from dataclasses import replace

from recording_kit import CARDS, recording, sample

from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.player import Player

SAMPLES = [
    sample(
        float(second),
        {"cpu_fraction": 0.5},
        a={"power_watts": second} | ({"fan_fraction": 0.3} if second % 4 == 0 else {}),
    )
    for second in range(130)
]


def seconds_of(updates):
    return [update.monotonic_seconds for update in updates if isinstance(update, Sample)]


def test_a_player_advances_to_the_end():
    player = Player(recording(*SAMPLES))
    assert player.updates_until(2.5) == (CARDS, *SAMPLES[:3])
    assert player.updates_until(1.0) == ()
    assert player.position == 2.5
    assert not player.is_over
    assert seconds_of(player.updates_until(1e9)) == [float(second) for second in range(3, 130)]
    assert (player.is_over, player.position) == (True, 129.0)


def test_a_player_advances_faster_at_a_higher_speed():
    player = Player(recording(*SAMPLES), speed=10.0)
    assert seconds_of(player.advance(0.35)) == [0.0, 1.0, 2.0, 3.0]
    player.speed = 1.0
    assert seconds_of(player.advance(1.0)) == [4.0]


def test_a_jump_restores_the_state_at_its_time():
    player = Player(recording(*SAMPLES))
    inventory, standing = player.seek(126.5)
    assert inventory == CARDS
    assert standing.monotonic_seconds == 126.0
    assert standing.devices["GPU-a"] == SAMPLES[124].devices["GPU-a"] | SAMPLES[126].devices["GPU-a"]
    assert seconds_of(player.advance(2.0)) == [127.0, 128.0]
    assert seconds_of(player.seek(3.0)) == [3.0]
    assert seconds_of(player.advance(1.0)) == [4.0]


def test_positions_are_limited_to_the_recording():
    player = Player(recording(*SAMPLES))
    assert seconds_of(player.seek(-5.0)) == [0.0]
    assert seconds_of(player.seek(1e9)) == [129.0]
    assert player.is_over


def test_an_empty_recording_is_over_at_once():
    player = Player(recording())
    assert player.is_over
    assert player.seek(1.0) == (CARDS,)


def test_a_jump_to_a_lost_card_restores_no_readings_of_it():
    lost = Inventory("580", devices=tuple(replace(device, state="lost") for device in CARDS.devices))
    inventory, standing = Player(recording(CARDS, *SAMPLES[:5], lost, *SAMPLES[5:6])).seek(5.0)
    assert inventory == lost
    assert standing.devices == {}
    assert standing.host == SAMPLES[5].host
