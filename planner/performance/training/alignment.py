"""Time of a step of preference tuning or reinforcement learning: generation, scores, training and weight sync."""

from collections.abc import Iterator
from math import ceil
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.memory.software import serving_memory
from planner.memory.training.alignment_models import rollout_workload, value_network, value_training
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture
from planner.performance.certainty import scale_to_measured
from planner.performance.inference.estimate import inference_time
from planner.performance.links import links_of
from planner.performance.result import Bound, TimeResult, TimeTerm, TimeTermName
from planner.performance.setting import TimeSetting
from planner.performance.training.estimate import training_time
from planner.workload.alignment import ROLLOUT_ENGINE, Alignment
from planner.workload.parallel import Parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

_GENERATION: Final = (
    "the estimate of inference for these completions; phases follow each other (TRL 1.10 grpo_trainer.py)"
)
_SCORING: Final = "the estimate of prefill for whole sequences, once for each model that scores them"
_VALUE: Final = "the estimate of training for the value model, which shares the step with the policy"
_SYNC: Final = "trained weights are read once and written once, at the memory bandwidth or that of the network"
_ASSUMED: Final = "Every completion is counted at its full length: shorter ones take less."


def alignment_time(
    architecture: Architecture,
    workload: Training,
    cards: tuple[tuple[Gpu, int], ...],
    setting: TimeSetting,
    measured_on: Gpu | None = None,
) -> TimeResult:
    """Return the time of one optimizer step of `workload`, whose objective is DPO, PPO or GRPO, on `cards`.

    Samples are prompts, or pairs in DPO; tokens are those that are trained. A measured speed replaces the estimate,
    scaled if it was measured on other GPUs.

    **Formula**: generation + scores + training step (+ that of the value model) + weight sync.

    **Assumes** that the phases follow each other, and that all completions have their full length.
    """
    plain = setting.evolve(measured=None)
    found = _estimated(architecture, workload, cards, plain)
    measured = setting.measured
    if measured is None or found.seconds is None:
        return found
    slowest, count = cards[0][0], sum(number for _, number in cards)
    there, number = measured_on or slowest, measured.count or count
    is_same = (there.id, number) == (slowest.id, count)
    counterpart = found if is_same else _estimated(architecture, workload, ((there, number),), plain)
    return scale_to_measured(found, counterpart, measured, is_same=is_same) if counterpart.seconds else counterpart


def _estimated(
    architecture: Architecture, workload: Training, cards: tuple[tuple[Gpu, int], ...], setting: TimeSetting
) -> TimeResult:
    alignment = workload.alignment
    step = workload.replaced(micro_batch=alignment.sequences(workload.micro_batch), alignment=Alignment())
    base = training_time(architecture, step, cards, setting)
    if base.seconds is None or not cards:
        return base
    slowest = min(cards, key=lambda kind: kind[0].bandwidth_bytes_per_s or 0.0)[0]
    try:
        added = list(_other_phases(architecture, workload, slowest, setting))
    except _UnknownTimeError as error:
        return TimeResult(task="training", kind="step", unsupported=str(error))
    if alignment.method == "ppo":
        value = training_time(value_network(architecture), value_training(workload), cards, setting)
        added.append(_phase("value_model", 1, value, "t_step of the value model", _VALUE))
    seconds = base.seconds + sum(each.term.seconds for each in added)
    low = (base.low_seconds or base.seconds) + sum(each.low for each in added)
    high = (base.high_seconds or base.seconds) + sum(each.high for each in added)
    prompts = (
        (base.samples_per_second or 0.0) * base.seconds / alignment.sequences(1) / alignment.completions_per_prompt
    )
    tokens = None if base.tokens_per_second is None else base.tokens_per_second * base.seconds
    longest = max(added, key=lambda each: each.term.seconds, default=None)
    bound = longest.bound if longest and longest.term.seconds > base.seconds else base.bound
    return base.evolve(
        seconds=seconds,
        low_seconds=low,
        high_seconds=high,
        tokens_per_second=None if tokens is None else tokens / seconds,
        low_tokens_per_second=None if tokens is None else tokens / high,
        high_tokens_per_second=None if tokens is None else tokens / low,
        samples_per_second=prompts / seconds,
        samples="pairs" if alignment.method == "dpo" else "prompts",
        bound=bound,
        terms=(*(each.term for each in added), *base.terms),
        mfu_fraction=None if base.mfu_fraction is None else base.mfu_fraction * base.seconds / seconds,
        notes=(*base.notes, *((_ASSUMED,) if alignment.generates else ())),
    )


class _UnknownTimeError(Exception):
    """The reason why the time of a phase is unknown."""


class _Phase(NamedTuple):
    """A phase besides training: its time with bounds, and the resource that takes most of it."""

    term: TimeTerm
    low: float
    high: float
    bound: Bound | None


def _phase(name: TimeTermName, times: int, time: TimeResult, formula: str, source: str) -> _Phase:
    """Return the phase that takes `times` times as long as `time`."""
    if time.seconds is None:
        raise _UnknownTimeError(f"{name.replace('_', ' ')}: {time.unsupported}")
    term = TimeTerm(
        name=name, seconds=times * time.seconds, formula=formula, symbols=(), source=source, certainty="measured"
    )
    low, high = time.low_seconds or time.seconds, time.high_seconds or time.seconds
    return _Phase(term, times * low, times * high, time.token_bound or time.bound)


def _other_phases(architecture: Architecture, workload: Training, gpu: Gpu, setting: TimeSetting) -> Iterator[_Phase]:
    """Yield generation, scores and weight sync of a step of `workload`, as far as it has them.

    Raises:
        _UnknownTimeError: If the time of one is unknown.
    """
    alignment, tensor = workload.alignment, workload.parallel.tensor
    sequences = alignment.sequences(workload.micro_batch) * workload.gradient_accumulation
    further = alignment.further_cards
    if alignment.generates:
        everywhere = sequences * (workload.parallel.data or 1)
        rollout = rollout_workload(architecture, workload, ceil(everywhere / further) if further else sequences)
        concurrent_completions = _concurrent_completions(architecture, rollout, gpu)
        parallel = Parallel(tensor=1 if further else tensor, data=1)
        one = rollout.replaced(batch=concurrent_completions, parallel=parallel)
        time = inference_time(architecture, one, ((gpu, parallel.tensor),), setting)
        yield _phase(
            "generation", ceil(rollout.batch / concurrent_completions), time, "⌈n / B⌉ × t_generation", _GENERATION
        )
    if passes := alignment.scoring_passes:
        length = workload.sequence_length or 1
        scored = rollout_workload(architecture, workload.replaced(alignment=alignment.evolve(engine="none")), sequences)
        whole = scored.replaced(prompt_length=length, context_length=length, parallel=Parallel(tensor=tensor, data=1))
        time = inference_time(architecture, whole, ((gpu, tensor),), setting)
        yield _phase("scoring", passes, time, f"{passes} × t_prefill", _SCORING)
    if alignment.generates and alignment.engine != "none":
        size = weight_bytes(architecture, rollout_workload(architecture, workload, 1).weights or "bf16") / tensor
        rate = links_of(gpu, setting).network_bytes_per_s if further else (gpu.bandwidth_bytes_per_s or 1.0) / 2
        copied = TimeResult(task="training", kind="step", seconds=size / rate, bound="communication")
        yield _phase("weight_sync", 1, copied, "W ÷ B", _SYNC)


def _concurrent_completions(architecture: Architecture, rollout: Inference, gpu: Gpu) -> int:
    """Return how many completions an engine generates at once in its memory, all if it is not limited."""
    memory = gpu.usable_memory_bytes or gpu.memory_bytes
    if rollout.profile != ROLLOUT_ENGINE or memory is None:
        return rollout.batch
    program = serving_memory(ROLLOUT_ENGINE)
    pool = program.timeline(architecture, rollout, program.card_class(gpu)).pool
    return rollout.batch if pool is None else max(1, min(rollout.batch, int(pool.capacity(memory).sequences)))
