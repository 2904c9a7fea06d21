"""Settings dialog of the Monitor tab: alerts, disconnecting from the driver, ending processes, electricity price."""

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QDialogButtonBox, QGridLayout, QLineEdit, QWidget

from planner.errors import SpecError
from planner.gui.monitor.settings import MonitorSettings
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.monitor.settings import AlertRules, AlertTargets
from planner.numbers import AMOUNT, MONEY, PERCENT, NumberKind
from planner.present.monitor.alert_options import ALERT_OPTIONS, AlertOption

_DEAREST_USD: Final = 10.0
_DEFAULT_RELEASE_MINUTES: Final = 10.0


class TariffField(DecimalField):
    """Input field for an electricity price in USD per kWh; an empty field and zero stand for no price."""

    def __init__(self, usd_per_kwh: float | None) -> None:
        super().__init__(0, _DEAREST_USD, placeholder="not set", kind=MONEY)
        self.set_name("Electricity price per kWh")
        self.setToolTip("Your electricity price, for the energy cost of recordings.")
        self.set_value(usd_per_kwh)

    @property
    def usd_per_kwh(self) -> float | None:
        """Return the electricity price in USD per kWh, None if it is not set."""
        return self.value or None


class SettingsDialog(QDialog):
    """Dialog that edits the Monitor tab's settings; `chosen` carries the new `MonitorSettings`."""

    chosen = Signal(object)

    def __init__(self, settings: MonitorSettings, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Alerts and settings")
        self._settings = settings
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(theme.spacing.medium)
        self._grid.setVerticalSpacing(theme.spacing.small)
        self._grid.setColumnMinimumWidth(1, 4 * theme.spacing.huge)
        self._theme = theme
        self._add_alert_rows(settings.alerts, settings.alert_targets)
        self._add_other_rows(settings)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        self.problem = make_label(role="bad", wrap=True)
        self.problem.hide()
        self._all = in_column(self._grid, self.problem, buttons, owner=self, margins=None, spacing=theme.spacing.medium)
        self.is_on.toggled.connect(self._set_alerts_enabled)
        self._set_alerts_enabled(self.is_on.isChecked())

    def accept(self) -> None:
        """Close the dialog and emit the new settings, unless a number is not allowed."""
        wrong = next((field for field in self.findChildren(DecimalField) if field.problem and field.isEnabled()), None)
        if wrong is not None:
            wrong.setFocus()
            return
        try:
            targets = AlertTargets(command=self.command.text(), webhook=self.webhook.text())
        except SpecError as error:
            self.problem.setText(error.explanation)
            self.problem.show()
            # adjustSize would stop at two thirds of a low screen.
            self.resize(self.width(), max(self.height(), self._all.totalHeightForWidth(self.width())))
            (self.webhook if "webhook" in error.field else self.command).setFocus()
            return
        rules = AlertRules(
            is_on=self.is_on.isChecked(),
            hold_seconds=self.hold.value or 0.0,
            **{
                name: box.chosen if isinstance(box, _OptionalThreshold) else box.isChecked()
                for name, box in self.rules.items()
            },
        )
        changes = {
            "alerts": rules,
            "alert_targets": targets,
            "release_after_minutes": self.release.chosen,
            "may_end_others": self.may_end_others.isChecked(),
            "usd_per_kwh": self.tariff.usd_per_kwh,
        }
        super().accept()
        self.chosen.emit(self._settings.evolve(**changes))

    def _add_alert_rows(self, rules: AlertRules, targets: AlertTargets) -> None:
        self._add_heading("Alerts")
        self.is_on = self._add_check_box(
            "&Show alerts on the desktop and mark them on the timeline", rules.is_on, "Turn all alerts on or off"
        )
        self.rules = {option.field: self._add_rule(option, getattr(rules, option.field)) for option in ALERT_OPTIONS}
        self.hold = DecimalField(0, 3600)
        self.hold.set_name("Delay temperature and memory alerts by, seconds")
        self.hold.setToolTip("How long a threshold must be exceeded before the alert")
        self.hold.set_value(rules.hold_seconds)
        self._add_row(make_label("Delay temperature and memory alerts by"), self.hold, "s")
        self.command = self._add_text(
            "R&un a command at each alert",
            targets.command,
            "notify-send, or a script of yours",
            "Gets the alert as JSON on its input, and in variables GPU_PLANNER_ALERT_TITLE, …_ADVICE and others",
        )
        self.webhook = self._add_text(
            "Send each alert to this &webhook",
            targets.webhook,
            "https://…",
            "Gets the alert as JSON by POST. A bearer token is taken from the variable GPU_PLANNER_ALERT_TOKEN.",
        )
        self._alerts = (*self.rules.values(), self.hold, self.command, self.webhook)

    def _add_other_rows(self, settings: MonitorSettings) -> None:
        self._add_heading("The driver and processes")
        self.release = self._add_threshold(
            "Disconnect from the &driver when this tab has been hidden for",
            settings.release_after_minutes,
            _DEFAULT_RELEASE_MINUTES,
            10_000,
            "min",
            hint="Lets a laptop's GPU sleep. Does not apply while recording or while alerts are on.",
        )
        self.may_end_others = self._add_check_box(
            "Allow ending processes of &other users",
            settings.may_end_others,
            "Offer to end other users' processes in the list, if the system allows it",
        )
        self._add_heading("Energy")
        self.tariff = TariffField(settings.usd_per_kwh)
        price = make_label("Electricity &costs")
        price.setBuddy(self.tariff)
        self._add_row(price, self.tariff, "$ per kWh")

    def _set_alerts_enabled(self, is_on: bool) -> None:
        for widget in self._alerts:
            widget.setEnabled(is_on)

    def _add_heading(self, text: str) -> None:
        self._grid.addWidget(make_label(text, font=self._theme.font(bold=True)), self._grid.rowCount(), 0, 1, 3)

    def _add_check_box(self, text: str, is_on: bool, hint: str) -> QCheckBox:
        box = QCheckBox(text)
        box.setToolTip(hint)
        box.setChecked(is_on)
        self._grid.addWidget(box, self._grid.rowCount(), 0, 1, 3)
        return box

    def _add_rule(self, option: AlertOption, value: float | None) -> QCheckBox:
        if not option.unit:
            return self._add_check_box(option.title, bool(value), option.hint)
        most = option.most / option.scale
        return self._add_threshold(option.title, value, option.usual, most, option.unit, option.kind, hint=option.hint)

    def _add_threshold(
        self,
        text: str,
        value: float | None,
        default: float,
        most: float,
        unit: str,
        kind: NumberKind = AMOUNT,
        *,
        hint: str,
    ) -> "_OptionalThreshold":
        threshold = _OptionalThreshold(text, value, default, most, kind)
        for widget in (threshold, threshold.number):
            widget.setToolTip(hint)
        self._add_row(threshold, threshold.number, unit)
        return threshold

    def _add_text(self, title: str, value: str, placeholder: str, hint: str) -> QLineEdit:
        field, row = QLineEdit(value), self._grid.rowCount()
        field.setPlaceholderText(placeholder)
        field.setToolTip(hint)
        field.setAccessibleName(title.replace("&", ""))
        label = make_label(title)
        label.setBuddy(field)
        self._grid.addWidget(label, row, 0, 1, 3)
        self._grid.addWidget(field, row + 1, 0, 1, 3)
        return field

    def _add_row(self, left: QWidget, number: DecimalField, unit: str) -> None:
        row = self._grid.rowCount()
        self._grid.addWidget(left, row, 0)
        self._grid.addWidget(number, row, 1)
        self._grid.addWidget(make_label(unit), row, 2)


class _OptionalThreshold(QCheckBox):
    """A check box with a number, the threshold that applies while the box is checked."""

    def __init__(self, text: str, value: float | None, default: float, most: float, kind: NumberKind) -> None:
        super().__init__(text)
        self.number = DecimalField(1, most, scale=0.01 if kind is PERCENT else 1, kind=kind)
        self.number.set_name(text.replace("&", ""))
        self.number.set_value(default if value is None else value)
        self.setChecked(value is not None)
        self._update_number()
        self.toggled.connect(self._update_number)

    @property
    def chosen(self) -> float | None:
        """Return the number, or None if the box is not checked."""
        return self.number.value if self.isChecked() else None

    def setEnabled(self, enabled: bool) -> None:
        """Enable the box, and the number if the box is checked."""
        super().setEnabled(enabled)
        self._update_number()

    def _update_number(self) -> None:
        self.number.setEnabled(self.isEnabled() and self.isChecked())
