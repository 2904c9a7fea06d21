"""Time of a request: to its first token, between tokens, and in total, in terms with formulas and sources."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from planner.hardware.gpu import Gpu
from planner.memory.inference.engine import draft_format
from planner.memory.parallel.tensor import draft_is_divided
from planner.memory.result import Symbol
from planner.memory.software import serving_memory
from planner.memory.terms import card_symbol, library_symbol, model_symbol, workload_symbol
from planner.models.architecture import Architecture, image_patches
from planner.performance.attainable import usable_bandwidth
from planner.performance.certainty import ONE_SOURCE, scale_to_measured, spread_factor, workload_where_measured
from planner.performance.efficiency import Family, family_of, is_family_measured
from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.images import image_time
from planner.performance.inference.kernels import pass_kernels, routed_kernels
from planner.performance.inference.passes import STAGE_WAKE_SECONDS, ModelSplit, OffloadedWeights, PassTime
from planner.performance.inference.request import (
    Drafter,
    ServedModel,
    decoding_step_time,
    encoder_pass_time,
    prompt_time,
)
from planner.performance.inference.work import work_of
from planner.performance.links import Links, links_of
from planner.performance.result import Basis, Bound, TimeResult, TimeTerm, TimeTermName
from planner.performance.setting import TimeSetting
from planner.performance.software import engine_of
from planner.performance.software.engine import Engine
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

    served: ServedModel
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
    """Return the time of `workload`, with its defaults filled in, on `cards`: kinds of GPUs, each with its count.

    A measured speed in `setting` replaces the estimate, scaled by the ratio of the two estimates if it was measured on
    other GPUs, of the kind `measured_on`.

    **Formula**: t_prompt + answer · t_step, the step at the mean context.

    **Assumes** that all sequences of the batch start together, and that GPUs of different kinds are all as fast as
    the slowest.
    """
    if not cards:
        return TimeResult(task="inference", kind="service", unsupported="No GPU is chosen.")
    slowest = min((gpu for gpu, _ in cards), key=lambda gpu: usable_bandwidth(gpu) or 0.0)
    found = _estimate_on_card(architecture, workload, slowest, setting)
    if found.seconds is None:
        return found
    if len(cards) > 1:
        found = found.evolve(
            notes=(*found.notes, f"Every GPU is counted as {slowest.name}, the slowest of the chosen GPUs.")
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
    """Return the time estimate for the GPUs on which the user measured a speed."""
    filled = workload_where_measured(workload, architecture, number)
    if isinstance(filled, str):
        return TimeResult(task="inference", kind="service", unsupported=filled)
    return _estimate_on_card(architecture, filled, gpu, setting)


def _estimate_on_card(architecture: Architecture, workload: Inference, gpu: Gpu, setting: TimeSetting) -> TimeResult:
    reasons = serving_memory(workload.profile, architecture).unsupported_reasons(workload, gpu)
    if reasons:
        return TimeResult(task="inference", kind="service", unsupported="; ".join(reasons))
    if architecture.kind == "diffusion":
        return image_time(architecture, workload, gpu, setting)
    served = served_model(architecture, workload, gpu, setting)
    if served is None:
        return TimeResult(task="inference", kind="service", unsupported=_unknown_figure_reason(gpu))
    time_result = _encoder_pass_result if architecture.kind in _ONE_PASS_KINDS else _request_result
    return time_result(_timed_request(served, workload), workload, gpu, engine_of(workload, setting))


def served_model(architecture: Architecture, workload: Inference, gpu: Gpu, setting: TimeSetting) -> ServedModel | None:
    """Return the served model of `workload` on GPUs `gpu`, or None if the GPU's bandwidth or rate is unknown."""
    engine, weights = engine_of(workload, setting), workload.weights or "bf16"
    speed = gpu_speed(gpu, engine, weights, workload.compute, unfused=workload.attention == "eager")
    if speed is None:
        return None
    work = engine.work(architecture, weights)
    links, parallel = links_of(gpu, setting), workload.parallel
    offloaded = _offloaded_weights(architecture, workload, links)
    split = ModelSplit(links, parallel.tensor, parallel.pipeline, offloaded)
    kernels = pass_kernels(architecture, speed, gpu, weights, workload.kv_cache)
    chunk = getattr(workload.engine, engine.chunk_setting, None)
    experts = routed_kernels(architecture, speed, gpu, weights)
    found = ServedModel(architecture, work, speed, split, workload.kv_cache, 0, kernels, experts, chunk)
    return found._replace(draft=_drafter(found, workload, gpu)) if workload.speculation.method else found


def _drafter(served: ServedModel, workload: Inference, gpu: Gpu) -> Drafter:
    """Return the drafter of `served`: a network on the same GPUs, whose host work is only its launches.

    Prediction layers and EAGLE heads also read the model's output head, in 16 bits.
    """
    own, network = workload.speculation, served.architecture.draft
    if network is None:
        return Drafter(own.drafted, own.expected_tokens, None)
    weights = draft_format(served.architecture, workload)
    speed = gpu_speed(gpu, served.speed.engine, weights, workload.compute, unfused=served.speed.unfused)
    assert speed is not None  # the bandwidth of the GPU is known
    work, kernels = served.speed.engine.work(network, weights), None
    if own.method == "model":
        kernels = pass_kernels(network, speed, gpu, weights, workload.kv_cache)
    elif not network.head:
        head = served.work.head_parameters
        work = work._replace(head_parameters=head, fixed_bytes=work.fixed_bytes + 2 * head)
    tensor = served.split.tensor if draft_is_divided(network, served.split.tensor) else 1
    split = ModelSplit(served.split.links, tensor)
    speed = speed._replace(sequence_seconds=0.0)
    model = ServedModel(
        network, work, speed, split, workload.kv_cache, kernels=kernels, chunk_tokens=served.chunk_tokens
    )
    return Drafter(own.drafted, own.expected_tokens, model)


def _offloaded_weights(architecture: Architecture, workload: Inference, links: Links) -> OffloadedWeights:
    """Return the share of the weights in host memory, with the bandwidths of host link and host memory."""
    if workload.parallel.offload == "parameters":
        return OffloadedWeights(1.0, links.host_bytes_per_s)
    layers = architecture.depth
    on_card = layers + 1 if workload.gpu_layers is None else min(workload.gpu_layers, layers + 1)
    first = layers + 1 - max(on_card, 1)
    settings = workload.settings_as(LlamaCppSettings)
    in_ram = sum(layer >= first and settings.has_experts_in_ram(layer) for layer in architecture.expert_layers)
    if on_card == layers + 1 and not in_ram:
        return OffloadedWeights()
    return OffloadedWeights(
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


def _timed_request(served: ServedModel, workload: Inference) -> TimedRequest:
    """Return the times of prompt and decoding step of a request."""
    architecture, batch = served.architecture, workload.batch
    prompt, context = workload.prompt_length or 1, workload.context_length or 1
    if architecture.kind in _ONE_PASS_KINDS:
        return TimedRequest(served, encoder_pass_time(served, served.work, batch, prompt), PassTime(), 0)
    if architecture.kind == "encoder-decoder":
        behind = served._replace(encoder_tokens=prompt)
        encoder = work_of(architecture, workload.weights or "bf16", 0)
        reading = encoder_pass_time(served, encoder, batch, prompt).followed_by(prompt_time(behind, batch, 1))
        return TimedRequest(behind, reading, decoding_step_time(behind, batch, context / 2), context)
    answer = max(context - prompt, 0)
    reading = prompt_time(served, batch, prompt).followed_by(_image_reading_time(served, workload))
    return TimedRequest(served, reading, decoding_step_time(served, batch, prompt + answer / 2), answer)


def _image_reading_time(served: ServedModel, workload: Inference) -> PassTime:
    """Return the time in which the vision tower processes the images in the prompts."""
    if not workload.images:
        return PassTime()
    tower = served.architecture.stacks[0]
    work = work_of(served.architecture, workload.weights or "bf16", 0)
    return encoder_pass_time(served, work, workload.batch * workload.images, image_patches(tower, workload.image_size))


def _request_result(timed: TimedRequest, workload: Inference, gpu: Gpu, engine: Engine) -> TimeResult:
    family = family_of(gpu)
    steps, reads = request_spread_factor("decode", engine, family), request_spread_factor("prefill", engine, family)
    first, step, batch = timed.prompt.seconds, timed.step.seconds, workload.batch
    seconds, replicas = first + timed.answer * step, workload.parallel.data or 1
    rate = replicas * batch / step
    prompts = prompt_term(timed.served, timed.prompt, batch, workload.prompt_length or 1)
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
        terms=(prompts, *step_terms(timed.served, timed.step.repeated(timed.answer), timed.answer, batch)),
        **_request_rates(timed, workload, seconds),
        notes=(
            *_request_notes(timed, gpu, engine, batch, (workload.prompt_length or 1) + timed.answer / 2),
            *((_ADAPTERS,) if workload.adapters.slots else ()),
        ),
    )


def _basis(gpu: Gpu, *, is_measured: bool) -> Basis:
    """Return what the estimate is based on; slices of GPUs (MIG) were not measured themselves."""
    if gpu.mig_slice is not None:
        return "family"
    return "same card" if is_measured else _basis_of_family(gpu)


def _basis_of_family(gpu: Gpu) -> Basis:
    """Return the basis of an estimate on a GPU on whose family this engine was not measured."""
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
        terms=(prompt_term(timed.served, timed.prompt, workload.batch, tokens),),
        **_request_rates(timed, workload, seconds),
    )


def _request_rates(timed: TimedRequest, workload: Inference, seconds: float) -> dict[str, float]:
    """Return the floating-point operations of a batch of requests on all GPUs, and the model FLOPs utilization."""
    work, speed, split = timed.served.work, timed.served.speed, timed.served.split
    prompt = workload.prompt_length or 1
    each = 2 * (work.parameters * (prompt + timed.answer) + work.head_parameters * (timed.answer + 1))
    flops = (workload.parallel.data or 1) * workload.batch * (each + work.attention_flops(prompt))
    cards = split.tensor * split.stages * (workload.parallel.data or 1)
    return {"flops_per_step": flops, "mfu_fraction": flops / (seconds * speed.ops_per_s * cards)}


def _request_notes(timed: TimedRequest, gpu: Gpu, engine: Engine, batch: int, context: float) -> tuple[str, ...]:
    """Return notes on the assumptions of a request's time."""
    notes = list(_draft_notes(timed, batch, context)) if timed.served.draft else []
    if not timed.answer:
        notes.append(
            "The context length equals the prompt length: the time per output token is shown, but no answer is counted."
        )
    if timed.served.split.stages > 1 and not timed.served.speed.engine.overlaps_stages:
        notes.append("Pipeline stages run one after the other: one sequence is no faster than on one GPU.")
    if not is_decoding_measured(engine, family_of(gpu)):
        notes.append("No speed of this engine was measured on this GPU family, so the interval is wider.")
    elif engine.sources == 1:
        notes.append(ONE_SOURCE)
    return tuple(notes)


def _draft_notes(timed: TimedRequest, batch: int, context: float) -> Iterator[str]:
    """Yield notes on the effect of drafting on the time per token, and on the batch size from which it costs time."""
    served, draft = timed.served, timed.served.draft
    assert draft is not None

    def gain(sequences: int) -> float:
        plain = decoding_step_time(served._replace(draft=None), sequences, context).seconds
        return plain / decoding_step_time(served, sequences, context).seconds

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


TimedFigure = Literal["decode", "prefill", "requests"]


def request_spread_factor(figure: TimedFigure, engine: Engine, family: Family) -> float:
    """Return the factor by which a time may differ on GPUs of `family`; one case in ten lies beyond each end."""
    measured = engine.measured_decoding if figure == "decode" else engine.measured_prompts
    return spread_factor(figure, engine.sources if family in measured else 0)


def is_decoding_measured(engine: Engine, family: Family) -> bool:
    """Return whether decoding with this engine was measured on this GPU family."""
    return family in engine.measured_decoding


_FORMULAS: Final[dict[TimeTermName, str]] = {
    "weights_read": "T × W ÷ (g × B × e)",
    "decode_compute": "T × (√(r² + p²) − r), p = 2 × N × b ÷ (g × C × u); experts T × p",
    "cache_read": "T × b × K ÷ (g × B × c)",
    "elementwise": "T × b × S ÷ (g × B)",
    "dequantisation": "T × D ÷ (g × B)",
    "host": "T × (L × o + b × q)",
    "tensor_exchange": "T × 2 × L × t",
    "pipeline_transfers": "T × (p − 1) × t",
    "offload": "T × f × W ÷ H",
    "drafting": "T ÷ E × k × t",
}
"""Formulas of the time terms for the fields of `PassTime`, in their order; attention over the prompt has no term."""
_EXPERTS_IN_RAM: Final = "T × (f × W ÷ H + d × E ÷ h + l × w)"
_BOUNDS: Final[Mapping[Bound, tuple[str, ...]]] = {
    "memory bandwidth": ("weights_read", "cache_read", "elementwise", "dequantisation", "drafting"),
    "compute": ("compute", "attention"),
    "communication": ("tensor_exchange", "pipeline_transfers"),
    "host": ("host", "offload"),
}
"""Fields of `PassTime` by the resource that they wait for."""


def inference_bound(elapsed: PassTime) -> Bound:
    """Return the resource that takes most of the time in `elapsed`."""
    return max(_BOUNDS, key=lambda bound: sum([getattr(elapsed, name) for name in _BOUNDS[bound]]))


def prompt_term(served: ServedModel, elapsed: PassTime, sequences: int, tokens: int) -> TimeTerm:
    """Return one time term for the processing of the prompts."""
    speed = served.speed
    return TimeTerm(
        name="prefill",
        seconds=elapsed.seconds,
        formula="√(r² + p²) + attention + elementwise + unpacking + the rest, p = 2 × N × b × s ÷ (g × C × u)",
        symbols=(
            workload_symbol("b", sequences, "prompts"),
            workload_symbol("g", served.split.tensor, "tensor-parallel GPUs"),
            workload_symbol("s", tokens, "tokens per prompt"),
            model_symbol(
                "N", served.work.parameters, "parameters of the matrix products that one token passes through"
            ),
            card_symbol("C", speed.ops_per_s, f"dense operations a second in {speed.dtype}"),
            library_symbol(
                "u", round(speed.products.fraction, 3), "share of the dense rate that large matrix products reach"
            ),
            library_symbol("r", round(elapsed.weights_read, 6), "seconds of reading weights"),
            library_symbol("attention", round(elapsed.attention, 6), "seconds of the attention kernels"),
            library_symbol("elementwise", round(elapsed.elementwise, 6), "seconds of norms, activations and sums"),
            library_symbol("unpacking", round(elapsed.dequantisation, 6), "seconds of unpacking quantized weights"),
        ),
        source=speed.products.source,
        certainty="measured",
    )


def step_terms(served: ServedModel, elapsed: PassTime, answer: float, sequences: int) -> Iterator[TimeTerm]:
    """Yield the time terms of all decoding steps, which take `elapsed` in total."""
    for name, seconds in zip(_FORMULAS, (*elapsed[:2], *elapsed[3:]), strict=True):
        if seconds > 0:
            yield TimeTerm(
                name=name,
                seconds=seconds,
                formula=_EXPERTS_IN_RAM
                if name == "offload" and served.split.offloaded.expert_layers
                else _FORMULAS[name],
                symbols=_drafting_symbols(served.draft, answer, seconds)
                if name == "drafting" and served.draft
                else _term_symbols(served, name, answer, sequences),
                source=_term_source(served, name),
                certainty="assumed" if name in ("offload", "drafting") else "measured",
            )


def _term_source(served: ServedModel, name: TimeTermName) -> str:
    speed = served.speed
    sources = {
        "weights_read": speed.read.source,
        "decode_compute": speed.products.source,
        "cache_read": speed.cache.source,
        "host": speed.engine.source,
        "tensor_exchange": served.split.links.source,
        "pipeline_transfers": served.split.links.source,
    }
    return sources.get(name, "operation and byte counts of the network")


def _drafting_symbols(draft: Drafter, answer: float, seconds: float) -> tuple[Symbol, ...]:
    """Return the symbols in the formula of the time of drafts, with their values."""
    each = seconds * draft.expected_tokens / (answer * draft.tokens)
    return (
        workload_symbol("T", answer, "tokens of the answer"),
        workload_symbol("E", round(draft.expected_tokens, 4), "tokens that a check yields on average"),
        workload_symbol("k", draft.tokens, "tokens drafted before each check"),
        library_symbol("t", round(each, 9), "seconds of a pass of the draft"),
    )


def _term_symbols(served: ServedModel, name: TimeTermName, answer: float, sequences: int) -> tuple[Symbol, ...]:
    work, speed, split = served.work, served.speed, served.split
    steps, batch = (
        workload_symbol("T", answer, "tokens of the answer"),
        workload_symbol("b", sequences, "concurrent sequences"),
    )
    cards = workload_symbol("g", split.tensor, "tensor-parallel GPUs")
    bandwidth = card_symbol("B", speed.bytes_per_s, "memory bandwidth of a GPU in bytes per second")
    weights = model_symbol("W", work.read_bytes(sequences), "bytes of weights that one decoding step reads")
    layers = model_symbol("L", work.layers, "layers")
    match name:
        case "weights_read":
            reached = library_symbol("e", speed.read.fraction, "achieved share of the memory bandwidth")
            return steps, weights, cards, bandwidth, reached
        case "decode_compute":
            passed = work.parameters + work.head_parameters
            parameters = model_symbol("N", passed, "parameters of the matrix products that one token passes through")
            rate = card_symbol("C", speed.ops_per_s, f"dense operations a second in {speed.dtype}")
            share = library_symbol(
                "u", round(speed.products.fraction, 3), "share of the dense rate that large matrix products reach"
            )
            return steps, batch, cards, parameters, rate, share
        case "cache_read":
            return (
                steps,
                batch,
                cards,
                bandwidth,
                library_symbol("c", speed.cache.fraction, "achieved share of the memory bandwidth"),
            )
        case "elementwise":
            return (
                steps,
                batch,
                model_symbol(
                    "S", work.pointwise_bytes, "bytes that operations other than matrix products move per token"
                ),
                cards,
                bandwidth,
            )
        case "dequantisation":
            return (
                steps,
                model_symbol("D", work.dequantised_bytes, "bytes of weights unpacked to 16 bits"),
                cards,
                bandwidth,
            )
        case "host":
            launch = library_symbol("o", speed.layer_seconds, "seconds to launch the kernels of one layer")
            scheduled = library_symbol("q", speed.sequence_seconds, "seconds to schedule one sequence")
            return steps, layers, launch, batch, scheduled
        case "tensor_exchange":
            return steps, layers, cards
        case "pipeline_transfers":
            return steps, workload_symbol("p", split.stages, "stages")
    return _offload_symbols(served, steps, weights, sequences)


def _offload_symbols(served: ServedModel, steps: Symbol, weights: Symbol, sequences: int) -> tuple[Symbol, ...]:
    """Return the symbols in the formula of the time of weights in host memory, with their values."""
    offloaded = served.split.offloaded
    share = library_symbol("f", round(offloaded.share, 4), "share of the weights in host memory")
    brought = library_symbol(
        "H", offloaded.host_bytes_per_s or offloaded.link_bytes_per_s, "bandwidth from host memory in bytes per second"
    )
    if not offloaded.expert_layers:
        return steps, weights, share, brought
    return (
        steps,
        weights,
        share,
        library_symbol(
            "d", round(offloaded.expert_share, 4), "share of the routed experts in RAM, whose layers are not"
        ),
        model_symbol("E", served.work.expert_bytes(sequences), "bytes of routed experts that a pass visits"),
        brought,
        library_symbol("h", offloaded.experts_bytes_per_s, "bandwidth of the CPU's pass through experts in RAM"),
        library_symbol("l", offloaded.expert_layers, "layers whose experts the CPU computes"),
        library_symbol("w", STAGE_WAKE_SECONDS, "seconds to hand a layer to the CPU and back"),
    )
