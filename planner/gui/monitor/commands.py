"""Actions of the Monitor tab in the Monitor menu, with their shortcuts."""

from typing import TYPE_CHECKING, Final

from planner.gui.actions import UnboundAction

if TYPE_CHECKING:
    from planner.gui.monitor.tab import MonitorTab  # imported when first shown, so the start does not wait for it

MONITOR_COMMANDS: Final[tuple[UnboundAction["MonitorTab"], ...]] = (
    UnboundAction("monitor.pause", "&Pause or resume", "Monitor/1", lambda tab: tab.toggle_pause(), "Ctrl+P", "pause"),
    UnboundAction(
        "monitor.mark", "&Mark this moment…", "Monitor/1", lambda tab: tab.controller.ask_mark(), "Ctrl+B", "flag"
    ),
    UnboundAction(
        "monitor.why", "E&xplain the diagnosis…", "Monitor/1", lambda tab: tab.headline.open(), "Ctrl+Alt+D", "doctor"
    ),
    UnboundAction("monitor.processes", "Pro&cesses", "Monitor/1", lambda tab: tab.focus_search(), "Ctrl+Alt+P"),
    UnboundAction(
        "monitor.record",
        "&Record or stop…",
        "Monitor/2",
        lambda tab: tab.controller.toggle_recording(),
        "Ctrl+R",
        "record",
    ),
    UnboundAction(
        "monitor.open",
        "&Open recording or log…",
        "Monitor/2",
        lambda tab: tab.controller.choose_recording(),
        "Ctrl+Alt+R",
        "open",
    ),
    UnboundAction("monitor.demo", "Show a &demo", "Monitor/2", lambda tab: tab.controller.show_demo()),
    UnboundAction("monitor.fleet", "S&how a fleet…", "Monitor/2", lambda tab: tab.show_fleet(), icon="computer"),
    UnboundAction("monitor.live", "Back to &live", "Monitor/2", lambda tab: tab.feed.go_live(), "Ctrl+Alt+L"),
    UnboundAction(
        "monitor.summary",
        "Recording s&ummary…",
        "Monitor/2",
        lambda tab: tab.controller.show_summary(),
        "Ctrl+Alt+T",
        "table",
    ),
    UnboundAction("monitor.export", "&Export the recording…", "Monitor/2", lambda tab: tab.controller.choose_export()),
    UnboundAction(
        "monitor.track",
        "Export to an experiment &tracker…",
        "Monitor/2",
        lambda tab: tab.controller.choose_tracker(),
    ),
    UnboundAction(
        "monitor.report", "&Write report on the recording…", "Monitor/2", lambda tab: tab.controller.choose_report()
    ),
    UnboundAction(
        "monitor.machine",
        "A&nother machine…",
        "Monitor/2",
        lambda tab: tab.controller.choose_machine(),
        icon="monitor",
    ),
    UnboundAction(
        "monitor.here", "&Back to this machine", "Monitor/2", lambda tab: tab.controller.watch_this_machine()
    ),
    UnboundAction(
        "monitor.plan",
        "Plan &for these GPUs…",
        "Monitor/3",
        lambda tab: tab.plan_strip.plan_for_these_cards(),
        icon="card",
    ),
    UnboundAction(
        "monitor.speed", "Use measured &speed…", "Monitor/3", lambda tab: tab.controller.ask_speed(), icon="time"
    ),
    UnboundAction(
        "monitor.settings",
        "&Alerts and settings…",
        "Monitor/4",
        lambda tab: tab.controller.open_settings(),
        "Ctrl+Alt+A",
        "bell",
    ),
    UnboundAction(
        "monitor.doctor", "Chec&k this machine…", "Monitor/4", lambda tab: tab.controller.show_doctor(), icon="doctor"
    ),
    UnboundAction(
        "monitor.release",
        "Disconnect from or reconnect to the dri&ver",
        "Monitor/4",
        lambda tab: tab.controller.toggle_driver_connection(),
        icon="eject",
    ),
)
