"""Logs imported as recordings, and access to their readings."""

from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample


def samples(recording):
    return [update for update in recording if isinstance(update, Sample)]


def cards(recording):
    return [update for update in recording if isinstance(update, Inventory)][-1].devices


def value(recording, place, uuid, name):
    return samples(recording)[place].devices[uuid][name].value


# beam11221/plato gpu_log.csv, lines 50 to 60 in part (Apache-2.0); the log has no header.
PLATO = """\
2026/04/25 16:20:23.686, 0 %, 0 %, 1949 MiB, 18199 MiB, 28, 11.48 W
2026/04/25 16:20:28.887, 2 %, 0 %, 3767 MiB, 16381 MiB, 30, 31.73 W
2026/04/25 16:20:33.907, 0 %, 0 %, 6183 MiB, 13965 MiB, 31, 32.69 W
2026/04/25 16:20:38.986, 0 %, 0 %, 20137 MiB, 11 MiB, 31, 31.49 W
2026/04/25 16:23:34.819, 44 %, 47 %, 4 MiB, 20143 MiB, 28, 18.40 W
"""
