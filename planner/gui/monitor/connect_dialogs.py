"""Dialogs that ask where cards are elsewhere: a machine over SSH, or a fleet and how to sign in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QDialog, QDialogButtonBox, QFileDialog, QGridLayout, QLabel, QLineEdit, QWidget

from planner.errors import PlannerError, SpecError
from planner.fleet.connection import SECRET_VARIABLE, FleetConnection, SignIn, keep_in_keyring
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.inputs.choice_field import ChoiceBox
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.monitor.supervisor.remote import SCHEME, RemoteAddress

_SIGN_INS: Final[tuple[tuple[str, SignIn], ...]] = (
    ("none", "none"),
    ("name and password", "basic"),
    ("token", "bearer"),
)
_WIDTH: Final = 560


class ConnectDialog(QDialog):
    """Asks for the address of a fleet; `chosen` carries the `FleetConnection` and the secret that was typed, or "".

    A typed secret stays in memory, or in the system's keyring if asked; it is never written to settings or plans.
    """

    chosen = Signal(object, str)

    def __init__(self, last: FleetConnection | None, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Connect to a fleet")
        last = last or FleetConnection(url="http://prometheus:9090")
        self._theme = theme
        self._labels: dict[QWidget, QLabel] = {}
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(theme.spacing.medium)
        self._grid.setVerticalSpacing(theme.spacing.small)
        self.url = self._line("&Address", last.url, "A Prometheus with its prefix, or an exporter's …/metrics")
        self.sign_in = ChoiceBox(theme)
        for title, _ in _SIGN_INS:
            self.sign_in.addItem(title)
        self.sign_in.setCurrentIndex([kind for _, kind in _SIGN_INS].index(last.sign_in))
        self._row("&Sign in", self.sign_in, "How the server wants you to sign in")
        self.user = self._line("&Name", last.user, "Name to sign in with")
        self.secret = self._line(
            "&Password or token", "", f"Empty: from {SECRET_VARIABLE}, or the keyring if kept there"
        )
        self.secret.setEchoMode(QLineEdit.EchoMode.Password)
        self.secret.setPlaceholderText(f"from {SECRET_VARIABLE}" if last.secret != "keyring" else "from the keyring")
        self.keep = QCheckBox("&Keep it in the system's keyring")
        self.keep.setToolTip("Otherwise it is forgotten when the window closes")
        self.keep.setChecked(last.secret == "keyring")
        self._grid.addWidget(self.keep, self._grid.rowCount(), 1)
        self.tenant = self._line("&Tenant", last.tenant, "X-Scope-OrgID of Mimir or Cortex; usually empty")
        browse = push_button("&Browse…", "Choose the file of the certificate")
        self.ca = QLineEdit(str(last.ca_file or ""))
        self._row("CA certi&ficate", self.ca, "PEM file of your own certificate authority", browse)
        browse.clicked.connect(self._choose_ca)
        self.problem = make_label(role="bad", wrap=True)
        self.problem.hide()
        about = make_label(
            "Prometheus, Thanos, Mimir, VictoriaMetrics or a data source of Grafana; or an exporter itself. "
            "Certificates are always checked, and redirects to other hosts are not followed.",
            "muted",
            wrap=True,
        )
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.connect_button = push_button("&Connect", "Read the GPUs of this fleet", "primary")
        buttons.addButton(self.connect_button, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        in_column(about, self._grid, self.problem, buttons, owner=self, margins=None, spacing=theme.spacing.medium)
        self.sign_in.currentIndexChanged.connect(self._show_questions)
        self._show_questions()
        self.setMinimumWidth(_WIDTH)
        self.url.setFocus()

    def accept(self) -> None:
        """Close the dialog and emit the connection, unless something in it is wrong."""
        kind = _SIGN_INS[self.sign_in.currentIndex()][1]
        typed = self.secret.text().strip()
        is_kept = self.keep.isChecked() and kind != "none"
        try:
            if not self.url.text().strip():
                raise PlannerError("Give an address.", "")
            connection = FleetConnection(
                url=self.url.text().strip(),
                sign_in=kind,
                user=self.user.text().strip() if kind == "basic" else "",
                secret="keyring" if is_kept else f"env:{SECRET_VARIABLE}",
                tenant=self.tenant.text().strip(),
                ca_file=Path(self.ca.text().strip()) if self.ca.text().strip() else None,
            )
            if is_kept and typed:
                keep_in_keyring(connection.url, typed)
        except PlannerError as error:
            self.problem.setText(" ".join(filter(None, (error.message, error.hint))))
            self.problem.show()
            return
        super().accept()
        self.chosen.emit(connection, "" if is_kept else typed)

    @Slot()
    def _show_questions(self) -> None:
        kind = _SIGN_INS[self.sign_in.currentIndex()][1]
        for widget, shown in ((self.user, kind == "basic"), (self.secret, kind != "none"), (self.keep, kind != "none")):
            widget.setVisible(shown)
            label = self._labels.get(widget)
            if label is not None:
                label.setVisible(shown)

    @Slot()
    def _choose_ca(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Certificate of your own authority", "", "PEM (*.pem *.crt *.cer)")
        if name:
            self.ca.setText(name)

    def _line(self, title: str, text: str, hint: str) -> QLineEdit:
        line = QLineEdit(text)
        self._row(title, line, hint)
        return line

    def _row(self, title: str, widget: QWidget, hint: str, *beside: QWidget) -> None:
        label = QLabel(title)
        label.setBuddy(widget)
        widget.setToolTip(hint)
        widget.setAccessibleName(title.replace("&", ""))
        row = self._grid.rowCount()
        self._grid.addWidget(label, row, 0)
        self._grid.addLayout(in_row((widget, 1), *beside, spacing=self._theme.spacing.small), row, 1)
        self._labels[widget] = label


_ABOUT: Final = (
    "GPU Planner must be installed there, and your SSH key must be accepted: no password is asked for. Names and "
    "settings of ~/.ssh/config apply. If gpu-planner is not on the path there, add where it is: "
    "ssh://gpu-box/~/venv/bin/gpu-planner"
)


class MachineDialog(QDialog):
    """Dialog for the address of a machine; `chosen` carries a `RemoteAddress`."""

    chosen = Signal(object)

    def __init__(self, recent: Sequence[str], theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Another machine")
        self.setMinimumWidth(_WIDTH)
        self.address = QLineEdit(next(iter(recent), ""))
        self.address.setPlaceholderText("gpu-box, or ssh://me@gpu-box:22")
        self.address.setAccessibleName("Machine")
        self.address.setToolTip("ssh://USER@HOST:PORT, or the name of a host alone")
        label = make_label("&Machine")
        label.setBuddy(self.address)
        self.recent = ChoiceBox(theme)
        self.recent.addItems(list(recent))
        self.recent.setAccessibleName("Watched before")
        self.recent.setToolTip("Machines that were watched before, the latest first")
        before = make_label("Watched &before")
        before.setBuddy(self.recent)
        for widget in (before, self.recent):
            widget.setVisible(len(recent) > 1)
        self.problem = make_label(role="bad", wrap=True)
        self.problem.hide()
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.watch = push_button("&Watch", "Show the GPUs of this machine", "primary")
        self.buttons.addButton(self.watch, QDialogButtonBox.ButtonRole.AcceptRole)
        in_column(
            label,
            self.address,
            self.problem,
            before,
            self.recent,
            make_label(_ABOUT, "muted", wrap=True),
            self.buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.small,
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.address.textEdited.connect(self.problem.hide)
        self.recent.textActivated.connect(self.address.setText)
        self.address.selectAll()
        self.address.setFocus()

    def accept(self) -> None:
        """Close the dialog and tell the address, unless it is none."""
        text = self.address.text().strip()
        try:
            address = RemoteAddress.parse(text if "://" in text else f"{SCHEME}{text}")
        except SpecError as error:
            self.problem.setText(error.explanation)
            self.problem.show()
            self.adjustSize()
            return
        super().accept()
        self.chosen.emit(address)
