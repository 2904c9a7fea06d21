"""The declared actions of the Monitor tab."""

from typing import TYPE_CHECKING, Final

from planner.gui.actions import Command

if TYPE_CHECKING:
    from planner.gui.monitor.tab import MonitorTab  # imported when first shown, so the start does not wait for it

MONITOR_COMMANDS: Final[tuple[Command["MonitorTab"], ...]] = (
    Command("monitor.pause", "&Pause or resume", "Monitor/1", lambda tab: tab.toggle_pause(), "Ctrl+P", "pause"),
    Command("monitor.mark", "&Mark this moment…", "Monitor/1", lambda tab: tab.controller.ask_mark(), "Ctrl+B", "flag"),
    Command(
        "monitor.why", "E&xplain the diagnosis…", "Monitor/1", lambda tab: tab.headline.open(), "Ctrl+Alt+D", "doctor"
    ),
    Command("monitor.processes", "Pro&cesses", "Monitor/1", lambda tab: tab.focus_search(), "Ctrl+Alt+P"),
    Command(
        "monitor.record",
        "&Record or stop…",
        "Monitor/2",
        lambda tab: tab.controller.toggle_recording(),
        "Ctrl+R",
        "record",
    ),
    Command(
        "monitor.open",
        "&Open recording or log…",
        "Monitor/2",
        lambda tab: tab.controller.choose_recording(),
        "Ctrl+Alt+R",
        "open",
    ),
    Command("monitor.demo", "Show a &demo", "Monitor/2", lambda tab: tab.controller.show_demo()),
    Command("monitor.live", "Back to &live", "Monitor/2", lambda tab: tab.feed.go_live(), "Ctrl+Alt+L"),
    Command(
        "monitor.summary",
        "Recording su&mmary…",
        "Monitor/2",
        lambda tab: tab.controller.show_summary(),
        "Ctrl+Alt+T",
        "table",
    ),
    Command("monitor.export", "&Export the recording…", "Monitor/2", lambda tab: tab.controller.choose_export()),
    Command(
        "monitor.plan",
        "Plan &for the cards of this machine…",
        "Monitor/3",
        lambda tab: tab.plan_strip.offer(),
        icon="card",
    ),
    Command("monitor.speed", "Use measured &speed…", "Monitor/3", lambda tab: tab.controller.ask_speed(), icon="time"),
    Command(
        "monitor.settings",
        "&Alerts and settings…",
        "Monitor/4",
        lambda tab: tab.controller.open_settings(),
        "Ctrl+Alt+A",
        "bell",
    ),
    Command(
        "monitor.doctor", "Chec&k this machine…", "Monitor/4", lambda tab: tab.controller.show_doctor(), icon="doctor"
    ),
    Command(
        "monitor.release",
        "Release or reconnect the &GPU",
        "Monitor/4",
        lambda tab: tab.controller.toggle_release(),
        icon="eject",
    ),
)
