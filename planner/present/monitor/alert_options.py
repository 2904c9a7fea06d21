"""Rules of alerts, as the window's settings and the command line's options say them."""

from typing import Final, NamedTuple

from planner.numbers import AMOUNT, PERCENT, NumberKind


class AlertOption(NamedTuple):
    """One field of `AlertRules`: its option, its question with the key that leads to it, and what it is for.

    With a `unit` it is a threshold up to `most`, by default `usual`, in which `scale` is one; else it is on or off.
    """

    field: str
    name: str
    title: str
    hint: str
    unit: str = ""
    usual: float = 0.0
    most: float = 0.0
    kind: NumberKind = AMOUNT

    @property
    def scale(self) -> float:
        """Return what a number as it is typed is multiplied with."""
        return 0.01 if self.kind is PERCENT else 1.0


ALERT_OPTIONS: Final = (
    AlertOption(
        "temperature_celsius", "temperature", "&Temperature of a GPU is at least", "Alert on a hot GPU", "°C", 90, 150
    ),
    AlertOption(
        *("memory_fraction", "memory", "Used &memory of a GPU is at least", "Alert on a full GPU", "%"),
        *(0.95, 1, PERCENT),
    ),
    AlertOption(
        *("idle_minutes", "idle", "GPU is &idle (utilization below 5 %) for", "Alert on an idle GPU", "min"),
        *(15, 10_000),
    ),
    AlertOption("lost", "lost", "A GPU is &lost", "Alert on a GPU that the driver no longer finds"),
    AlertOption("process_ended", "process-ended", "A &process on a GPU has ended", "Alert on the end of a run"),
    AlertOption(
        *("silent", "silent", "&A GPU or a machine does not respond"),
        "Alert on a driver, GPU or machine that does not respond",
    ),
    AlertOption("xid", "xid", "The driver reports an &Xid error", "Alert on an error of the driver"),
)
"""Every rule, in the order in which they are asked."""
