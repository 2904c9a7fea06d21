"""Opening and saving of files, and the question about unsaved changes."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QInputDialog, QMessageBox, QProgressDialog, QWidget

from planner.errors import NetworkError, PlannerError, SpecError
from planner.gui.autosave import Autosave, keep_plan
from planner.gui.locks import FileLock
from planner.gui.tasks import TaskRunner
from planner.gui.widgets.dialogs import choose_report_file, open_once
from planner.gui.workspace import Workspace
from planner.models.load import HUB_PREFIX, LoadedModel, load_hub_model
from planner.paths import state_dir
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.files import is_plan_file, load_plan
from planner.plan.merging import changed_fields, merge_plans
from planner.plan.plan import ModelChoice, Plan
from planner.present.format import integer
from planner.present.plan.phrase import beside_sentences
from planner.present.plan.settings import conflict_texts
from planner.storage import may_exist, set_aside
from planner.trace.recording import TracedFacts

if TYPE_CHECKING:
    from planner.workload.recipes.recipe import Recipe

PLAN_FILTER = "Plans (*.json);;All files (*)"
_OPENED = (
    "Plans, reports, models and recordings "
    "(*.json *.html *.md *.gpurec *.yaml *.yml *.gguf *.safetensors *.py *.log);;All files (*)"
)
Choice = Literal["mine", "theirs", "elsewhere", "none"]
"""Which version of a plan to save that was changed here and in its file."""
_REPORTS = (".html", ".htm", ".md", ".markdown")
_LOGS = (".log", ".txt", ".out")
_RECORDINGS = (".gpurec", ".csv")
_MODELS = "Models, modules and training files (*.json *.safetensors *.gguf *.yml *.yaml *.py);;All files (*)"
_TRACES = "Traces (*.trace.json.gz *.json.gz *.json);;All files (*)"


class Documents(QObject):
    """Opens and saves files; the actions of the File menu."""

    def __init__(self, workspace: Workspace, tasks: TaskRunner, window: QWidget) -> None:
        super().__init__(window)
        self._workspace, self._tasks, self._window = workspace, tasks, window
        self.autosave: Autosave | None = None
        self._announced: Plan | None = None

    @Slot()
    def new(self) -> None:
        """Replace the plan with the sample plan, after asking about unsaved changes."""
        if self.may_leave():
            with self._workspace.reporting():
                self._workspace.new_plan()

    @Slot()
    def choose_plan(self) -> None:
        """Ask for a plan, or for another file that the window reads, and open it."""
        self._choose_and_open("Open a plan", _OPENED)

    @Slot()
    def choose_neighbour(self) -> None:
        """Ask for a plan whose model runs on the same cards, and reserve its memory on them."""
        name, _ = QFileDialog.getOpenFileName(
            self._window, "Plan whose model runs on the same GPUs", self._recent_folder_text(), PLAN_FILTER
        )
        if name:
            with self._workspace.reporting():
                self.put_beside(load_plan(Path(name)))

    def put_beside(self, other: Plan) -> None:
        """Reserve memory on the plan's cards for the model of the plan `other`, and report how much.

        Raises:
            PlannerError: If the plan has no card of one kind, or one of the plans cannot be evaluated.
        """
        from planner.plan.shared_gpus import share_gpus  # few cards have several models

        shared = share_gpus(self._workspace.plan, [other], self._workspace.catalog)
        self._workspace.apply(f"beside {other.model.id}", workload=shared.plan.workload)
        box = QMessageBox(QMessageBox.Icon.Information, "GPUs shared with another plan", "", parent=self._window)
        box.setText("\n\n".join(beside_sentences(shared.neighbours)))
        open_once(box)

    @Slot()
    def choose_model(self) -> None:
        """Ask for a model's configuration or weights, and plan for that model, or for a module to trace."""
        self._choose_and_open("Open a model", _MODELS)

    @Slot()
    def choose_model_folder(self) -> None:
        """Ask for a folder with a model's configuration and weights, and plan for that model."""
        title = "Open a model's folder (with config.json or weights)"
        name = QFileDialog.getExistingDirectory(self._window, title, self._recent_folder_text())
        if name:
            self.open(Path(name))

    @Slot()
    def choose_hub_model(self) -> None:
        """Ask for the name of a Hugging Face Hub model, and plan for that model."""
        label = "Name of the model, as owner/name. Only its configuration and the headers of its weight files are read."
        name, given = QInputDialog.getText(self._window, "Open from Hugging Face", label)
        if given and name.strip():
            self.open_hub(f"{HUB_PREFIX}{name.strip().removeprefix(HUB_PREFIX)}")

    @Slot(str)
    def open_hub(self, name: str) -> None:
        """Read the Hugging Face Hub model `name` in the background, with a *Cancel* button, and plan for that model."""
        stop = Event()
        waiting = QProgressDialog(f"Reading {name} from the Hugging Face Hub…", "Cancel", 0, 0, self._window)
        waiting.setWindowTitle("Hugging Face Hub")
        waiting.canceled.connect(lambda: self._tasks.cancel("open"))

        def close_progress() -> None:
            stop.set()
            waiting.canceled.disconnect()
            waiting.reset()
            waiting.deleteLater()

        def use_model(model: LoadedModel) -> None:
            close_progress()
            self._use_model(model)

        def report_error(error: BaseException) -> None:
            close_progress()
            self._workspace.report(self._with_built_in_models(error))

        self._tasks.run(
            "open", partial(load_hub_model, name, stop.is_set), use_model, report_error, stop=close_progress
        )

    @Slot()
    def choose_trace(self) -> None:
        """Ask for a recorded trace, and plan for its module."""
        self._choose_and_open("Open a trace", _TRACES)

    @Slot()
    def save_trace(self) -> None:
        """Ask for a file, and save the recording of the plan's traced module to it."""
        facts = self._workspace.evaluation.traced
        if facts is None:
            return
        suggestion = Path(self._recent_folder_text()) / f"{self._suggested_file_stem().replace(':', '-')}.trace.json.gz"
        name, _ = QFileDialog.getSaveFileName(self._window, "Save the trace", str(suggestion), _TRACES)
        if name:
            save = partial(_save_recording, facts.digest, Path(name))
            self._tasks.run("save-trace", save, lambda _saved: None, self._workspace.report)

    def open(self, path: Path) -> None:
        """Open a plan, a model's file or folder, a training file or a trace.

        A Python file is offered to be traced, a log is compared with the plan, and a recording or a table of readings
        is replayed.
        """
        navigator, suffix = self._workspace.navigator, path.suffix.lower()
        if suffix == ".py":
            navigator.trace(path)
        elif suffix in _LOGS:
            navigator.compare_with_log(path)
        elif suffix in _RECORDINGS:
            navigator.recording_requested.emit(path)
        else:
            self._read_and_use(path)

    def _read_and_use(self, path: Path) -> None:
        self._tasks.run("open", partial(_read_content, path), partial(self._use_content, path), self._workspace.report)

    @Slot()
    def save(self) -> bool:
        """Save the plan to its file, or ask for a file name if it has none; return whether the plan was saved."""
        return self.save_as() if self._workspace.path is None else self._save_to(self._workspace.path)

    @Slot()
    def save_as(self) -> bool:
        """Ask for a file name, and save the plan to that file; return whether the plan was saved."""
        suggestion = (
            self._workspace.path or Path(self._recent_folder_text()) / f"{self._suggested_file_stem()}.plan.json"
        )
        name, _ = QFileDialog.getSaveFileName(self._window, "Save the plan", str(suggestion), PLAN_FILTER)
        return bool(name) and self._save_to(Path(name))

    @Slot()
    def choose_report(self) -> None:
        """Ask for a file, and write the report on the plan to it, beside the pinned plan if there is one."""
        suggestion = Path(self._recent_folder_text()) / f"{self._suggested_file_stem()}.html"
        path = choose_report_file(self._window, suggestion)
        if path is not None:
            workspace = self._workspace
            write = partial(_write_report, path, workspace.plan, workspace.pin.plan, workspace.catalog)
            self._tasks.run("report", write, self._on_report_written, self._workspace.report)

    def _on_report_written(self, path: Path) -> None:
        self._workspace.noticed.emit(f"Wrote the report to {path}.", "It opens in a browser and in GPU Planner.")

    def may_leave(self) -> bool:
        """Ask what to do with unsaved changes, which another plan will replace; return whether to continue."""
        return self._settle_changes() is not None

    def may_quit(self) -> bool:
        """Ask what to do with unsaved changes of the plan's file; return whether the user wants to quit.

        A plan without a file is autosaved and restored at the next start, so there is no need to ask. Changes that are
        discarded are taken back, or the next start would restore them.
        """
        if self._workspace.path is None:
            return True
        answer = self._settle_changes()
        if answer == QMessageBox.StandardButton.Discard:
            self._take_back_changes(self._workspace.path)
        return answer is not None

    def _settle_changes(self) -> QMessageBox.StandardButton | None:
        """Ask whether to save unsaved changes, and save them; return the answer, or None to stay with the plan."""
        buttons, path = QMessageBox.StandardButton, self._workspace.path
        if not self._workspace.modified:
            return buttons.NoButton
        answer = self._ask_to_save("Save this plan?" if path is None else f"Save the changes to {path.name}?")
        return answer if answer == buttons.Discard or (answer == buttons.Save and self.save()) else None

    def _take_back_changes(self, path: Path) -> None:
        try:
            self._workspace.replace(load_plan(path), path)
        except PlannerError:  # the file is gone or damaged: there is nothing to return to
            self._workspace.new_plan()

    def _choose_and_open(self, title: str, kinds: str) -> None:
        name, _ = QFileDialog.getOpenFileName(self._window, title, self._recent_folder_text(), kinds)
        if name:
            self.open(Path(name))

    def _is_usable(self, plan: Plan, path: Path) -> bool:
        """Return True if the window can show `plan`, before it asks about unsaved changes.

        Raises:
            PlannerError: If it cannot, with the name of the plan's file.
        """
        try:
            evaluate(plan, self._workspace.catalog)
        except SpecError as error:
            raise PlannerError(f"{path}: {error.message}", error.hint) from error
        return True

    def _ask_to_save(self, question: str) -> QMessageBox.StandardButton:
        buttons = QMessageBox.StandardButton
        box = QMessageBox(QMessageBox.Icon.Question, "GPU Planner", question, parent=self._window)
        box.setInformativeText("Changes that are not saved are lost.")
        box.setStandardButtons(buttons.Save | buttons.Discard | buttons.Cancel)
        box.setDefaultButton(buttons.Save)
        return QMessageBox.StandardButton(box.exec())

    def _use_content(self, path: Path, content: "Plan | LoadedModel | TracedFacts | Recipe") -> None:
        with self._workspace.reporting():
            if isinstance(content, TracedFacts):
                self._workspace.take_trace(content, f"trace of {content.request.target.short_title}")
                self._workspace.navigator.show_memory()
            elif isinstance(content, LoadedModel):
                self._use_model(content)
            elif not isinstance(content, Plan):
                self._apply_recipe(content, path)
            elif self._is_usable(content, path) and self.may_leave():
                if path.suffix.lower() in _REPORTS:
                    self._workspace.replace(content, None)  # saving the plan must not replace the report
                    return
                self._workspace.replace(content, path)
                self._workspace.settings.add_recent_plan(path)
                self._note_other_window(path)

    @Slot(str)
    def trace_network(self, text: str) -> None:
        """Read the configuration of the network `text`, and request its trace."""
        from planner.plan.trace_request import request_of_config

        read = partial(request_of_config, text, self._workspace.catalog)
        self._workspace.navigator.show_memory()
        self._tasks.run("open", read, self._workspace.navigator.trace_requested.emit, self._workspace.report)

    def _apply_recipe(self, recipe: "Recipe", path: Path) -> None:
        """Apply a training file to the plan in one undo step, with its model if known, and report what was read."""
        from planner.gui.file_work import plan_from_training_file

        workspace = self._workspace
        plan, (first, *others) = plan_from_training_file(workspace.plan, recipe, path, workspace.catalog.models)
        workspace.end_gesture()
        workspace.apply(f"open {path.name}", model=plan.model, workload=plan.workload, count=plan.count)
        workspace.end_gesture()
        workspace.navigator.show_memory()
        workspace.noticed.emit(first, " ".join(others))

    def _use_model(self, model: LoadedModel) -> None:
        with self._workspace.reporting():
            choice = ModelChoice.of_file(model.name, model.architecture, model.path or model.name)
            self._workspace.end_gesture()
            self._workspace.answer("model", {"model": choice})

    def _with_built_in_models(self, error: BaseException) -> BaseException:
        """Return the error of a network with what works without one."""
        if not isinstance(error, NetworkError):
            return error
        count = integer(len(self._workspace.catalog.models.records))
        return NetworkError(error.message, f"{count} models are built in; or open a config.json. {error.hint}".strip())

    def _save_to(self, path: Path) -> bool:
        with self._workspace.reporting():
            while not self._save_unless_changed(path):
                choice = self._settle_file(path)
                if choice == "elsewhere":
                    return self.save_as()
                if choice == "none":
                    return False
            return True
        return False

    def _save_unless_changed(self, path: Path) -> bool:
        """Save the plan and return True, unless its file was changed since it was read; others wait meanwhile."""
        with suppress(OSError), FileLock(state_dir() / "saving.lock").waited_for():
            return self._save_if_as_read(path)
        return self._save_if_as_read(path)  # where no lock can be made

    def _save_if_as_read(self, path: Path) -> bool:
        workspace = self._workspace
        if path == workspace.path:
            try:
                theirs = _read_if_there(path)
            except PlannerError:
                return False
            if theirs is not None and theirs not in (workspace.base, workspace.plan):
                return False
        workspace.save_plan(path)
        return True

    @Slot()
    def check_file(self) -> None:
        """Read the plan's file in the background, and show what another program or window changed in it."""
        path = self._workspace.path
        if path is not None:
            self._tasks.run("file", partial(_read_if_there, path), partial(self._note_file, path), _ignore_error)

    def _note_file(self, path: Path, theirs: Plan | None) -> None:
        workspace = self._workspace
        if path != workspace.path or theirs is None or theirs in (workspace.base, self._announced):
            return
        if fields := self._take_file(path, theirs):
            self._announced = theirs
            message = f"{path.name} was changed by another program or window, in the same fields as here."
            workspace.noticed.emit(message, f"When you save, you are asked which to keep: {'; '.join(fields)}.")

    def _take_file(self, path: Path, theirs: Plan) -> tuple[str, ...]:
        """Merge the plan with `theirs`, the changed content of its file, and say so; or return what conflicts."""
        workspace = self._workspace
        if workspace.base is None:
            merged, names = None, changed_fields(workspace.plan, theirs)
        else:
            merged, names = merge_plans(workspace.base, workspace.plan, theirs)
        if merged is not None:
            message = f"{path.name} was changed by another program or window: its changes are in the plan now."
            try:
                workspace.take_file(theirs, merged)
            except PlannerError:
                names = changed_fields(workspace.plan, theirs)
            else:
                workspace.noticed.emit(message, "Edit › Undo shows the plan without them.")
        return conflict_texts(names, workspace.plan, theirs, workspace.catalog.hardware)

    def _settle_file(self, path: Path) -> Choice:
        """Put the plan together with its file if that was changed since it was read, or ask; return what to save."""
        workspace = self._workspace
        try:
            theirs = _read_if_there(path)
        except PlannerError as error:
            aside = set_aside(path) if path.is_file() else None
            if aside is None:
                raise
            workspace.noticed.emit(f"{error.message}.", f"It is kept as {aside}, and your plan is in its place.")
            return "mine"
        if theirs is None:
            return "mine"
        conflicts = self._take_file(path, theirs)
        choice = self._ask_which(path, conflicts) if conflicts else "mine"
        if conflicts and choice in ("mine", "theirs"):
            self._keep_other(theirs, choice)
        return choice

    def _keep_other(self, theirs: Plan, choice: Choice) -> None:
        """Keep the version of the plan that is not chosen as a file of its own, and show the other."""
        workspace = self._workspace
        kept = keep_plan(state_dir() / "autosave", theirs if choice == "mine" else workspace.plan, workspace.settings)
        if kept is None:
            raise PlannerError("The other version cannot be kept, so nothing is saved.", "Use File › Save as….")
        if choice == "theirs":
            workspace.take_file(theirs, theirs)
        workspace.base = theirs
        workspace.noticed.emit("The other version is kept, too.", f"File › Recent opens it: {kept}.")

    def _ask_which(self, path: Path, conflicts: tuple[str, ...]) -> Choice:
        question = f"{path.name} was changed by another program or window since you opened it."
        box = QMessageBox(QMessageBox.Icon.Question, "GPU Planner", question, parent=self._window)
        fields = "\n".join(f"• {text}" for text in conflicts)
        kept = "The version that you do not choose is kept as a file of its own."
        box.setInformativeText(f"Both versions change the same fields:\n{fields}\n\n{kept}")
        role = QMessageBox.ButtonRole.AcceptRole
        choices: dict[QAbstractButton, Choice] = {
            box.addButton("&Keep mine", role): "mine",
            box.addButton("&Take theirs", role): "theirs",
            box.addButton("Save &as…", role): "elsewhere",
        }
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(cancel)
        box.setEscapeButton(cancel)
        box.exec()
        return choices.get(box.clickedButton(), "none")

    def _note_other_window(self, path: Path) -> None:
        if self.autosave is not None and self.autosave.is_open_elsewhere(path):
            self._workspace.noticed.emit(
                f"{path.name} is open in another window, too.",
                "Changes of different fields are put together when you save; for the same field you are asked.",
            )

    def _recent_folder_text(self) -> str:
        recent = self._workspace.settings.current.recent
        return str(Path(recent[0]).parent if recent else os.path.expanduser("~"))  # also without a home

    def _suggested_file_stem(self) -> str:
        return self._workspace.plan.model.id.rpartition("/")[2] or "plan"


def _write_report(path: Path, plan: Plan, pinned: Plan | None, catalog: Catalog) -> Path:
    # Reports load what a start of the window does not need.
    from planner.present.report.comparison_report import report_on_two_plans
    from planner.present.report.plan_report import report_on_plan
    from planner.present.report.write import write_report

    today = datetime.now(UTC).date()
    write_report(
        report_on_plan(plan, catalog, today) if pinned is None else report_on_two_plans(plan, pinned, catalog, today),
        path,
    )
    return path


def _read_if_there(path: Path) -> Plan | None:
    return load_plan(path) if may_exist(path) else None


def _ignore_error(_error: BaseException) -> None:
    """Ignore the error: opening or saving the file reports it."""


def _read_content(path: Path) -> "Plan | LoadedModel | TracedFacts | Recipe":
    if is_plan_file(path):
        return load_plan(path)
    from planner.gui.file_work import read_other_file

    return read_other_file(path)


def _save_recording(digest: str, path: Path) -> None:
    from planner.gui.file_work import copy_recording

    copy_recording(digest, path)
