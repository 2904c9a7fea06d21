"""The command palette: a searchable list of the enabled actions, settings, cards, models and explained terms."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, QSize, Slot
from PySide6.QtGui import QAction, QKeySequence

from planner.glossary import GlossaryTerm, glossary
from planner.gui.actions import Action, ActionSet
from planner.gui.choices import card_choices, model_choices
from planner.gui.explainer import Explainer
from planner.gui.memory.inputs import field_context_of
from planner.gui.theme import Theme
from planner.gui.widgets.popover import Choice, SearchPopover
from planner.gui.workspace import Workspace
from planner.plan.editing import WORKLOAD
from planner.plan.plan import ModelChoice
from planner.present.plan.settings import offered_choices, title_in_sentence
from planner.workload.fields import fields_of

if TYPE_CHECKING:
    from planner.gui.window import MainWindow

_WIDTH, _HEIGHT = 560, 420


class CommandPalette(SearchPopover):
    """Popup with a searchable list.

    It runs the chosen command, goes to the chosen setting, uses the chosen value, card or model, or explains the term.
    """

    def __init__(
        self, parent: "MainWindow", theme: Theme, workspace: Workspace, actions: ActionSet, explainer: Explainer
    ) -> None:
        super().__init__(parent, theme, "Type a command, a setting, a GPU, a model or a term")
        self._window = parent
        self._workspace = workspace
        self._actions = actions
        self._explainer = explainer
        self.setAccessibleName("Command palette")
        self.chosen.connect(self._run_command)

    @Slot()
    def open(self) -> None:
        """Open the palette at the top center of the window."""
        self.list.set_choices(
            [
                *self._command_choices(),
                *self._setting_choices(),
                *self._card_choices(),
                *self._model_choices(),
                *self._term_choices(),
            ]
        )
        window = self._window
        width = min(_WIDTH, window.width())
        self.resize(width, min(_HEIGHT, window.height()))
        self.move(window.mapToGlobal(QPoint((window.width() - width) // 2, window.height() // 12)))
        self.show()
        self.list.setFocus()

    def _command_choices(self) -> list[Choice]:
        return [
            Choice(
                qt_action.trigger,
                _command_title(action, qt_action),
                detail=qt_action.shortcut().toString(QKeySequence.SequenceFormat.NativeText),
                mark=(action.icon or "chevron-right", "muted"),
                words=" ".join([*action.menu.split("/")[:-1], _without_mnemonic(qt_action.text()), action.words]),
            )
            for action, qt_action in self._actions.enabled()
            if action.id != "view.palette"
        ]

    def _setting_choices(self) -> Iterator[Choice]:
        """Yield the settings of the plan's workload with their named values; the cards have commands of their own."""
        context = field_context_of(self._workspace.evaluation)
        if context is None:
            return
        for field in fields_of(self._workspace.plan.workload.task).values():
            if not field.is_shown(context) or field.group == "cards":
                continue
            step = title_in_sentence(field.title)
            yield Choice(
                partial(self._workspace.navigator.show_setting, field.name),
                f"Set {step}",
                mark=("memory", "muted"),
                words=field.title,
            )
            for value, title in offered_choices(field, context, None).items() if field.option.choices else ():
                if value is not None:
                    change = {f"{WORKLOAD}{field.name}": value}
                    key = partial(self._workspace.answer, step, change)
                    yield Choice(key, f"{field.title}: {title}", mark=("memory", "muted"), words=title)

    def _card_choices(self) -> list[Choice]:
        return [
            replace(
                choice, key=partial(self._workspace.answer, "GPU", {"gpu": choice.key}), title=f"Use {choice.title}"
            )
            for choice in card_choices(self._workspace)
        ]

    def _model_choices(self) -> list[Choice]:
        return [
            replace(
                choice,
                key=partial(self._plan_for, str(choice.key)),
                title=f"Plan for {choice.title}",
                mark=("model", "muted"),
            )
            for choice in model_choices(self._workspace)
        ]

    def _plan_for(self, model: str) -> None:
        """Plan for another model; on the Start page, it is the answer to the question about the model."""
        from planner.gui.start_page import StartPage  # the start does not wait for it

        choice, tab = ModelChoice(id=model), self._window.tab
        if isinstance(tab, StartPage):
            tab.plan_for(choice)
        else:
            self._workspace.apply("model", model=choice)

    def _term_choices(self) -> list[Choice]:
        return [
            Choice(
                partial(self._explain, term),
                f"Explain: {term.term}",
                mark=("info", "muted"),
                words=" ".join((*term.aliases, *term.labels)),
            )
            for term in glossary()
        ]

    def _explain(self, term: GlossaryTerm) -> None:
        """Explain a term where the palette was."""
        place = QRect(self._window.mapFromGlobal(self.pos()), QSize(self.width(), 0))
        self._explainer.show_card(term, self._window, place)

    @Slot(object)
    def _run_command(self, command: Callable[[], object]) -> None:
        with self._workspace.step():
            command()


def _command_title(action: Action, qt_action: QAction) -> str:
    """Return the action's text, prefixed with the name of its submenu: `Theme: Dark`."""
    submenus = action.menu.split("/")[1:-1]
    return ": ".join([*submenus, _without_mnemonic(qt_action.text())])


def _without_mnemonic(text: str) -> str:
    return text.replace("&", "").rstrip("…")
