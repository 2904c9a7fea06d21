"""Everything one can do in the Monitor tab, for the menu, the keys and the command palette."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from planner.gui.actions import Action

if TYPE_CHECKING:
    from planner.gui.monitor.tab import MonitorTab
    from planner.gui.window import Window


def declare(window: "Window") -> list[Action]:
    """Return the actions of the tab, which each of them shows; none where `window` has no such tab."""
    if not any(place.key == "monitor" for place in window.places):
        return []

    def run(do: "Callable[[MonitorTab], object]") -> Callable[[], object]:
        return lambda: do(window.monitor())

    return [
        Action("monitor.pause", "&Pause or go on", run(lambda tab: tab.toggle_pause()), "Monitor/1", "Ctrl+P", "pause"),
        Action(
            "monitor.mark",
            "&Mark this moment…",
            run(lambda tab: tab.controller.ask_mark()),
            "Monitor/1",
            "Ctrl+B",
            "flag",
        ),
        Action(
            "monitor.why",
            "&Why, and what to try…",
            run(lambda tab: tab.outlook.open()),
            "Monitor/1",
            "Ctrl+Alt+D",
            "doctor",
        ),
        Action("monitor.processes", "Pro&cesses", run(lambda tab: tab.focus_search()), "Monitor/1", "Ctrl+Alt+P"),
        *_recordings(run),
        *_others(run),
    ]


def _recordings(run: "Callable[[Callable[[MonitorTab], object]], Callable[[], object]]") -> list[Action]:
    return [
        Action(
            "monitor.record",
            "&Record or stop…",
            run(lambda tab: tab.controller.toggle_recording()),
            "Monitor/2",
            "Ctrl+R",
            "record",
        ),
        Action(
            "monitor.open",
            "&Open recording or log…",
            run(lambda tab: tab.controller.choose_recording()),
            "Monitor/2",
            "Ctrl+Alt+R",
            "open",
        ),
        Action("monitor.demo", "Show a &demo", run(lambda tab: tab.controller.show_demo()), "Monitor/2"),
        Action("monitor.live", "Back to &live", run(lambda tab: tab.feed.go_live()), "Monitor/2", "Ctrl+Alt+L"),
        Action(
            "monitor.summary",
            "What the recording came &to…",
            run(lambda tab: tab.controller.show_summary()),
            "Monitor/2",
            "Ctrl+Alt+T",
            "table",
        ),
        Action(
            "monitor.export", "&Export the recording…", run(lambda tab: tab.controller.choose_export()), "Monitor/2"
        ),
    ]


def _others(run: "Callable[[Callable[[MonitorTab], object]], Callable[[], object]]") -> list[Action]:
    return [
        Action(
            "monitor.plan",
            "Plan &for the cards of this machine…",
            run(lambda tab: tab.plan_strip.offer()),
            "Monitor/3",
            icon="card",
        ),
        Action(
            "monitor.speed",
            "Use measured &speed…",
            run(lambda tab: tab.controller.ask_speed()),
            "Monitor/3",
            icon="time",
        ),
        Action(
            "monitor.settings",
            "&Alerts and settings…",
            run(lambda tab: tab.controller.open_settings()),
            "Monitor/4",
            "Ctrl+Alt+A",
            "bell",
        ),
        Action(
            "monitor.doctor",
            "What wor&ks here…",
            run(lambda tab: tab.controller.show_doctor()),
            "Monitor/4",
            icon="doctor",
        ),
        Action(
            "monitor.release",
            "Release the &GPU, or take it up",
            run(lambda tab: tab.controller.toggle_release()),
            "Monitor/4",
            icon="eject",
        ),
    ]
