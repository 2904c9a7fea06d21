"""Present values, rates of return, annuities and loans."""

import math
from collections.abc import Sequence
from typing import Final

_BISECTIONS: Final = 200
_HIGHEST_RATE: Final = 100.0
_ROUNDING: Final = 1e-9


def ceil_with_tolerance(amount: float) -> int:
    """Return the ceiling of `amount`, ignoring tiny excesses from floating-point rounding."""
    return math.ceil(amount - _ROUNDING)


def irr(flows: Sequence[float]) -> float | None:
    """Return the yearly internal rate of return of `flows`, or None if there is none.

    **Assumes** a single such rate above −100 %, as for one payment that is followed by returns.
    """

    def value(rate: float) -> float:
        return sum(flow / (1 + rate) ** year for year, flow in enumerate(flows))

    low, high = -0.99, _HIGHEST_RATE
    if value(low) * value(high) > 0:
        return None
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if value(low) * value(middle) > 0 else (low, middle)
    return (low + high) / 2


def equivalent_annual(present_usd: float, rate: float, years: float) -> float:
    """Return the constant yearly payment whose present value is `present_usd`."""
    return present_usd / annuity(rate, years)


def annuity(rate: float, years: float, growth: float = 0.0) -> float:
    """Return the present value of one dollar a year, paid evenly over `years` and growing by `growth` a year.

    **Formula** ∫₀ᵗ ((1 + g) / (1 + r))^s ds = (q^t − 1) / ln q; t where q = 1
    """
    log = math.log((1 + growth) / (1 + rate))
    # expm1 keeps what little there is of a growth that nearly equals the rate.
    return years if log == 0 else math.expm1(log * years) / log


def discounted(usd: float, rate: float, years: float) -> float:
    """Return the present value of `usd` in `years` years."""
    return float(usd / (1 + rate) ** years)


def loan_value(borrowed_usd: float, interest: float, loan_years: float, rate: float, years: float) -> float:
    """Return the present value of a loan's payments over `years`, including repayment of the remaining debt at the end.

    **Formula** payment = B / a(i, L); cost = payment · a(r, min(t, L)) + payment · a(i, L − t) / (1 + r)^t
    """
    payment = borrowed_usd / annuity(interest, loan_years)
    paid = payment * annuity(rate, min(years, loan_years))
    if years >= loan_years:
        return paid
    return paid + discounted(payment * annuity(interest, loan_years - years), rate, years)
