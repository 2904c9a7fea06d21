"""Settings of the window that persist between runs in one JSON file."""

import logging
from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import Field, ValidationError
from PySide6.QtCore import QObject, QTimer, Slot

from planner.base import Spec
from planner.gui.catalog.settings import CatalogSettings
from planner.gui.monitor.settings import MonitorSettings
from planner.parsing import parse_json
from planner.storage import UnreadableFileError, read_stored, write_atomically
from planner.trace.request import Target
from planner.units import MIB

_Recent = TypeVar("_Recent")
Scheme = Literal["system", "light", "dark"]

_WRITE_DELAY_MS: Final = 500
_RECENT_LIMIT: Final = 8
_TRUSTED_LIMIT: Final = 1000
_MOST_BYTES: Final = 4 * MIB
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
    """The window's settings and their file, which is written soon after a change and when the window closes."""

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self.current = _read_settings(path)
        self._timer = QTimer(self, singleShot=True, interval=_WRITE_DELAY_MS)
        self._timer.timeout.connect(self.flush)

    def update(self, **changes: object) -> None:
        """Change the settings named in `changes`, and schedule the writing of the file."""
        changed = self.current.evolve(**changes)
        if changed != self.current:
            self.current = changed
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
        """Write the settings now; a failure is only logged, since no work is lost."""
        self._timer.stop()
        try:
            write_atomically(self._path, self.current.model_dump_json(indent=2, exclude_defaults=True))
        except OSError as error:
            _log.warning("The settings could not be written: %s", error)


def _with_first(latest: _Recent, known: tuple[_Recent, ...]) -> tuple[_Recent, ...]:
    """Return the most recent of `known`, with `latest` as the first."""
    return (latest, *(other for other in known if other != latest))[:_RECENT_LIMIT]


def _read_settings(path: Path) -> WindowSettings:
    try:
        data = read_stored(path, "settings file", _MOST_BYTES)
        if data is None:
            return WindowSettings()
        stored = parse_json(data)
    except UnreadableFileError:
        _rename_unreadable_file(path)
        return WindowSettings()
    settings, rejected = _valid_settings(stored)
    if rejected:
        _rename_unreadable_file(path)
    return settings


def _valid_settings(stored: object) -> tuple[WindowSettings, bool]:
    """Return the settings with the valid fields of `stored`, and whether a field was rejected."""
    if not isinstance(stored, dict):
        return WindowSettings(), True
    settings, rejected = WindowSettings(), False
    for name, value in stored.items():
        try:
            settings = settings.evolve(**{str(name): value})
        except ValidationError:
            rejected = True
    return settings, rejected


def _rename_unreadable_file(path: Path) -> None:
    bad = path.with_suffix(".json.bad")
    try:
        path.replace(bad)
    except OSError:
        _log.warning("The unreadable settings file %s could not be renamed", path)
    else:
        _log.warning("Unreadable settings were renamed to %s", bad)
