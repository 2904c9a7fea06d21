"""Logs as recordings, and what they say."""

from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample


def samples(recording):
    return [update for update in recording if isinstance(update, Sample)]


def cards(recording):
    return [update for update in recording if isinstance(update, Inventory)][-1].devices


def value(recording, place, uuid, name):
    return samples(recording)[place].devices[uuid][name].value
