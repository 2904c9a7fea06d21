"""How many floating-point operations a run takes."""

from collections.abc import Callable
from typing import Any

from torch.utils.flop_counter import flop_registry


class Flops:
    """Adds up the operations of matrix products, convolutions and attention: two for a multiplication with addition.

    **Source**: `torch.utils.flop_counter`, whose formulas are used; element-wise operators count nothing there.
    """

    def __init__(self) -> None:
        self.total = 0
        self._formulas: dict[Any, Callable[..., int] | None] = {}

    def count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Add what `func` took to make `result`."""
        try:
            formula = self._formulas[func]
        except KeyError:
            formula = self._formulas[func] = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.total += int(formula(*args, **kwargs, out_val=result))
