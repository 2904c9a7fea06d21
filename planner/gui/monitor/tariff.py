"""The field for the price of a kWh."""

from typing import Final

from PySide6.QtWidgets import QDoubleSpinBox

_DEAREST_USD: Final = 10.0
_STEP_USD: Final = 0.01


class TariffField(QDoubleSpinBox):
    """A price in USD per kWh; at its lowest it is not known, and no cost is told."""

    def __init__(self, usd_per_kwh: float | None) -> None:
        super().__init__(minimum=0.0, maximum=_DEAREST_USD, decimals=3, singleStep=_STEP_USD)
        self.setPrefix("$ ")
        self.setSuffix(" a kWh")
        self.setSpecialValueText("not set")
        self.setAccessibleName("Price of a kWh")
        self.setToolTip("What your electricity costs; with it, a recording's energy has a price.")
        self.setKeyboardTracking(False)
        self.setValue(usd_per_kwh or 0.0)

    @property
    def usd_per_kwh(self) -> float | None:
        """Return the price, none where it is not set."""
        return self.value() or None
