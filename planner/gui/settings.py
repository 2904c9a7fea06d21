"""Settings of the window that persist between runs in one JSON file."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import Field
from PySide6.QtCore import QObject, QTimer, Slot

from planner.base import Spec
from planner.errors import PlannerError, SpecError
from planner.gui.locks import FileLock
from planner.gui.monitor.settings import MonitorSettings
from planner.parsing import parse_json
from planner.plan.merging import merge_values
from planner.storage import UnreadableFileError, read_stored, set_aside, write_atomically
from planner.trace.request import Target
from planner.units import MIB

View = Literal["table", "scatter", "compare"]


class PlotChoice(Spec):
    """Keys of the columns that a scatter plot shows; the keys `size` and `color` may be empty."""

    x: str = "buy"
    y: str = "bandwidth"
    size: str = ""
    color: str = "vendor"
    log_x: bool = True
    log_y: bool = True
    pareto: bool = True


class CatalogSettings(Spec):
    """Stored state of the Catalog tab; saved filters stay raw JSON, which is validated when a filter is applied."""

    view: View = "table"
    plots: dict[str, PlotChoice] = Field(default_factory=dict, description="by page")
    filters: dict[str, dict[str, Any]] = Field(default_factory=dict, description="saved filters by name")
    system_filters: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="saved filters of systems by name"
    )
    compared: tuple[str, ...] = Field(default=(), description="ids of the compared GPUs and systems")
    only_differences: bool = False
    circuit: str = Field(
        default="120V-15A", description="electrical circuit of the builds, a key of `planner.hardware.power.CIRCUITS`"
    )


_Recent = TypeVar("_Recent")
Scheme = Literal["system", "light", "dark"]

_WRITE_DELAY_MS: Final = 300
_RECENT_LIMIT: Final = 8
_TRUSTED_LIMIT: Final = 1000
_MOST_BYTES: Final = 4 * MIB
_SETS: Final = frozenset(
    ("recent", "closed_facets", "open_sections", "traced_files", "traced_scripts", "trusted_code", "monitor.unfinished")
)
"""Lists in which each window adds and removes entries of its own."""
_log = logging.getLogger(__name__)


class TableLayout(Spec):
    """Column layout of a table by column keys, so that the layout stays valid with added and removed columns."""

    shown: tuple[str, ...] = ()
    widths: dict[str, int] = Field(default_factory=dict)
    sort_key: str | None = None
    descending: bool = False


class WindowSettings(Spec):
    """Settings of the window; every field has a default, so an empty file is valid."""

    scheme: Scheme = "system"
    tab: str = "memory"
    geometry: str | None = None
    recent: tuple[str, ...] = ()
    tables: dict[str, TableLayout] = Field(default_factory=dict)
    closed_facets: tuple[str, ...] = (
        *("price", "street", "used", "rent"),
        *("systems-memory_each", "systems-link", "systems-rent", "systems-price_kind"),
    )
    catalog: CatalogSettings = CatalogSettings()
    splitters: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    open_sections: tuple[str, ...] = ()
    traced_files: tuple[str, ...] = ()
    traced_scripts: tuple[Target, ...] = ()
    trusted_code: tuple[str, ...] = Field(default=(), description="SHA-256 of the user's code that may be run")
    monitor: MonitorSettings = MonitorSettings()


class SettingsStore(QObject):
    """The window's settings and their file, which is written soon after a change and when the window closes.

    Several windows share the file: each writes only what was changed in it. `unread` is an error about what could not
    be read, or None.
    """

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self.unread: PlannerError | None = None
        self._lock = FileLock(path.with_name(f"{path.name}.lock"))
        stored = self._read()
        self.current, rejected = _valid_settings(stored)
        if rejected:
            self.unread = PlannerError(
                f"Some of your settings cannot be read, so their defaults apply: {', '.join(rejected)}.",
                f"They stay in {path} until you change them.",
            )
        self._written = _as_json(self.current)
        self._timer = QTimer(self, singleShot=True, interval=_WRITE_DELAY_MS)
        self._timer.timeout.connect(self.flush)

    def update(self, **changes: object) -> None:
        """Change the settings named in `changes`, and schedule the writing of the file."""
        changed = self.current.evolve(**changes)
        if changed != self.current:
            self.current = changed
            # Not restarted while it runs: otherwise the file would never be written during frequent changes.
            if not self._timer.isActive():
                self._timer.start()

    def update_catalog(self, **changes: object) -> None:
        """Change the settings of the Catalog tab that are named in `changes`."""
        self.update(catalog=self.current.catalog.evolve(**changes))

    def keep_table(self, key: str, layout: TableLayout) -> None:
        """Store the column layout of the table whose settings key is `key`."""
        self.update(tables={**self.current.tables, key: layout})

    def add_recent_plan(self, path: Path) -> None:
        """Add the plan file `path` as the first of the recently opened plans."""
        self.update(recent=_with_first(str(path), self.current.recent))

    def add_recently_traced(self, path: Path) -> None:
        """Add the Python file `path` as the first of the recently traced files, which the trace dialog offers again."""
        self.update(traced_files=_with_first(str(path), self.current.traced_files))

    def add_recent_script(self, target: Target) -> None:
        """Add a script, with its arguments, as the first of the recently traced ones."""
        self.update(traced_scripts=_with_first(target, self.current.traced_scripts))

    def trust(self, digest: str) -> None:
        """Store the user's consent to run the code whose SHA-256 is `digest`."""
        others = tuple(known for known in self.current.trusted_code if known != digest)
        self.update(trusted_code=(digest, *others)[:_TRUSTED_LIMIT])

    @Slot()
    def flush(self) -> None:
        """Write what was changed here into the file as it is now; a failure is only logged, since no work is lost."""
        self._timer.stop()
        ours = _as_json(self.current)
        try:
            with self._lock.waited_for() as is_free:
                if not is_free:
                    self._timer.start()
                    return
                merged, _ = merge_values(self._written, ours, self._read(), _SETS)
                write_atomically(self._path, json.dumps(merged, indent=2, ensure_ascii=False))
        except OSError as error:
            _log.warning("The settings could not be written: %s", error)
        else:
            self._written = ours

    def _read(self) -> dict[str, Any]:
        """Return the fields in the file, also those of a newer version; an unreadable file is set aside."""
        try:
            data = read_stored(self._path, "settings file", _MOST_BYTES)
            stored = {} if data is None else parse_json(data)
            if isinstance(stored, dict):
                return stored
            reason = "it is not an object"
        except UnreadableFileError as error:
            reason = error.reason
        aside = set_aside(self._path)
        _log.warning("The settings in %s cannot be read (%s); they are kept as %s", self._path, reason, aside)
        hint = f"It stays in {self._path}." if aside is None else f"The file is kept as {aside}."
        self.unread = PlannerError(f"Your settings cannot be read, so the defaults apply: {reason}.", hint)
        return {}


def _as_json(settings: WindowSettings) -> dict[str, Any]:
    return settings.model_dump(mode="json", exclude_defaults=True)


def _with_first(latest: _Recent, known: tuple[_Recent, ...]) -> tuple[_Recent, ...]:
    """Return the most recent of `known`, with `latest` as the first."""
    return (latest, *(other for other in known if other != latest))[:_RECENT_LIMIT]


def _valid_settings(stored: Mapping[str, object]) -> tuple[WindowSettings, list[str]]:
    """Return the settings with the valid fields of `stored`, and the names of fields with invalid values."""
    settings, rejected = WindowSettings(), []
    for name in WindowSettings.model_fields.keys() & stored.keys():
        try:
            settings = settings.evolve(**{name: stored[name]})
        except SpecError:
            rejected.append(name)
    return settings, sorted(rejected)
