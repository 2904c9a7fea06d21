"""Declared actions, from which the menus, the keyboard shortcuts and the command palette are made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar, QWidget

from planner.gui.theme import Theme

_MENU_TITLES: Final = {
    **{name: f"&{name}" for name in ("File", "Edit", "View", "Plan", "Catalog", "Help")},
    **{"Monitor": "Mon&itor", "Theme": "&Theme", "Columns": "Col&umns", "Sort by": "Sort &by"},
    **{"Power and cooling": "Power and coolin&g", "Your own": "Your o&wn"},
}
"""Titles of the menus with the letter that opens them with Alt, which no control of a tab uses."""


@dataclass(frozen=True, slots=True)
class Action:
    """Menu action of a window; `menu` is a menu path and a group, as in `File/1`; `&` in `text` marks the mnemonic.

    `words` are further words by which the command palette finds it.
    """

    id: str
    text: str | Callable[[], str]
    run: Callable[[], object]
    menu: str
    shortcut: str = ""
    icon: str = ""
    enabled_when: Callable[[], bool] | None = None
    checked_when: Callable[[], bool] | None = None
    words: str = ""


Subject = TypeVar("Subject")
Returned = TypeVar("Returned")


@dataclass(frozen=True, slots=True)
class UnboundAction(Generic[Subject]):
    """Action declared before its window exists; its functions take the window or a tab (the subject) as argument."""

    id: str
    text: str | Callable[[Subject], str]
    menu: str
    run: Callable[[Subject], object]
    shortcut: str = ""
    icon: str = ""
    enabled_when: Callable[[Subject], bool] | None = None
    checked_when: Callable[[Subject], bool] | None = None
    words: str = ""

    def of(self, find: Callable[[], Subject]) -> Action:
        """Return the action bound to the subject that `find` returns when the action runs."""

        def bind_to_subject(function: Callable[[Subject], Returned]) -> Callable[[], Returned]:
            return lambda: function(find())

        return Action(
            self.id,
            self.text if isinstance(self.text, str) else bind_to_subject(self.text),
            bind_to_subject(self.run),
            self.menu,
            self.shortcut,
            self.icon,
            None if self.enabled_when is None else bind_to_subject(self.enabled_when),
            None if self.checked_when is None else bind_to_subject(self.checked_when),
            self.words,
        )


class ActionSet(QObject):
    """Qt actions made from the declared actions; `refresh` updates their texts, enabled states and check marks."""

    def __init__(self, theme: Theme, actions: Sequence[Action], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.declared = tuple(actions)
        self._made = {action.id: self._make_qt_action(action, parent) for action in actions}
        self._is_tinted = False
        theme.changed.connect(self._mark_icons_outdated)
        self.refresh()

    def __getitem__(self, action_id: str) -> QAction:
        return self._made[action_id]

    def enabled(self) -> list[tuple[Action, QAction]]:
        """Return the enabled actions, each with its Qt action."""
        pairs = [(action, self._made[action.id]) for action in self.declared]
        return [(action, made) for action, made in pairs if made.isEnabled()]

    @Slot()
    def refresh(self) -> None:
        """Update the text, the enabled state and the checked state of every action."""
        for action in self.declared:
            made = self._made[action.id]
            made.setText(action.text if isinstance(action.text, str) else action.text())
            made.setEnabled(action.enabled_when is None or action.enabled_when())
            if action.checked_when is not None:
                made.setChecked(action.checked_when())

    @Slot()
    def prepare(self) -> None:
        """Update the actions and their icons for a menu that is about to be shown."""
        self.refresh()
        if self._is_tinted:
            return
        self._is_tinted = True
        for action in self.declared:
            if action.icon:
                self._made[action.id].setIcon(self._theme.icon(action.icon, "muted"))

    @Slot()
    def _mark_icons_outdated(self) -> None:
        self._is_tinted = False

    def fill(self, bar: QMenuBar) -> dict[str, QMenu]:
        """Build the menus with separators between groups, and return the menus by path, such as `View/Theme`."""
        menus: dict[str, QMenu] = {}
        groups: dict[str, str] = {}
        for action in self.declared:
            *path, group = action.menu.split("/")
            menu = _menu_at_path(bar, menus, path)
            if groups.get(path[0], group) != group:
                menus[path[0]].addSeparator()
            groups[path[0]] = group
            menu.addAction(self._made[action.id])
        return menus

    def _make_qt_action(self, action: Action, parent: QWidget) -> QAction:
        qt_action = QAction(parent)
        qt_action.setObjectName(action.id)
        qt_action.setCheckable(action.checked_when is not None)
        if action.shortcut:
            qt_action.setShortcuts(QKeySequence.listFromString(action.shortcut))
        qt_action.triggered.connect(lambda _checked=False: action.run())
        parent.addAction(qt_action)
        return qt_action


def _menu_at_path(bar: QMenuBar, menus: dict[str, QMenu], path: list[str]) -> QMenu:
    parent: QMenuBar | QMenu = bar
    for depth in range(len(path)):
        name = "/".join(path[: depth + 1])
        if name not in menus:
            menus[name] = parent.addMenu(_MENU_TITLES.get(path[depth], path[depth]))
        parent = menus[name]
    return menus["/".join(path)]
