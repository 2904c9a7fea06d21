"""How many floating-point operations a run takes, and what else decides its time."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry


class Flops:
    """Adds up the operations of matrix products, convolutions and attention: two for a multiplication with addition.

    `convolutions` are those of convolutions among them. `elements` are those that they put out, which is what the
    operators between them read and write again; `calls` are all operators, each of which Python hands to the card.

    **Source**: `torch.utils.flop_counter`, whose formulas are used; element-wise operators count nothing there.
    """

    def __init__(self) -> None:
        self.total = self.convolutions = self.elements = self.calls = 0
        self._formulas: dict[Any, Callable[..., int] | None] = {}

    def count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Add what `func` took to make `result`."""
        try:
            formula = self._formulas[func]
        except KeyError:
            formula = self._formulas[func] = flop_registry.get(func._overloadpacket)
        self.calls += 1
        if formula is not None:
            own = int(formula(*args, **kwargs, out_val=result))
            self.total += own
            if "convolution" in func._overloadpacket.__name__:
                self.convolutions += own
            made = result if isinstance(result, tuple | list) else (result,)
            self.elements += sum(one.numel() for one in made if isinstance(one, torch.Tensor))

    def restart(self) -> None:
        """Forget what was counted so far."""
        self.total = self.convolutions = self.elements = self.calls = 0
