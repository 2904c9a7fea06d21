"""Ways to need less memory, and what each costs. What one saves is not written down: the whole estimate is asked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from planner.hardware.gpu import Gpu, computes_bf16
from planner.workload.workload import Workload

Cost = Literal["none", "time", "less", "much-time", "hardware"]
"""none; time: it takes longer; less: less is done than was asked for; much-time: it takes several times as long, since
parts are elsewhere than on the card; hardware: other or more cards."""
Risk = Literal["none", "small", "real"]
"""What may become of the quality of the trained model, or of the answers."""

COSTS: Final[tuple[Cost, ...]] = get_args(Cost)
RISKS: Final[tuple[Risk, ...]] = get_args(Risk)

_FEWEST_TOKENS: Final = 32


class PlanChange(NamedTuple):
    """One way to need less memory.

    `lever` names what it turns: of two changes with one lever, one is enough. `applies` are the values that fields of
    the workload, its defaults filled in, must have; `engine.n_ubatch` is a field of a part. `settings` are the fields
    of the workload that change, a mapping within one those of the part of that name; `hardware` are fields of the plan.
    `slower_by_about` is a factor on the time, none where it is longer by an amount that is not known; `kept` is the
    part of what was asked for that is still done. `needs` is what else must be there, `keeps` what stays as it was.
    `native_bf16` limits a change to cards that compute bf16 themselves, or to those that do not; `shares_states` one to
    plans with several cards that can share what they would each keep.
    """

    name: str
    lever: str
    sentence: str
    source: str
    settings: Mapping[str, object] = {}
    applies: Mapping[str, tuple[object, ...]] = {}
    hardware: Mapping[str, object] = {}
    cost: Cost = "none"
    slower_by_about: float | None = 1.0
    costs: str = ""
    kept: float = 1.0
    risk: Risk = "none"
    needs: str = ""
    keeps: str = ""
    native_bf16: bool | None = None
    shares_states: bool = False

    def applies_to(self, workload: Workload, gpu: Gpu | None) -> bool:
        """Return whether it changes something about `workload`, whose defaults are filled in, on `gpu`."""
        if self.native_bf16 is not None and gpu is not None and computes_bf16(gpu) != self.native_bf16:
            return False
        if self.shares_states and workload.parallel.state_shards == 1:
            return False
        return all(_value(workload, name) in values for name, values in self.applies.items())


def _value(workload: Workload, path: str) -> object:
    """Return the value at `path` of the workload, none where it has no such field."""
    value: object = workload
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


class Ladder(NamedTuple):
    """The values of one number, and the change that each of them is; `lever` is what it turns.

    They go from the mildest to the hardest; each needs no more memory than the one before, so that the first one that
    fits is found by bisection.
    """

    lever: str
    values: Sequence[int]
    change: Callable[[int], PlanChange]


def quantization_change(
    name: str,
    sentence: str,
    source: str,
    settings: Mapping[str, object],
    applies: Mapping[str, tuple[object, ...]],
    needs: str,
) -> PlanChange:
    """Return a change to weights in fewer bits; how fast those are depends on the kernels that compute with them."""
    return PlanChange(
        name=name,
        lever="weights",
        sentence=sentence,
        source=source,
        settings=settings,
        applies=applies,
        cost="time",
        slower_by_about=None,
        costs="speed depends on the kernels",
        risk="small",
        needs=needs,
    )


def smaller_chunks(setting: str, present: int, source: str) -> Ladder:
    """Return prompts in shorter and shorter pieces, of which the engine's `setting` is the tokens."""

    def smaller(tokens: int) -> PlanChange:
        return PlanChange(
            name=f"prompt in pieces of {tokens:,} tokens",
            lever="pieces",
            sentence="Read long prompts in smaller pieces.",
            source=source,
            settings={"engine": {setting: tokens}},
            cost="time",
            slower_by_about=None,
            costs="prompts are read more slowly",
            keeps="the answers",
        )

    return Ladder("pieces", smaller_powers(present, _FEWEST_TOKENS), smaller)


def smaller_powers(present: int, least: int) -> list[int]:
    """Return the powers of two below `present`, down to `least`, the largest first."""
    powers = (1 << exponent for exponent in range((present - 1).bit_length() - 1, -1, -1))
    return [power for power in powers if power >= least]
