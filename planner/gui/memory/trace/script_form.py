"""Form for the script to trace, with its arguments, launcher and working folder."""

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QFileDialog, QMenu, QPushButton, QWidget

from planner.errors import ModelFileError, SpecError
from planner.gui.memory.questions import new_form
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.inputs.field import TextField
from planner.gui.widgets.layout import in_column
from planner.gui.workspace import Workspace
from planner.present.trace import command_text
from planner.trace.launcher import join_words, parse_command, split_words
from planner.trace.request import Target, TraceRequest
from planner.trace.user_code import runs_as_script, user_files

_MOST_CHARACTERS: Final = 100


class RecentButton(IconButton):
    """Button whose menu lists `entries()`, each a text and what it does."""

    def __init__(
        self, theme: Theme, title: str, entries: Callable[[], Iterable[tuple[str, Callable[[], object]]]]
    ) -> None:
        super().__init__(theme, "chevron-down", title)
        self._entries = entries
        self._menu = QMenu(self)
        self._menu.aboutToShow.connect(self._fill)
        self.clicked.connect(lambda: self._menu.popup(self.mapToGlobal(self.rect().bottomLeft())))

    @Slot()
    def _fill(self) -> None:
        self._menu.clear()
        for text, choose in self._entries():
            self._menu.addAction(_shortened(text).replace("&", "&&"), choose)
        if self._menu.isEmpty():
            self._menu.addAction("None yet").setEnabled(False)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


_PYTHON: Final = "Python files (*.py);;All files (*)"
_READ_DELAY_MS: Final = 200
_SUFFIX: Final = ".py"
_OWN_FOLDER: Final = "the script's folder"
_MODULE_OPTION: Final = "-m "
_IS_LIBRARY: Final = "The file defines modules but trains none. To trace one of them, choose the type “a module”."


class ScriptForm(QWidget):
    """Form for the script to trace; a command line that is entered as the script is taken apart into the fields."""

    changed = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self.script = TextField(placeholder="e.g. train.py, or torchrun --nproc_per_node=8 train.py --lr 0.1")
        self.arguments = TextField(split_words, "none")
        self.launcher = TextField(split_words, "python")
        self.folder = TextField(placeholder=_OWN_FOLDER)
        form = new_form(theme)
        form.add(
            "Scr&ipt",
            self.script,
            hint="Python file, -m and a package's module, or the whole command as in a shell.",
        )
        form.add("Ar&guments", self.arguments, hint="Arguments of the script, as in a shell: --epochs 3 --lr 1e-4.")
        form.add(
            "&Launched by",
            self.launcher,
            hint="Launcher of the script: torchrun --nproc_per_node=8, or accelerate launch.",
        )
        form.add("Working &folder", self.folder, hint="Folder in which the script runs.")
        in_column(form, owner=self)
        self._reading = QTimer(self, singleShot=True, interval=_READ_DELAY_MS)
        self._add_buttons(theme)
        self._reading.timeout.connect(self.check_file)
        self.script.typed.connect(self._reading.start)
        self.script.finished.connect(self._on_script_entered)
        self.folder.typed.connect(self._reading.start)
        for field in (self.script, self.arguments, self.launcher, self.folder):
            field.typed.connect(self.changed)

    def target(self) -> Target:
        """Return the script to trace.

        Raises:
            SpecError: If no script is given, or a field cannot be read; the error names the field.
        """
        self._take_apart()
        if not self.script.text:
            raise SpecError("script", "choose a Python file, or paste the command that starts it")
        folder = str(Path(self.folder.text).expanduser().absolute()) if self.folder.text else ""
        if folder and not os.path.isdir(folder):
            raise SpecError("folder", f"there is no folder {folder}", "Check the path.")
        if self._is_module:
            target = Target(kind="program", place=self.script.text.removeprefix(_MODULE_OPTION).strip(), folder=folder)
            if not user_files(TraceRequest(target=target)):
                hint = "Choose the working folder that contains its package."
                raise SpecError("script", f"there is no module {target.place}", hint)
        else:
            self.check_file()
            if self.script.problem:
                raise SpecError("script", self.script.problem)
            target = Target(kind="script", place=str(self._file), folder=folder or str(self._file.parent))
        return target.evolve(
            command_arguments=_words_of(self.arguments, "arguments"), launcher=_words_of(self.launcher, "launcher")
        )

    def set_target(self, target: Target) -> None:
        """Show the script `target`."""
        module = target.kind == "program"
        self.script.set_value(f"{_MODULE_OPTION}{target.place}" if module else target.place)
        self.arguments.set_value(join_words(target.command_arguments))
        self.launcher.set_value(join_words(target.launcher))
        self.folder.set_value("" if target.folder == str(Path(target.place).parent) else target.folder)
        self.check_file()

    def open_file(self, path: Path) -> None:
        """Choose the script at `path`, with the arguments, launcher and folder of its last trace, if there is one."""
        known = (target for target in self._workspace.settings.current.traced_scripts if target.place == str(path))
        self.set_target(next(known, Target(kind="script", place=str(path), folder=str(path.parent))))

    def show_recent(self) -> None:
        """Show the script that was traced last, if there is one."""
        for target in self._workspace.settings.current.traced_scripts[:1]:
            self.set_target(target)

    @Slot()
    def check_file(self) -> None:
        """Show whether the script's file is there, and is Python."""
        self._reading.stop()
        problem = note = ""
        if self.script.text.endswith(_SUFFIX):
            try:
                note = "" if runs_as_script(self._file) else _IS_LIBRARY
            except ModelFileError as error:
                problem = f"It {error.reason}. {error.hint}"
            if not self._file.is_file():
                problem = f"There is no file {self._file}. Choose it, or the working folder that contains it."
        self.folder.set_placeholder(os.getcwd() if self._is_module else _OWN_FOLDER)
        self.script.show_problem(problem)
        self.script.show_note(note)

    @property
    def _is_module(self) -> bool:
        return self.script.text.startswith(_MODULE_OPTION)

    @property
    def _file(self) -> Path:
        """Return the path of the script, which may be given as seen from the working folder."""
        return Path(self.folder.text).expanduser().absolute() / Path(self.script.text).expanduser()

    def _take_apart(self) -> None:
        """Divide a command line that was entered as the script among the fields.

        Raises:
            SpecError: If it is no command line, or names no script.
        """
        if not self.script.text or self._is_plain:
            return
        target = parse_command(_words_of(self.script, "script"))
        self.script.set_value("")  # a text that is being typed would stay
        self.set_target(target.evolve(folder=self.folder.text))
        self.changed.emit()

    @property
    def _is_plain(self) -> bool:
        """Return whether the script is a file or a module, and no command line."""
        words = self.script.text.split()
        is_module = self._is_module and len(words) == 2
        return is_module or self._file.is_file() or (len(words) == 1 and words[0].endswith(_SUFFIX))

    @Slot()
    def _on_script_entered(self) -> None:
        try:
            self._take_apart()
        except SpecError as error:
            self.script.show_problem(error.explanation)

    def _add_buttons(self, theme: Theme) -> None:
        # Return starts the trace from any field.
        choose_file = QPushButton("Bro&wse…", autoDefault=False)
        choose_folder = QPushButton("Br&owse…", autoDefault=False)
        choose_file.clicked.connect(self._choose_file)
        choose_folder.clicked.connect(self._choose_folder)
        self.script.add_beside(RecentButton(theme, "Recently traced scripts", self._recent_entries))
        self.script.add_beside(choose_file)
        self.folder.add_beside(choose_folder)

    def _recent_entries(self) -> list[tuple[str, partial[None]]]:
        recent = self._workspace.settings.current.traced_scripts
        return [(_recent_title(target), partial(self._choose_recent, target)) for target in recent]

    def _choose_recent(self, target: Target) -> None:
        self.set_target(target)
        self.changed.emit()

    @Slot()
    def _choose_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Choose a script", str(self._file.parent), _PYTHON)
        if name:
            self.script.set_value(name)
            self.check_file()
            self.changed.emit()

    @Slot()
    def _choose_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Choose the working folder", str(self._file.parent))
        if name:
            self.folder.set_value(name)
            self.check_file()
            self.changed.emit()


def _words_of(field: TextField, name: str) -> tuple[str, ...]:
    """Return the words in `field`; the `SpecError` for a text that cannot be divided has the name of the field."""
    try:
        return split_words(field.text)
    except SpecError as error:
        raise SpecError(name, error.reason, error.hint) from error


def _recent_title(target: Target) -> str:
    """Return the command of a script with its working folder."""
    return f"{command_text(target)} – {target.folder}" if target.folder else command_text(target)
