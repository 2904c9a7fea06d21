"""Entry point of the sampler: `python -m planner.monitor.sampler SETTINGS`, started by the supervisor."""

import gc
import json
import os
import platform
import sys
from pathlib import Path
from time import monotonic
from typing import Final, NoReturn

from planner import __version__
from planner.monitor.host.environment import PCI_DEVICES, detect_environment, find_cards
from planner.monitor.host.sleep import nvidia_sleep_policy
from planner.monitor.readings.wire import WIRE_VERSION, Hello, hello_line
from planner.monitor.sampler.all_cards import AllCards
from planner.monitor.sampler.loop import ParentChannel, Sampler, redirect_missing_streams
from planner.monitor.sampler.source_watch import SourceWatch
from planner.monitor.sampler.watch import CardWatch
from planner.monitor.settings import BackOff, SamplerSettings
from planner.monitor.sources.registry import card_sources

ROOT_VARIABLE: Final = "GPU_PLANNER_SYSTEM_ROOT"
"""Environment variable with a folder to use as the root of PCI devices and container markers (for tests)."""

_LONGEST_RETRY_SECONDS: Final = 60.0
_LONGEST_SEARCH_SECONDS: Final = 300.0
_LONGEST_GREETING_SECONDS: Final = 60.0


def main(arguments: list[str]) -> NoReturn:
    """Run the sampler until the parent process sends `stop`."""
    redirect_missing_streams()
    settings = SamplerSettings(**json.loads(arguments[0]))
    _run_sampler(settings, ParentChannel())


def run_for_other_machine() -> NoReturn:
    """Run the sampler for a supervisor on another machine, which answers the greeting with its settings."""
    gc.enable()  # which commands run without
    channel = ParentChannel()
    channel.send(hello_line(Hello(WIRE_VERSION, f"gpu-planner {__version__}", platform.node())))
    settings = channel.wait(_LONGEST_GREETING_SECONDS).get("settings")
    if settings is None:
        os._exit(0)
    # A later version may send settings that this one does not have.
    known = {name: value for name, value in settings.items() if name in SamplerSettings._fields}
    _run_sampler(SamplerSettings(**known), channel)


def _run_sampler(settings: SamplerSettings, channel: ParentChannel) -> NoReturn:
    root = Path(os.environ.get(ROOT_VARIABLE, "/"))
    environment, pci_devices = detect_environment(root), root / PCI_DEVICES.relative_to("/")
    nvidia = CardWatch(
        environment,
        nvidia_sleep_policy(pci_devices),
        first_try=monotonic() + settings.driver_after_seconds,
        retry=BackOff(settings.retry_seconds, _LONGEST_RETRY_SECONDS),
        look_again=BackOff(settings.look_again_seconds, _LONGEST_SEARCH_SECONDS),
        hang_seconds=settings.hang_seconds,
    )
    sources = [
        SourceWatch(
            source,
            settings.hang_seconds,
            settings.slow_seconds,
            BackOff(settings.look_again_seconds, _LONGEST_SEARCH_SECONDS),
        )
        for source in card_sources(root, environment)
    ]
    sampler = Sampler(AllCards(nvidia, sources, lambda: find_cards(pci_devices)), settings)
    # The objects so far are permanent: the garbage collector need not scan them again.
    gc.freeze()
    code = sampler.run(channel)
    # A library that hangs while it is unloaded would block a normal exit.
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
