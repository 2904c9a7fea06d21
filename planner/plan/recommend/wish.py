"""What a person asks of hardware: limits of money, time and power, and whether to own it."""

from typing import Annotated, Literal

from pydantic import Field

from planner.base import Spec
from planner.cost.modes import RentMode

Having = Literal["rent", "own"]


class Wish(Spec):
    """The limits; what is `None` is not limited. Money and time are of one run, for services of one month."""

    budget_usd: float | None = Field(default=None, gt=0, le=1e9, allow_inf_nan=False)
    deadline_hours: float | None = Field(default=None, gt=0, le=1e6, allow_inf_nan=False)
    power_limit_watts: float | None = Field(
        default=None, gt=0, le=1e8, allow_inf_nan=False, description="of all cards together, their board power"
    )
    having: tuple[Having, ...] = Field(default=("rent", "own"), min_length=1, description="rent, own, or either")
    modes: tuple[RentMode, ...] = Field(default=("on-demand",), min_length=1, description="ways to rent")
    counts: tuple[Annotated[int, Field(ge=1, le=4_096)], ...] = Field(
        default=(1, 2, 4, 8), min_length=1, description="numbers of cards to look at"
    )
    vendors: tuple[str, ...] = Field(default=(), description="only these makers; empty: all of them")
    include_tight: bool = Field(default=False, description="also what fits in fewer than 19 of 20 cases")
