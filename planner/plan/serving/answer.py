"""Wishes for a service, its options with what limits them, and the answer of a search."""

from typing import Annotated, Final, Literal

from pydantic import Field

from planner.base import Spec
from planner.cost.terms import RentMode
from planner.plan.plan import Plan
from planner.plan.recommend.option import Acquisition, ExcludedCount, HardwareOption
from planner.serving.result import ServingSimulation

Objective = Literal["usd", "cards", "watts"]
"""What an answer needs least of: dollars per month, cards, or the rated power of all cards."""


class ServingWish(Spec):
    """Choices of a search for the hardware of a service, and the figure that it minimises."""

    objective: Objective = "usd"
    gpus: tuple[str, ...] = Field(default=(), description="only these cards, by catalog id; empty: all that can be had")
    vendors: tuple[str, ...] = Field(default=(), description="only these makers; empty: all of them")
    cards_per_replica: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        default=(1, 2, 4, 8), min_length=1, description="numbers of cards that share one copy of the model"
    )
    most_cards: int = Field(default=64, ge=1, le=4_096, description="cards of all replicas together")
    weights: tuple[str, ...] = Field(default=(), description="weight formats to try as well as the plan's")
    kv_caches: tuple[str, ...] = Field(default=(), description="formats of the KV cache to try as well as the plan's")
    step_tokens: tuple[Annotated[int, Field(ge=16, le=1_000_000)], ...] = Field(
        default=(), description="tokens of a step (`max_num_batched_tokens`) to try as well as the plan's"
    )
    having: tuple[Acquisition, ...] = Field(default=("rent", "own"), min_length=1, description="rent, own, or either")
    modes: tuple[RentMode, ...] = Field(default=("on-demand",), min_length=1, description="rental modes")
    budget_usd: float | None = Field(default=None, gt=0, le=1e9, allow_inf_nan=False, description="per month")
    surely: bool = Field(
        default=False, description="targets hold at the upper end of their ranges, not only in the estimate"
    )


WhatIf = Literal["longer-prompts", "longer-answers", "more-requests", "fewer-replicas", "fp8-cache", "no-prefix-cache"]


class Consequence(Spec):
    """Consequence of a change of traffic or settings for an option: whether its targets still hold, else which fail.

    `cache_factor` is the tokens that the cache then holds, relative to now.
    """

    change: WhatIf
    factor: float
    """Factor of the change: 1.05 for prompts that are 5 % longer."""
    holds: bool
    broken: tuple[str, ...] = ()
    """Titles of the targets that are no longer held: `p95 time to first token`."""
    cache_factor: float | None = None


class ServingOption(Spec):
    """Hardware that holds the targets: cards, replicas and settings, with its cost and its simulation."""

    plan: Plan
    """The plan on these cards, which can be opened and launched."""
    replicas: int
    """Copies of the model."""
    cards_per_replica: int
    """Cards that share one copy."""
    hardware: HardwareOption | None
    """How it is rented or bought, and what it costs per month; None if no price is known."""
    simulation: ServingSimulation
    """Its simulated service."""
    watts: float | None
    """Rated power of all cards together; None if unknown."""
    changes: tuple[str, ...] = ()
    """Settings that differ from those of the plan."""
    consequences: tuple[Consequence, ...] = ()
    """What would break its targets or ease them; of the best option only."""

    @property
    def cards(self) -> int:
        """Return the number of cards of all replicas."""
        return self.replicas * self.cards_per_replica

    @property
    def usd_per_month(self) -> float | None:
        """Return the cost per month in dollars, None if no price is known."""
        return None if self.hardware is None else self.hardware.usd


class ServingAnswer(Spec):
    """State of a search for the hardware of a service: the options so far, the best first.

    `done` of `total` configurations have been tried; the answer is complete when they are equal.
    """

    wish: ServingWish
    """What was asked for."""
    done: int
    """Configurations that were tried."""
    total: int
    """Configurations that were found so far."""
    options: tuple[ServingOption, ...] = ()
    """Options that hold the targets, the best first."""
    left_out: tuple[ExcludedCount, ...] = ()
    """Reasons for leaving configurations out, with their numbers."""
    nearest: ServingOption | None = None
    """The option that misses its targets least, if none holds them."""

    @property
    def best(self) -> ServingOption | None:
        """Return the best option, None if there is none (so far)."""
        return self.options[0] if self.options else None

    @property
    def complete(self) -> bool:
        """Return whether all configurations have been tried."""
        return self.done == self.total


SHOWN_OPTIONS: Final = 50
