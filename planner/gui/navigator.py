"""What the parts of the window ask of each other, though none knows another."""

from PySide6.QtCore import QObject, Signal, Slot


class Navigator(QObject):
    """Carries requests from the part that has them to the one that answers: the window, or a tab that it shows first.

    `hub_model_requested` carries a model's name, `trace_requested` a module's file, an earlier request or none,
    `log_requested` a log's file or none. `trace_cancel_requested` leads to no tab.
    """

    tab_requested = Signal(str)
    fitting_cards_requested = Signal()
    model_file_requested = Signal()
    hub_model_requested = Signal(str)
    trace_requested = Signal(object)
    trace_again_requested = Signal()
    trace_cancel_requested = Signal()
    estimate_check_requested = Signal()
    log_requested = Signal(object)
    preset_requested = Signal()

    @Slot()
    def show_memory(self) -> None:
        """Show the tab that says how much memory the plan takes."""
        self.tab_requested.emit("memory")

    @Slot()
    def start_from_recipe(self) -> None:
        """Offer well-known recipes to start from."""
        self.show_memory()
        self.preset_requested.emit()

    def trace(self, subject: object = None) -> None:
        """Ask what to trace: a new module, one in the file `subject`, or another way of the request `subject`."""
        self.show_memory()
        self.trace_requested.emit(subject)

    @Slot()
    def trace_again(self) -> None:
        """Trace the plan's module as before."""
        self.show_memory()
        self.trace_again_requested.emit()

    @Slot()
    def check_estimate(self) -> None:
        """Trace the model of the plan, to compare it with the estimate."""
        self.show_memory()
        self.estimate_check_requested.emit()

    def compare_with_log(self, file: object = None) -> None:
        """Show the estimate beside what a run printed, in `file` if one is given."""
        self.show_memory()
        self.log_requested.emit(file)
