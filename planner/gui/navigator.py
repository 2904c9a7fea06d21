"""Requests between parts of the window that do not refer to each other."""

from PySide6.QtCore import QObject, Signal, Slot


class Navigator(QObject):
    """Signals that request an action of the window or of a tab; most requests also show the tab in question.

    `hub_model_requested` carries a model's name; `trace_requested` a module's file, an earlier request or None;
    `log_requested` a log file or None; `file_requested` a plan's file; `recording_requested` a
    recording or a table of readings to replay; `setting_requested` a workload field.
    `start_left` shows the tab from before the Start page; `trace_cancel_requested` shows no tab.
    """

    tab_requested = Signal(str)
    fitting_cards_requested = Signal()
    hardware_requested = Signal()
    model_file_requested = Signal()
    model_folder_requested = Signal()
    hub_model_requested = Signal(str)
    trace_requested = Signal(object)
    script_trace_requested = Signal()
    trace_again_requested = Signal()
    trace_cancel_requested = Signal()
    estimate_check_requested = Signal()
    log_requested = Signal(object)
    preset_requested = Signal()
    questions_requested = Signal()
    setting_requested = Signal(str)
    file_requested = Signal(object)
    recording_requested = Signal(object)
    hardware_choice_requested = Signal()
    demo_requested = Signal()
    start_left = Signal()

    @Slot()
    def show_memory(self) -> None:
        """Show the Memory tab."""
        self.tab_requested.emit("memory")

    @Slot()
    def show_questions(self) -> None:
        """Show the Memory tab with its questions, which a narrow window hides."""
        self.show_memory()
        self.questions_requested.emit()

    def show_setting(self, name: str) -> None:
        """Show the Memory tab, and give the keyboard to the input for the workload field `name`."""
        self.show_questions()
        self.setting_requested.emit(name)

    @Slot()
    def start_from_recipe(self) -> None:
        """Show the Memory tab, and open its list of recipes from which a plan can start."""
        self.show_memory()
        self.preset_requested.emit()

    def trace(self, subject: object = None) -> None:
        """Open the trace dialog for a new module, for the file `subject`, or for changes to the request `subject`."""
        self.show_memory()
        self.trace_requested.emit(subject)

    @Slot()
    def trace_script(self) -> None:
        """Open the trace dialog for a script."""
        self.show_memory()
        self.script_trace_requested.emit()

    @Slot()
    def trace_again(self) -> None:
        """Trace the plan's module again with the same settings."""
        self.show_memory()
        self.trace_again_requested.emit()

    @Slot()
    def check_estimate(self) -> None:
        """Trace the plan's model and compare the result with the estimate."""
        self.show_memory()
        self.estimate_check_requested.emit()

    def compare_with_log(self, file: object = None) -> None:
        """Compare the estimate with the log of a run, from `file`, or from a file chosen by the user."""
        self.show_memory()
        self.log_requested.emit(file)
