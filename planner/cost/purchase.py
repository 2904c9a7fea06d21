"""What was asked or paid for hardware, on a day, by a source."""

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.cost.figure import DATE

PurchaseKind = Literal["gpu", "server", "networking", "workstation"]
PurchasePriceKind = Literal["list", "partner", "street", "used", "msrp"]
"""list: the maker's; partner: of who builds boards with the maker's chip; street: a shop's; used: second hand; msrp:
recommended at launch."""
Included = Literal["card", "baseboard", "server", "rack", "networking", "workstation", "unknown"]
"""baseboard: modules on their board, without a host; unknown: the source does not say whether there is one."""


class Purchase(Spec):
    """One price of a card, a server, a switch or a workstation. What it is for is `gpu` or, in doubt, `candidates`."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    item: str = Field(min_length=1, description="as the source calls it")
    kind: PurchaseKind
    gpu: str | None = None
    candidates: tuple[str, ...] = ()
    gpu_count: int | None = Field(default=None, ge=1, le=72)
    includes: Included
    price_usd: float = Field(ge=50, le=1e7, allow_inf_nan=False)
    price_kind: PurchasePriceKind
    price_date: str | None = Field(default=None, pattern=DATE, description="none where the source has no day")
    source: str = Field(min_length=3)
    doubt: str | None = Field(default=None, min_length=3, description="why it may not be the price of a card")
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _says_what_for(self) -> Self:
        named = self.gpu is not None or bool(self.candidates)
        if named != (self.gpu_count is not None) or (self.gpu is not None and bool(self.candidates)):
            raise ValueError("names one card or several candidates, with how many of them, or neither")
        if named != (self.kind in ("gpu", "server")):
            raise ValueError(f"a {self.kind} {'names no card' if named else 'names its card'}")
        return self
