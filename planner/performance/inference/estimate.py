"""Time of a request: to its first token, between tokens, and in total."""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.memory.inference.draft import draft_format
from planner.memory.parallel.tensor import draft_is_divided
from planner.memory.software import serving_memory
from planner.models.architecture import Architecture, image_patches
from planner.performance.certainty import ONE_SOURCE, spread_factor
from planner.performance.efficiency import Family, family_of, is_family_measured
from planner.performance.inference.images import image_time
from planner.performance.inference.kernels import pass_kernels, routed_kernels
from planner.performance.inference.machine import card_speed
from planner.performance.inference.passes import HostWeights, ModelSplit, PassTime
from planner.performance.inference.request import (
    Drafter,
    ServedModel,
    decoding_step_time,
    encoder_pass_time,
    prompt_time,
)
from planner.performance.inference.terms import inference_bound, prompt_term, step_terms
from planner.performance.inference.work import work_of
from planner.performance.links import Links, links_of
from planner.performance.measured import scale_to_measured
from planner.performance.reach import reachable_bandwidth
from planner.performance.result import Basis, TimeResult
from planner.performance.setting import TimeSetting
from planner.performance.software import engine_of
from planner.performance.software.engine import Engine
from planner.workload.layout import resolve_parallel
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.software.ram import ram_bytes_per_s
from planner.workload.workload import Inference

_RAM_SHARE: Final = 70 / 89.6
_EXPERTS_RAM_SHARE: Final = 0.48
"""Shares of the RAM's bandwidth that a CPU reaches where it reads whole matrices, 70 GB/s with two channels of
DDR5-5600, and where it multiplies with a few 4-bit experts of each layer.

**Source**: JustVugg/colibri#537 (July 2026), four channels of DDR5-4400 and 140.8 GB/s on two Xeon Silver 4510: 110.8
GB/s in parallel reads (0.79), 67 to 68 GB/s in 4-bit experts (0.48).
"""
_DEFAULT_SETTING: Final = TimeSetting()
_SEQUENCES: Final = tuple(2**exponent for exponent in range(1, 11))
"""Numbers of sequences for which it is tried whether drafting still saves time."""
_ADAPTERS: Final = "The time of LoRA adapters is not counted: no measurement of it is known here."
_ONE_PASS_KINDS: Final = ("encoder", "vision-encoder")


class TimedRequest(NamedTuple):
    """Times of prompt processing and of one decoding step at the mean context length, and the number of steps."""

    run: ServedModel
    prompt: PassTime
    step: PassTime
    answer: int

    @property
    def total_time(self) -> PassTime:
        """Return the time of the whole request by kind of work."""
        return self.prompt.followed_by(self.step.repeated(self.answer))


def inference_time(
    architecture: Architecture,
    workload: Inference,
    cards: tuple[tuple[Gpu, int], ...],
    setting: TimeSetting = _DEFAULT_SETTING,
    measured_on: Gpu | None = None,
) -> TimeResult:
    """Return the time of `workload`, with its defaults filled in, on `cards`: kinds of cards, each with its count.

    A measured speed in `setting` replaces the estimate, scaled by the ratio of the two estimates if it was measured on
    other cards, of the kind `measured_on`.

    **Formula**: t_prompt + answer · t_step, the step at the mean context.

    **Assumes** that all sequences of the batch start together, and that cards of different kinds are all as fast as
    the slowest.
    """
    if not cards:
        return TimeResult(task="inference", kind="service", unsupported="No card is chosen.")
    slowest = min((gpu for gpu, _ in cards), key=lambda gpu: reachable_bandwidth(gpu) or 0.0)
    found = _estimate_on_card(architecture, workload, slowest, setting)
    if found.seconds is None:
        return found
    if len(cards) > 1:
        found = found.evolve(
            notes=(*found.notes, f"Every card is counted as {slowest.name}, the slowest of the chosen cards.")
        )
    if setting.measured is None:
        return found
    kind, count = measured_on or slowest, sum([number for _, number in cards])
    number = setting.measured.count or count
    there = _estimate_on_measured_cards(architecture, workload, kind, number, setting)
    if there.seconds is None:
        return there
    return scale_to_measured(found, there, setting.measured, is_same=(kind.id, number) == (slowest.id, count))


def _estimate_on_measured_cards(
    architecture: Architecture, workload: Inference, gpu: Gpu, number: int, setting: TimeSetting
) -> TimeResult:
    """Return the time estimate for the cards on which the user measured a speed."""
    try:
        spread_there = workload.evolve(parallel=workload.parallel.evolve(data=None))
        filled = workload.evolve(parallel=resolve_parallel(spread_there, architecture, number))
    except SpecError as error:
        reason = f"The measured speed cannot be transferred: {error.message}"
        return TimeResult(task="inference", kind="service", unsupported=reason)
    return _estimate_on_card(architecture, filled, gpu, setting)


def _estimate_on_card(architecture: Architecture, workload: Inference, gpu: Gpu, setting: TimeSetting) -> TimeResult:
    reasons = serving_memory(workload.profile, architecture).unsupported_reasons(workload, gpu)
    if reasons:
        return TimeResult(task="inference", kind="service", unsupported="; ".join(reasons))
    if architecture.kind == "diffusion":
        return image_time(architecture, workload, gpu, setting)
    run = served_model(architecture, workload, gpu, setting)
    if run is None:
        return TimeResult(task="inference", kind="service", unsupported=_unknown_figure_reason(gpu))
    time_result = _encoder_pass_result if architecture.kind in _ONE_PASS_KINDS else _request_result
    return time_result(_timed_request(run, workload), workload, gpu, engine_of(workload, setting))


def served_model(architecture: Architecture, workload: Inference, gpu: Gpu, setting: TimeSetting) -> ServedModel | None:
    """Return the served model of `workload` on cards `gpu`, or None if the card's bandwidth or rate is unknown."""
    engine, weights = engine_of(workload, setting), workload.weights or "bf16"
    machine = card_speed(gpu, engine, weights, workload.compute, unfused=workload.attention == "eager")
    if machine is None:
        return None
    work = engine.work(architecture, weights)
    links, parallel = links_of(gpu, setting), workload.parallel
    offloaded = _offloaded_weights(architecture, workload, links)
    sharing = ModelSplit(links, parallel.tensor, parallel.pipeline, offloaded)
    kernels = pass_kernels(architecture, machine, gpu, weights, workload.kv_cache)
    chunk = workload.settings_as(LlamaCppSettings).n_ubatch
    experts = routed_kernels(architecture, machine, gpu, weights)
    found = ServedModel(architecture, work, machine, sharing, workload.kv_cache, 0, kernels, experts, chunk)
    return found._replace(draft=_drafter(found, workload, gpu)) if workload.speculation.method else found


def _drafter(run: ServedModel, workload: Inference, gpu: Gpu) -> Drafter:
    """Return what drafts for `run`: a network on the same cards, whose host work is that of its launches alone.

    Prediction layers and EAGLE heads also read the model's output head, in 16 bits.
    """
    own, network = workload.speculation, run.architecture.draft
    if network is None:
        return Drafter(own.drafted, own.expected_tokens, None)
    weights = draft_format(run.architecture, workload)
    machine = card_speed(gpu, run.machine.engine, weights, workload.compute, unfused=run.machine.unfused)
    assert machine is not None  # the bandwidth of the card is known
    work, kernels = run.machine.engine.work(network, weights), None
    if own.method == "model":
        kernels = pass_kernels(network, machine, gpu, weights, workload.kv_cache)
    elif not network.head:
        head = run.work.head_parameters
        work = work._replace(head_parameters=head, fixed_bytes=work.fixed_bytes + 2 * head)
    tensor = run.sharing.tensor if draft_is_divided(network, run.sharing.tensor) else 1
    sharing = ModelSplit(run.sharing.links, tensor)
    machine = machine._replace(sequence_seconds=0.0)
    model = ServedModel(network, work, machine, sharing, workload.kv_cache, kernels=kernels, chunk=run.chunk)
    return Drafter(own.drafted, own.expected_tokens, model)


def _offloaded_weights(architecture: Architecture, workload: Inference, links: Links) -> HostWeights:
    """Return the share of the weights in host memory, with the bandwidths of host link and host memory."""
    if workload.parallel.offload == "parameters":
        return HostWeights(1.0, links.host_bytes_per_s)
    layers = architecture.depth
    on_card = layers + 1 if workload.gpu_layers is None else min(workload.gpu_layers, layers + 1)
    first = layers + 1 - max(on_card, 1)
    settings = workload.settings_as(LlamaCppSettings)
    in_ram = sum(layer >= first and settings.has_experts_in_ram(layer) for layer in architecture.expert_layers)
    if on_card == layers + 1 and not in_ram:
        return HostWeights()
    return HostWeights(
        share=1.0 - on_card / (layers + 1),
        link_bytes_per_s=links.host_bytes_per_s,
        host_bytes_per_s=ram_bytes_per_s(settings.ram) * _RAM_SHARE,
        expert_share=in_ram / max(len(architecture.expert_layers), 1),
        expert_layers=in_ram,
        experts_bytes_per_s=ram_bytes_per_s(settings.ram) * _EXPERTS_RAM_SHARE,
    )


def _unknown_figure_reason(gpu: Gpu) -> str:
    missing = "memory bandwidth" if gpu.bandwidth_bytes_per_s is None else "arithmetic rate"
    return f"the {missing} of {gpu.name} is unknown"


def _timed_request(run: ServedModel, workload: Inference) -> TimedRequest:
    """Return the times of prompt and decoding step of a request."""
    architecture, batch = run.architecture, workload.batch
    prompt, context = workload.prompt_length or 1, workload.context_length or 1
    if architecture.kind in _ONE_PASS_KINDS:
        return TimedRequest(run, encoder_pass_time(run, run.work, batch, prompt), PassTime(), 0)
    if architecture.kind == "encoder-decoder":
        behind = run._replace(encoder_tokens=prompt)
        encoder = work_of(architecture, workload.weights or "bf16", 0)
        reading = encoder_pass_time(run, encoder, batch, prompt).followed_by(prompt_time(behind, batch, 1))
        return TimedRequest(behind, reading, decoding_step_time(behind, batch, context / 2), context)
    answer = max(context - prompt, 0)
    reading = prompt_time(run, batch, prompt).followed_by(_image_reading_time(run, workload))
    return TimedRequest(run, reading, decoding_step_time(run, batch, prompt + answer / 2), answer)


def _image_reading_time(run: ServedModel, workload: Inference) -> PassTime:
    """Return the time in which the vision tower processes the images in the prompts."""
    if not workload.images:
        return PassTime()
    tower = run.architecture.stacks[0]
    work = work_of(run.architecture, workload.weights or "bf16", 0)
    return encoder_pass_time(run, work, workload.batch * workload.images, image_patches(tower, workload.image_size))


def _request_result(timed: TimedRequest, workload: Inference, gpu: Gpu, engine: Engine) -> TimeResult:
    """Return the time result of a request from its prompt and decoding times."""
    family = family_of(gpu)
    steps, reads = request_spread_factor("decode", engine, family), request_spread_factor("prefill", engine, family)
    first, step, batch = timed.prompt.seconds, timed.step.seconds, workload.batch
    seconds, replicas = first + timed.answer * step, workload.parallel.data or 1
    rate = replicas * batch / step
    prompts = prompt_term(timed.run, timed.prompt, batch, workload.prompt_length or 1)
    whole = timed.total_time
    return TimeResult(
        task="inference",
        kind="service",
        seconds=seconds,
        low_seconds=first / reads + timed.answer * step / steps,
        high_seconds=first * reads + timed.answer * step * steps,
        tokens_per_second=rate,
        low_tokens_per_second=rate / steps,
        high_tokens_per_second=rate * steps,
        samples_per_second=replicas * batch / seconds,
        requests_at_once=batch,
        prompt_tokens=workload.prompt_length,
        first_token_seconds=first,
        low_first_token_seconds=first / reads,
        high_first_token_seconds=first * reads,
        output_token_seconds=step,
        low_output_token_seconds=step / steps,
        high_output_token_seconds=step * steps,
        bound=inference_bound(whole if timed.answer else timed.prompt),
        first_token_bound=inference_bound(timed.prompt),
        token_bound=inference_bound(timed.step),
        basis=_basis(gpu, is_measured=is_decoding_measured(engine, family)),
        terms=(prompts, *step_terms(timed.run, timed.step.repeated(timed.answer), timed.answer, batch)),
        **_request_rates(timed, workload, seconds),
        notes=(
            *_request_notes(timed, gpu, engine, batch, (workload.prompt_length or 1) + timed.answer / 2),
            *((_ADAPTERS,) if workload.adapters.slots else ()),
        ),
    )


def _basis(gpu: Gpu, *, is_measured: bool) -> Basis:
    """Return what the estimate is based on; slices of cards (MIG) were not measured themselves."""
    if gpu.mig_slice is not None:
        return "family"
    return "same card" if is_measured else _basis_of_family(gpu)


def _basis_of_family(gpu: Gpu) -> Basis:
    """Return the basis of an estimate on a card on whose family this engine was not measured."""
    return "family" if is_family_measured(gpu) else "unmeasured"


def _encoder_pass_result(timed: TimedRequest, workload: Inference, gpu: Gpu, engine: Engine) -> TimeResult:
    """Return the time result of an encoder, which generates no tokens."""
    factor, seconds = request_spread_factor("prefill", engine, family_of(gpu)), timed.prompt.seconds
    tokens, replicas = workload.prompt_length or 1, workload.parallel.data or 1
    rate = replicas * workload.batch * tokens / seconds
    return TimeResult(
        task="inference",
        kind="service",
        seconds=seconds,
        low_seconds=seconds / factor,
        high_seconds=seconds * factor,
        tokens_per_second=rate,
        low_tokens_per_second=rate / factor,
        high_tokens_per_second=rate * factor,
        samples_per_second=replicas * workload.batch / seconds,
        bound=inference_bound(timed.prompt),
        basis=_basis_of_family(gpu),
        terms=(prompt_term(timed.run, timed.prompt, workload.batch, tokens),),
        **_request_rates(timed, workload, seconds),
    )


def _request_rates(timed: TimedRequest, workload: Inference, seconds: float) -> dict[str, float]:
    """Return the floating-point operations of a batch of requests on all cards, and the model FLOPs utilization."""
    work, machine, sharing = timed.run.work, timed.run.machine, timed.run.sharing
    prompt = workload.prompt_length or 1
    each = 2 * (work.parameters * (prompt + timed.answer) + work.head_parameters * (timed.answer + 1))
    flops = (workload.parallel.data or 1) * workload.batch * (each + work.attention_flops(prompt))
    cards = sharing.tensor * sharing.stages * (workload.parallel.data or 1)
    return {"flops_per_step": flops, "mfu_fraction": flops / (seconds * machine.ops_per_s * cards)}


def _request_notes(timed: TimedRequest, gpu: Gpu, engine: Engine, batch: int, context: float) -> tuple[str, ...]:
    """Return notes on the assumptions of a request's time."""
    notes = list(_draft_notes(timed, batch, context)) if timed.run.draft else []
    if not timed.answer:
        notes.append(
            "The context length equals the prompt length: the time per output token is shown, but no answer is counted."
        )
    if timed.run.sharing.stages > 1 and not timed.run.machine.engine.overlaps_stages:
        notes.append("Pipeline stages run one after the other: one sequence is no faster than on one card.")
    if not is_decoding_measured(engine, family_of(gpu)):
        notes.append("No speed of this engine was measured on this card family, so the interval is wider.")
    elif engine.sources == 1:
        notes.append(ONE_SOURCE)
    return tuple(notes)


def _draft_notes(timed: TimedRequest, batch: int, context: float) -> Iterator[str]:
    """Yield what drafting does to the time of a token, for these sequences and from how many on it costs time."""
    run, draft = timed.run, timed.run.draft
    assert draft is not None

    def gain(sequences: int) -> float:
        plain = decoding_step_time(run._replace(draft=None), sequences, context).seconds
        return plain / decoding_step_time(run, sequences, context).seconds

    found = gain(batch)
    text = f"{found:.2f} times as fast as" if found >= 1 else f"{1 / found:.2f} times slower than"
    yield (
        f"Each step checks {draft.tokens:,} drafted token{'s' * (draft.tokens > 1)} and yields "
        f"{draft.expected_tokens:.2f} on average: a token is {text} without a draft."
    )
    slower = (
        next((number for number in _SEQUENCES if number > batch and gain(number) < 1), None) if found >= 1 else None
    )
    if slower:
        yield f"From about {slower:,} sequences at once on, drafting costs more time than it saves."


Figure = Literal["decode", "prefill", "requests"]


def request_spread_factor(figure: Figure, engine: Engine, family: Family) -> float:
    """Return the factor by which a time may differ on cards of `family`; one case in ten lies beyond each end."""
    measured = engine.measured_decoding if figure == "decode" else engine.measured_prompts
    return spread_factor(figure, engine.sources if family in measured else 0)


def is_decoding_measured(engine: Engine, family: Family) -> bool:
    """Return whether decoding with this engine was measured on this card family."""
    return family in engine.measured_decoding
