"""Dialog to set up a trace."""

from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPushButton, QWidget

from planner.errors import PlannerError, SpecError
from planner.gui.memory.questions import new_form, remembered_section
from planner.gui.memory.trace.request_form import RequestForm, device_of, with_device
from planner.gui.memory.trace.target_form import InputsEditor, TargetForm
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.inputs.choice_field import RadioField
from planner.gui.widgets.inputs.field import TextField
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, InReadingOrder, in_column, scrolled
from planner.gui.workspace import Workspace
from planner.plan.trace_request import operator_fields
from planner.present.format import capitalized, plural
from planner.present.trace import shell_command
from planner.trace.notation import arguments_text, assumed_values_text, parse_arguments, parse_assumed_values
from planner.trace.request import Target, TraceLora, TraceRequest
from planner.trace.user_code import TraceCandidate

_SIZE: Final = QSize(620, 660)
_INPUT_SOURCES: Final = (("given", "from shapes"), ("own", "returned by the selected function"))
_ABOUT_MODULE: Final = "One step runs on tensors without data, in a separate process. No GPU is needed."
_ABOUT_SCRIPT: Final = (
    "The script runs on tensors without data, in a separate process, and ends after its last step. No GPU is needed, "
    "nothing is downloaded, and what it writes is not kept."
)
_DEFAULT_REQUEST: Final = TraceRequest(target=Target(kind="file", place="net.py"), task="training")


class AdvancedForm(QWidget):
    """Form for rarely changed settings; `edited` is emitted when a setting changes."""

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.loss = TextField(placeholder="from the output")
        self.step = TextField(_require_function_path, "none")
        self.optimizer_arguments = TextField(parse_arguments, "PyTorch's defaults")
        self.freeze = TextField(placeholder="nothing")
        self.rank = NumberField(1, 65_536, placeholder="none")
        self.steps = NumberField(1, 100)
        self.assume = TextField(parse_assumed_values, "if empty, more traces find bounds")
        self._problem = make_label(role="bad", wrap=True)
        self._problem.hide()
        form = new_form(theme)
        form.add("L&oss", self.loss, hint="cross_entropy, mse_loss … of torch.nn.functional, or file.py:function.")
        form.add(
            "&Custom step",
            self.step,
            hint="Function file.py:function(modules, inputs) that runs a whole training step.",
        )
        form.add("Optimizer arguments", self.optimizer_arguments, hint="For example: lr=0.1, fused=True.")
        form.add("Frozen", self.freeze, hint="Name patterns of parameters that are not trained: encoder.*, *.bias")
        form.add(
            "LoRA rank",
            self.rank,
            hint="LoRA adapters of this rank on all linear layers; all other parameters are frozen.",
        )
        form.add(
            "Ste&ps", self.steps, hint="Number of traced steps; the optimizer states exist from the second step on."
        )
        form.add(
            "Assumed &values",
            self.assume,
            hint="Values that depend on the data, such as the number of masked tokens, by source line or kind: "
            "net.py:42=30, mask=0.15.",
        )
        in_column(form, self._problem, owner=self)
        self._form = form
        self._module_fields = (self.loss, self.step, self.optimizer_arguments, self.freeze, self.rank)
        for field in (*self._module_fields, self.steps, self.assume):
            field.edited.connect(self.edited)

    def show_fields(self, *, for_script: bool) -> None:
        """Show or hide what a script itself decides."""
        for field in self._module_fields:
            self._form.set_row_visible(field, not for_script)

    def set_request(self, request: TraceRequest) -> None:
        """Show the settings of `request`."""
        self.loss.set_value(request.loss)
        self.step.set_value(request.step)
        self.optimizer_arguments.set_value(arguments_text(request.optimizer_arguments))
        self.freeze.set_value(", ".join(request.freeze))
        self.rank.set_value(request.lora.rank if request.lora else None)
        self.steps.set_value(request.steps)
        self.assume.set_value(assumed_values_text(request.assume))

    def apply_to(self, request: TraceRequest) -> TraceRequest:
        """Return `request` with the settings from this form.

        Raises:
            SpecError: If a value cannot be parsed or is not allowed.
        """
        return request.evolve(
            steps=self.steps.value,
            assume=parse_assumed_values(self.assume.text),
            **({} if request.target.is_script else self._module_settings(request)),
        )

    def _module_settings(self, request: TraceRequest) -> dict[str, object]:
        """Return the settings of `request` from this form that a script itself decides."""
        rank = self.rank.value
        return {
            "loss": self.loss.text or None,
            "step": self.step.text or None,
            "optimizer_arguments": parse_arguments(self.optimizer_arguments.text),
            "freeze": tuple(part.strip() for part in self.freeze.text.split(",") if part.strip()),
            "lora": None if rank is None else (request.lora or TraceLora()).evolve(rank=rank),
        }

    def summary(self, *, for_script: bool) -> str:
        """Return the settings that differ from their defaults, and the steps of a script, as text."""
        assumed = f"assumed: {self.assume.text}" if self.assume.text else ""
        if for_script:
            steps = plural(int(self.steps.value or 1), "step")
            return ", ".join(filter(None, (steps, assumed)))
        rank = self.rank.value
        parts = (
            f"loss {self.loss.text}" if self.loss.text else "",
            f"custom step {self.step.text.rpartition(':')[2]}" if self.step.text else "",
            f"frozen: {self.freeze.text}" if self.freeze.text else "",
            f"LoRA of rank {rank}" if rank else "",
            assumed,
        )
        return ", ".join(part for part in parts if part) or "defaults"


def _require_function_path(text: str) -> None:
    file, colon, name = text.strip().rpartition(":")
    if text.strip() and not (colon and file.endswith(".py") and name.isidentifier()):
        raise SpecError("step", "is not a function in a file", "Use the form file.py:function.")


class TraceDialog(InReadingOrder, QDialog):
    """Non-modal dialog for the target, inputs and run settings; `trace_requested` carries the complete request."""

    trace_requested = Signal(object)

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None, missing: str | None = None) -> None:
        super().__init__(parent)
        self._workspace, self._theme = workspace, theme
        self.target = TargetForm(workspace, theme)
        self.inputs = InputsEditor(theme)
        self.source = RadioField(theme, _INPUT_SOURCES)
        self.run = RequestForm(workspace, theme)
        self.more = AdvancedForm(theme)
        self._form = new_form(theme)
        self._problem = make_label(role="bad", wrap=True)
        self._problem.hide()
        self._go = push_button("Trac&e", role="primary")
        self._copy = push_button("Copy as co&mmand", "Copy the command that traces the script in a shell.")
        self._go.setToolTip("Run the module without a GPU, and count its memory")
        self._lay_out(missing)
        self.resize(_SIZE)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(button is self._go)  # Return starts the trace from any field
        self._connect()
        self.set_request(None)

    @property
    def problem(self) -> str:
        """Return why the last attempt to start a trace failed; empty after a success."""
        return self._problem.text() if not self._problem.isHidden() else ""

    def set_request(self, request: TraceRequest | None) -> None:
        """Show `request`, or the defaults for a new module."""
        self._is_new = request is None
        known = request or _DEFAULT_REQUEST.evolve(**operator_fields(self._workspace.evaluation.gpu))
        recent = self.target.recent_files()
        self.target.set_target(known.target, known.arguments)
        if request is None:
            self.target.file.set_value(recent[0] if recent else "")
            self.target.read_file()
        self.inputs.set_inputs(known.inputs)
        # What a script itself decides keeps its defaults, for a module that is chosen instead.
        self.run.set_request(with_device(_DEFAULT_REQUEST, device_of(known)) if known.target.is_script else known)
        self.more.set_request(known)
        self.source.set_value("own" if request is not None and not known.inputs else "given")
        if request is None:
            self.target.file.setFocus()
            self._update_inputs()
        elif known.target.is_script:
            self.target.script.script.setFocus()
        self._show_input_source()
        self._problem.hide()

    @property
    def is_unfinished(self) -> bool:
        """Return whether the form for a new module was left without a trace, so that it is shown again as it was."""
        return self._is_new and self.result() == QDialog.DialogCode.Rejected

    def open_file(self, path: Path) -> None:
        """Select the file at `path` as the target."""
        self.target.open_file(path)

    def request(self) -> TraceRequest:
        """Return the trace request from the form.

        Raises:
            SpecError: If a setting is missing or not allowed.
        """
        if self.run.request is None:
            raise SpecError("request", "no module to trace is set", "Choose a module first.")
        target = self.target.target()
        if target.is_script:
            script = TraceRequest(target=target, task="training")
            return self.more.apply_to(with_device(script, device_of(self.run.request)))
        fields: dict[str, object] = {"inputs": ()}
        if target.kind != "config" and self.source.value == "given":
            fields = {"inputs": self.inputs.inputs, "batch": None, "sequence_length": None}
            if not fields["inputs"]:
                raise SpecError("inputs", "give the shape of at least one input")
        arguments = () if target.kind == "config" else self.target.constructor_arguments()
        return self.more.apply_to(self.run.request.evolve(target=target, arguments=arguments, **fields))

    @Slot()
    def accept(self) -> None:
        """Emit the request, or show the problem; `finish` closes the dialog once the trace may run."""
        try:
            request = self.request()
        except PlannerError as error:
            self._show_error(error)
            return
        if request.target.is_script:
            self._workspace.settings.add_recent_script(request.target)
        elif request.target.kind == "file":
            self._workspace.settings.add_recently_traced(Path(request.target.place))
        self.trace_requested.emit(request)

    @Slot()
    def _copy_command(self) -> None:
        try:
            QGuiApplication.clipboard().setText(shell_command(self.request(), self._workspace.evaluation.gpu))
        except PlannerError as error:
            self._show_error(error)

    def finish(self) -> None:
        """Close the dialog, whose trace starts."""
        super().accept()

    def _show_error(self, error: PlannerError) -> None:
        places: dict[str, QWidget] = {"file": self.target.file, "name": self.target.name, "place": self.target.place}
        if self.target.is_script:
            form = self.target.script
            places |= {"script": form.script, "TARGET": form.script, "folder": form.folder}
            places |= {"arguments": form.arguments, "launcher": form.launcher}
        field = error.field if isinstance(error, SpecError) else ""
        self._problem.setText(error.explanation if isinstance(error, SpecError) else f"{error.message}. {error.hint}")
        of_inputs = field in ("inputs", "input")
        self._problem.setVisible(not (of_inputs and self.inputs.problem))  # the field itself says it
        if of_inputs:
            self.inputs.focus_first_gap()
        elif field in places:
            places[field].setFocus()

    @Slot()
    def _update_inputs(self) -> None:
        """List the inputs of the selected module, unless the selected function provides the inputs."""
        candidate = self.target.candidate
        self._problem.hide()
        if candidate is not None:
            self.source.set_value("own" if _provides_inputs(candidate) else "given")
            self.inputs.set_names([name for name, default in candidate.inputs if default is None])
        self._show_input_source()

    @Slot()
    def _show_input_source(self) -> None:
        candidate, is_script = self.target.candidate, self.target.is_script
        without_inputs = is_script or self.target.kind.value == "config"
        from_file = self.target.kind.value == "file"
        has_own_inputs = not without_inputs and not (from_file and (candidate is None or candidate.kind == "class"))
        if not has_own_inputs and self.source.value == "own":
            self.source.set_value("given")
        self._form.set_row_visible(self.source, has_own_inputs)
        are_shapes_typed = not without_inputs and self.source.value == "given"
        self.inputs.setVisible(are_shapes_typed)
        self.run.show_fields(sizes=not are_shapes_typed, for_script=is_script)
        self.more.show_fields(for_script=is_script)
        self._update_advanced_summary()
        self._about.setText(self._missing or (_ABOUT_SCRIPT if is_script else _ABOUT_MODULE))
        self._copy.setVisible(is_script)
        self.setWindowTitle("Trace a script" if is_script else "Trace a module")

    @Slot()
    def _update_advanced_summary(self) -> None:
        self._section.set_summary(self.more.summary(for_script=self.target.is_script))

    def _connect(self) -> None:
        self.target.changed.connect(self._update_inputs)
        self._copy.clicked.connect(self._copy_command)
        self.source.edited.connect(self._show_input_source)
        self.more.edited.connect(self._update_advanced_summary)
        for edited in (self.inputs.edited, self.run.edited, self.more.edited, self.source.edited):
            edited.connect(self._problem.hide)

    def _lay_out(self, missing: str | None) -> None:
        space = self._theme.spacing
        self._form.add(
            "&Inputs", self.source, hint="The inputs of the forward method. Shapes are enough; no data is needed."
        )
        self._section = remembered_section(self._workspace, self._theme, "More", self.more)
        body = QWidget()
        in_column(
            self.target,
            self._form,
            self.inputs,
            self.run,
            self._section,
            STRETCH,
            owner=body,
            margins=space.large,
            spacing=space.medium,
        )
        in_column((scrolled(body), 1), self._make_footer(missing), owner=self, margins=(0, 0, 0, space.medium))

    def _make_footer(self, missing: str | None) -> QWidget:
        space = self._theme.spacing
        foot = QWidget()
        column = in_column(owner=foot, margins=(space.large, 0, space.large, 0))
        self._missing = capitalized(missing or "")
        self._about = make_label(role="warn" if missing else "muted", wrap=True, selectable=True)
        self._go.setDefault(True)
        self._go.setEnabled(missing is None)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        buttons.addButton(self._go, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(self._copy, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        for widget in (self._problem, self._about, buttons):
            column.addWidget(widget)
        return foot


def _provides_inputs(candidate: TraceCandidate) -> bool:
    return candidate.kind == "function" and candidate.returns_inputs
