"""Forms for the module or script to trace, a module's constructor arguments, and the shapes of its inputs."""

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFileDialog, QLineEdit, QPushButton, QWidget

from planner.errors import ModelFileError, SpecError
from planner.gui.memory.questions import new_form
from planner.gui.memory.trace.script_form import RecentButton, ScriptForm
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton, link_button
from planner.gui.widgets.inputs.choice_field import ChoiceField, RadioField
from planner.gui.widgets.inputs.field import TextField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.workspace import Workspace
from planner.trace.notation import arguments_text, input_text, parse_arguments, parse_input
from planner.trace.request import Argument, Input, Target
from planner.trace.user_code import TraceCandidate, find_trace_candidates, runs_as_script

_EXAMPLE_SHAPE = "8x3x224x224:float32"
_TYPES: Final = (("module", "a module"), ("script", "a script"))
_TARGET_KINDS: Final = (("file", "in a file"), ("import", "installed"), ("config", "the plan's model"))
_PYTHON: Final = "Python files (*.py)"
_READ_DELAY_MS: Final = 200


class InputsEditor(QWidget):
    """Editable rows for the module's inputs, at least one row; `edited` is emitted when an input changes."""

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[_InputRow] = []
        self._add = link_button("Add an inp&ut", "Add another argument of the module")
        self._column = in_column(owner=self, spacing=theme.spacing.tiny)
        below = in_row(self._add, STRETCH)
        self._column.addWidget(make_label("Inputs: name and shape", "muted"))
        self._column.addLayout(below)
        self._add.clicked.connect(self._on_add_clicked)
        self.set_names(("",))

    @property
    def problem(self) -> str:
        """Return the first problem with the input shapes, empty if all shapes are valid."""
        return next((row.shape.problem for row in self._rows if row.shape.problem), "")

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Return the inputs that have a shape.

        Raises:
            SpecError: If a shape cannot be parsed.
        """
        return tuple(row.read() for row in self._rows if row.shape.text)

    def set_inputs(self, inputs: Sequence[Input]) -> None:
        """Show one row for each of `inputs`."""
        texts = [input_text(traced_input) for traced_input in inputs] or [""]
        self._show_names_and_shapes([text.rpartition("=")[::2] if "=" in text else ("", text) for text in texts])

    def set_names(self, names: Sequence[str]) -> None:
        """Show one row per name; shapes that were already entered are kept, those without a name in their order."""
        known = {row.name.text(): row.shape.text for row in self._rows if row.name.text()}
        positional = iter([row.shape.text for row in self._rows if not row.name.text() and row.shape.text])
        pairs = [(name, known.get(name) or next(positional, "")) for name in names]
        self._show_names_and_shapes([*pairs, *(("", shape) for shape in positional)] or [("", "")])

    def focus_first_gap(self) -> None:
        """Focus the first missing or invalid shape."""
        wrong = [row for row in self._rows if row.shape.problem or not row.shape.text]
        (wrong or self._rows)[0].shape.setFocus()

    def _show_names_and_shapes(self, pairs: Sequence[tuple[str, str]]) -> None:
        while len(self._rows) > len(pairs):
            self._delete_input_row(self._rows[-1])
        while len(self._rows) < len(pairs):
            self._append_input_row()
        for row, (name, shape) in zip(self._rows, pairs, strict=True):
            row.name.setText(name)
            row.shape.set_value(shape)

    def _append_input_row(self) -> "_InputRow":
        row = _InputRow(self._theme, len(self._rows) + 1)
        row.removed.connect(lambda: self._on_remove_clicked(row))
        row.edited.connect(self.edited)
        self._rows.append(row)
        self._column.insertWidget(len(self._rows), row)
        return row

    def _delete_input_row(self, row: "_InputRow") -> None:
        self._rows.remove(row)
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()

    @Slot()
    def _on_add_clicked(self) -> None:
        self._append_input_row().name.setFocus()
        self.edited.emit()

    def _on_remove_clicked(self, row: "_InputRow") -> None:
        if len(self._rows) == 1:
            row.name.clear()
            row.shape.set_value("")
        else:
            self._delete_input_row(row)
        self._rows[0].shape.setFocus()
        self.edited.emit()


class _InputRow(QWidget):
    """Row for one input, with an optional name and a shape."""

    edited = Signal()
    removed = Signal()

    def __init__(self, theme: Theme, number: int) -> None:
        super().__init__()
        self.name = QLineEdit(placeholderText="positional")
        self.name.setAccessibleName(f"Name of input {number}")
        self.name.setToolTip("Argument name of forward; leave empty for a positional argument.")
        self.name.setFixedWidth(self.name.fontMetrics().averageCharWidth() * 16)
        self.shape = TextField(_require_shape_without_name, f"e.g. {_EXAMPLE_SHAPE}")
        self.shape.set_name(f"Shape of input {number}")
        self.shape.setToolTip("Size in each dimension, such as 8 × 3 × 224 × 224")
        remove = IconButton(theme, "close", f"Remove input {number}")
        layout = in_row(owner=self, spacing=theme.spacing.tiny)
        top = Qt.AlignmentFlag.AlignTop
        layout.addWidget(self.name, 0, top)
        layout.addWidget(self.shape, 1)
        layout.addWidget(remove, 0, top)
        self.setFocusProxy(self.shape)
        self.name.textEdited.connect(self.edited)
        self.shape.typed.connect(self.edited)
        remove.clicked.connect(self.removed)

    def read(self) -> Input:
        """Return the input from this row.

        Raises:
            SpecError: If the shape cannot be parsed.
        """
        name = self.name.text().strip()
        return parse_input(f"{name}={self.shape.text}" if name else self.shape.text)


def _require_shape_without_name(text: str) -> None:
    if text.strip():
        parsed_input = parse_input(text)
        if parsed_input.name:
            raise SpecError("input", "the name has its own field", f"Enter only the shape, such as {_EXAMPLE_SHAPE}.")


class TargetForm(QWidget):
    """Form for the module or script to trace; `changed` is emitted when another one is selected.

    Classes and functions in a file are listed by parsing the file, without running its code.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self._config: Target | None = None
        self._opened: Path | None = None
        self._candidates: dict[str, TraceCandidate] = {}
        self._theme = theme
        self.type = RadioField(theme, _TYPES)
        self.kind = RadioField(theme, _TARGET_KINDS)
        self.file = TextField(placeholder="e.g. net.py")
        self.name = ChoiceField(theme, ())
        self.place = TextField(_require_import_path, "e.g. package.module:Name")
        self.arguments = TextField(parse_arguments, "none")
        self._summary = make_label(role="muted", font=theme.font("small"), wrap=True)
        self._model = make_label(wrap=True)
        self._form = new_form(theme)
        self._form.add(
            "T&ype", self.type, hint="A network by itself, or a whole script as you run it, with its own loop and data."
        )
        self._form.add("The &module is", self.kind, hint="Defined in your own file or in an installed package.")
        self._form.add_below(self._model)
        self._form.add(
            "&File", self.file, hint="Python file with the module. You can also drop the file into the window."
        )
        self._form.add("Class or fu&nction", self.name, hint="A module class, or a function that returns a module.")
        self._form.add("Import pat&h", self.place, hint="Module path, colon, and name of the class or function.")
        self._form.add_below(self._summary)
        self._form.add(
            "Ar&guments", self.arguments, hint="Arguments of the class or function, such as width=64, bias=False."
        )
        self._column = in_column(self._form, owner=self, spacing=theme.spacing.small)
        self._reading = QTimer(self, singleShot=True, interval=_READ_DELAY_MS)
        self._add_file_buttons(theme)
        self._connect()
        self.set_target(Target(kind="file", place="net.py"), ())
        self.file.set_value("")

    @cached_property
    def script(self) -> ScriptForm:
        """Return the form for a script, built when it is first shown."""
        form = ScriptForm(self._workspace, self._theme)
        form.changed.connect(self.changed)
        self._column.addWidget(form)
        return form

    @property
    def is_script(self) -> bool:
        """Return whether a script is to be traced."""
        return self.type.value == "script"

    @property
    def candidate(self) -> TraceCandidate | None:
        """Return the selected class or function in the file, None for other kinds of targets."""
        return self._candidates.get(str(self.name.value)) if self.kind.value == "file" else None

    def target(self) -> Target:
        """Return the selected target.

        Raises:
            SpecError: If no target is selected; the error names the missing field.
        """
        if self.is_script:
            return self.script.target()
        kind = self.kind.value
        if kind == "config" and self._config is not None:
            return self._config
        if kind == "import":
            place, name = _split_import_path(self.place.text)
            return Target(kind="import", place=place, name=name)
        if not self.file.text:
            raise SpecError("file", "choose a Python file")
        if self.candidate is None:
            raise SpecError("name", self.file.problem or "the file defines no module and no function")
        return Target(kind="file", place=self.file.text, name=str(self.name.value))

    def constructor_arguments(self) -> tuple[Argument, ...]:
        """Return the arguments for the constructor or function.

        Raises:
            SpecError: If the arguments cannot be parsed.
        """
        return parse_arguments(self.arguments.text)

    def set_target(self, target: Target, arguments: tuple[Argument, ...]) -> None:
        """Show a target; the plan's own model, built from its configuration, cannot be changed here."""
        self._config = target if target.kind == "config" else None
        self._opened = None
        self._model.setText(target.place if self._config else "")
        self.type.set_value("script" if target.is_script else "module")
        self.kind.set_value("file" if target.is_script else target.kind)
        if target.is_script:
            self.script.set_target(target)
        elif target.kind == "file":
            self.file.set_value(target.place)
            self.read_file(target.name)
        elif target.kind == "import":
            self.place.set_value(target.title)
        self.arguments.set_value(arguments_text(arguments))
        self._show_inputs_of_kind()

    @Slot()
    def choose_script(self) -> None:
        """Choose to trace a script: the one that was traced last, if no other is shown."""
        self.type.set_value("script")
        self._on_type_chosen()
        self.script.script.setFocus()

    def open_file(self, path: Path) -> None:
        """Select the file at `path`: as a script, or else as the file of a module."""
        self.type.set_value("script" if _runs_as_script(path) else "module")
        self._opened = path
        self._fill_script()
        self._open_module_file(path)
        if self.is_script:
            self.script.script.setFocus()

    def _open_module_file(self, path: Path) -> None:
        self.kind.set_value("file")
        self.file.set_value(str(path))
        self._show_inputs_of_kind()
        self.read_file()
        self.changed.emit()

    def read_file(self, name: str = "") -> None:
        """List the classes and functions of the file, and select `name` or the most likely entry."""
        self._reading.stop()
        try:
            candidates = find_trace_candidates(Path(self.file.text).expanduser()) if self.file.text else ()
            problem = "" if candidates or not self.file.text else "This file defines no module and no function."
        except ModelFileError as error:
            candidates, problem = (), f"It {error.reason}. {error.hint}"
        self.file.show_problem(problem)
        self._candidates = {candidate.name: candidate for candidate in candidates}
        self.name.set_options([(candidate.name, _candidate_title(candidate)) for candidate in candidates])
        if candidates:
            self.name.set_value(name if name in self._candidates else _most_likely_name(candidates))
        self._show_candidate_details()

    def recent_files(self) -> tuple[str, ...]:
        """Return the recently traced files, the latest first."""
        return self._workspace.settings.current.traced_files

    def _add_file_buttons(self, theme: Theme) -> None:
        browse = QPushButton("Bro&wse…")
        browse.clicked.connect(self._choose_file)
        self.file.add_beside(RecentButton(theme, "Recently traced files", self._recent_entries))
        self.file.add_beside(browse)

    def _connect(self) -> None:
        self._reading.timeout.connect(self._on_file_typed)
        self.type.edited.connect(self._on_type_chosen)
        self.kind.edited.connect(self._show_inputs_of_kind)
        self.kind.edited.connect(self.changed)
        self.file.typed.connect(self._reading.start)
        self.name.edited.connect(self._on_name_chosen)
        self.place.typed.connect(self.changed)

    @Slot()
    def _choose_file(self) -> None:
        folder = str(Path(next(iter((self.file.text, *self.recent_files())), "")).parent)
        name, _ = QFileDialog.getOpenFileName(self, "Choose a Python file", folder, _PYTHON)
        if name:
            self._open_module_file(Path(name))

    def _recent_entries(self) -> list[tuple[str, partial[None]]]:
        return [(name, partial(self._open_module_file, Path(name))) for name in self.recent_files()]

    @Slot()
    def _on_type_chosen(self) -> None:
        self._fill_script()
        self._show_inputs_of_kind()
        self.changed.emit()

    def _fill_script(self) -> None:
        """Show the file that was opened as a script, too, or the script that was traced last."""
        if not self.is_script:
            return
        opened, self._opened = self._opened, None
        if opened is not None:
            self.script.open_file(opened)
        elif not self.script.script.text:
            self.script.show_recent()

    @Slot()
    def _on_file_typed(self) -> None:
        self.read_file(str(self.name.value))
        self.changed.emit()

    @Slot()
    def _on_name_chosen(self) -> None:
        self._show_candidate_details()
        self.changed.emit()

    @Slot()
    def _show_inputs_of_kind(self) -> None:
        kind = self.kind.value
        is_module = not self.is_script
        self.kind.set_offered("config", self._config is not None)
        for field, shown in (
            (self.kind, True),
            (self.file, kind == "file"),
            (self.name, kind == "file"),
            (self.place, kind == "import"),
            (self.arguments, kind != "config"),
        ):
            self._form.set_row_visible(field, is_module and shown)
        self._model.setVisible(is_module and kind == "config")
        if self.is_script or "script" in vars(self):
            self.script.setVisible(self.is_script)
        self._show_candidate_details()

    def _show_candidate_details(self) -> None:
        candidate = self.candidate
        self._summary.setText(candidate.summary if candidate else "")
        self._summary.setVisible(bool(candidate and candidate.summary) and not self.is_script)
        known = candidate.arguments if candidate else ()
        written = (name if default is None else f"{name}={default}" for name, default in known)
        example = ", ".join(written)
        self.arguments.set_placeholder(f"e.g. {example}" if example else "none")


def _runs_as_script(path: Path) -> bool:
    """Return whether the file is a script; False if it cannot be read, which the form for modules says."""
    try:
        return runs_as_script(path)
    except ModelFileError:
        return False


def _require_import_path(text: str) -> None:
    if text:
        _split_import_path(text)


def _split_import_path(text: str) -> tuple[str, str]:
    place, _, name = text.partition(":")
    if not (place and name and all(part.isidentifier() for part in (*place.split("."), *name.split(".")))):
        raise SpecError("place", "is not an import path", "Use the form package.module:Name.")
    return place, name


def _candidate_title(candidate: TraceCandidate) -> str:
    return f"{candidate.name}{'' if candidate.kind == 'class' else '()'}"


def _most_likely_name(candidates: tuple[TraceCandidate, ...]) -> str:
    """Return the name of a function that provides inputs, else of the last class, which often uses the others."""
    bringing = [candidate.name for candidate in candidates if candidate.returns_inputs]
    classes = [candidate.name for candidate in candidates if candidate.kind == "class"]
    return (bringing or classes[::-1] or [candidates[0].name])[0]
