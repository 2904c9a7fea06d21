"""Changes that reduce the memory of a plan, and their costs; savings are computed by the full estimate."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from planner.hardware.gpu import Gpu, computes_bf16
from planner.workload.workload import Workload

Cost = Literal["none", "time", "less", "much-time", "hardware"]
"""Cost of a change: none; time (slower); less (less work is done than requested); much-time (several times slower,
since parts of the model are not on the GPU); or hardware (other or more GPUs)."""
Risk = Literal["none", "small", "real"]
"""Risk to the quality of the trained model or of the outputs, from none to real."""

COSTS: Final[tuple[Cost, ...]] = get_args(Cost)
RISKS: Final[tuple[Risk, ...]] = get_args(Risk)

_FEWEST_TOKENS: Final = 32


class PlanChange(NamedTuple):
    """A change that reduces the memory of a plan.

    `lever` is what it changes: an advice never combines two changes of the same lever, nor a change with a lever
    that it `excludes`. `applies` are the values that workload fields must have, with defaults filled in;
    `engine.n_ubatch` is a field of a part. `settings` are the workload fields that change, with a mapping for the
    fields of a part; `hardware` are fields of the plan. `slower_by_about` is a factor on the time, None for an
    unknown slowdown; `kept` is the fraction of the requested work that is still done. `needs` are further
    requirements, and `keeps` is what stays unchanged. `native_bf16` limits a change to GPUs with or without native
    bf16, and `shares_states` to plans with several GPUs that can shard their states.
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
    excludes: tuple[str, ...] = ()

    def applies_to(self, workload: Workload, gpu: Gpu | None) -> bool:
        """Return whether the change affects `workload`, whose defaults are filled in, on `gpu`."""
        if self.native_bf16 is not None and gpu is not None and computes_bf16(gpu) != self.native_bf16:
            return False
        if self.shares_states and workload.parallel.state_shards == 1:
            return False
        return all(_field_value(workload, name) in values for name, values in self.applies.items())


def _field_value(workload: Workload, path: str) -> object:
    value: object = workload
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


class ChangeSequence(NamedTuple):
    """Values of one setting from the mildest to the strongest, with the change to each; `lever` names the setting.

    Each value needs no more memory than the one before, so bisection finds the first one that fits.
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
    """Return a change to quantized weights, with fewer bits; its effect on speed depends on the kernels."""
    return PlanChange(
        name=name,
        lever="weights",
        sentence=sentence,
        source=source,
        settings=settings,
        applies=applies,
        cost="time",
        slower_by_about=None,
        costs="speed depends on the kernels used",
        risk="small",
        needs=needs,
    )


def smaller_chunks(setting: str, present: int, source: str) -> ChangeSequence:
    """Return the changes to smaller prompt chunks, the largest first; `setting` is the chunk size in tokens."""

    def change_to_chunk(tokens: int) -> PlanChange:
        return PlanChange(
            name=f"prompt chunks of {tokens:,} tokens",
            lever="pieces",
            sentence="Process long prompts in smaller chunks.",
            source=source,
            settings={"engine": {setting: tokens}},
            cost="time",
            slower_by_about=None,
            costs="slower prefill",
            keeps="the outputs",
        )

    return ChangeSequence("pieces", smaller_powers_of_two(present, _FEWEST_TOKENS), change_to_chunk)


def smaller_powers_of_two(present: int, least: int) -> list[int]:
    """Return the powers of two below `present`, down to `least`, the largest first."""
    powers = (1 << exponent for exponent in range((present - 1).bit_length() - 1, -1, -1))
    return [power for power in powers if power >= least]
