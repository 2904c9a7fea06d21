"""One way to do the job: so many cards of a kind, rented from somebody or owned, with memory, time and cost."""

from typing import Literal

from planner.base import Spec
from planner.cost.modes import RentMode
from planner.memory.result import Verdict
from planner.performance.result import Basis, Bound
from planner.plan.recommend.wish import Having, Wish

Award = Literal["cheapest", "fastest", "best value"]


class Option(Spec):
    """Cards that fit, their pace, and what the job takes and costs on them.

    `usd` and `hours` are of one `period`, a run, or a month of a service or daily hours: rented as billed, owned as its
    share of everything that owning costs over the horizon. `comparable`: whether the price may be called the cheapest.
    """

    gpu: str
    count: int
    having: Having
    period: Literal["run", "month"]
    sharing: str = ""
    """How the cards share the network, where one does not hold it."""
    verdict: Verdict
    free_bytes: int
    fit_probability: float | None
    tokens_per_second: float | None
    samples_per_second: float | None
    bound: Bound | None
    basis: Basis
    hours: float
    low_hours: float
    high_hours: float
    usd: float
    low_usd: float
    high_usd: float
    power_watts: float | None
    offer: str | None = None
    provider: str | None = None
    mode: RentMode | None = None
    price_date: str | None = None
    comparable: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return what tells it from the others."""
        return f"{self.count}×{self.gpu}·{self.offer or self.having}·{self.mode or ''}"

    @property
    def slowness(self) -> float:
        """Return what is lower the faster it is: the hours of a run, else the seconds of a token or sample."""
        pace = self.tokens_per_second or self.samples_per_second
        return self.hours if self.period == "run" or not pace else 1 / pace


class LeftOut(Spec):
    """Why so many cards or offers are not among the options."""

    reason: str
    count: int


class Recommendation(Spec):
    """Every option within the limits, the cheapest first, with the three that stand out; and what was left out.

    `pareto` are the keys of those that nothing else beats in both time and cost. `nearest` is, where nothing is within
    the limits, what comes closest without them.
    """

    wish: Wish
    period: Literal["run", "month"]
    """What money and time are of."""
    options: tuple[Option, ...]
    cheapest: Option | None
    fastest: Option | None
    best_value: Option | None
    pareto: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    nearest: Option | None = None
    oldest_price_date: str | None = None
