"""The process that talks to the driver: `python -m planner.monitor.sampler SETTINGS`, started by the supervisor."""

import gc
import json
import os
import sys
from pathlib import Path
from time import monotonic
from typing import Final, NoReturn

from planner.monitor.host.pci import PCI_DEVICES
from planner.monitor.host.surroundings import look_around
from planner.monitor.sampler.loop import Channel, Sampler, silence
from planner.monitor.sampler.watch import CardWatch, SleepWatch
from planner.monitor.settings import BackOff, Settings

ROOT_VARIABLE: Final = "GPU_PLANNER_SYSTEM_ROOT"
"""Names a folder to be taken for the system's root, where PCI devices and the marks of containers are looked for."""

_LONGEST_RETRY_SECONDS: Final = 60.0
_LONGEST_LOOK_SECONDS: Final = 300.0


def main(arguments: list[str]) -> NoReturn:
    """Sample until the parent says stop."""
    silence()
    settings = Settings(**json.loads(arguments[0]))
    root = Path(os.environ.get(ROOT_VARIABLE, "/"))
    cards = CardWatch(
        look_around(root),
        SleepWatch(root / PCI_DEVICES.relative_to("/")),
        first_try=monotonic() + settings.driver_after_seconds,
        retry=BackOff(settings.retry_seconds, _LONGEST_RETRY_SECONDS),
        look_again=BackOff(settings.look_again_seconds, _LONGEST_LOOK_SECONDS),
    )
    sampler = Sampler(cards, settings)
    channel = Channel(sampler.where)
    # What was made so far stays: the collector need not look at it again.
    gc.freeze()
    code = sampler.run(channel)
    # A library that hangs while it is unloaded would hold up an ordinary end.
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
