"""Time terms of a request, each with its formula, symbols and source."""

from collections.abc import Iterator
from typing import Final

from planner.memory.result import Symbol
from planner.memory.terms import card_symbol, library_symbol, model_symbol, workload_symbol
from planner.performance.inference.passes import STAGE_WAKE_SECONDS, PassTime
from planner.performance.inference.request import Drafter, ServedModel
from planner.performance.result import Bound, TimeTerm, TimeTermName

_NAMES: Final[tuple[TimeTermName, ...]] = (
    "weights_read",
    "decode_compute",
    "cache_read",
    "elementwise",
    "dequantisation",
    "host",
    "tensor_exchange",
    "pipeline_transfers",
    "offload",
    "drafting",
)
"""Names of the time terms for the fields of `PassTime`, in order; attention over the prompt has none."""
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
_EXPERTS_IN_RAM: Final = "T × (f × W ÷ H + d × E ÷ h + l × w)"
_BOUNDS: Final[tuple[tuple[Bound, tuple[int, ...]], ...]] = (
    ("memory bandwidth", (0, 3, 4, 5, 10)),
    ("compute", (1, 2)),
    ("communication", (7, 8)),
    ("host", (6, 9)),
)


def inference_bound(elapsed: PassTime) -> Bound:
    """Return the resource that takes most of the time in `elapsed`."""
    return max(_BOUNDS, key=lambda bound: sum([elapsed[place] for place in bound[1]]))[0]


def prompt_term(run: ServedModel, elapsed: PassTime, sequences: int, tokens: int) -> TimeTerm:
    """Return one time term for the processing of the prompts."""
    machine = run.machine
    return TimeTerm(
        name="prefill",
        seconds=elapsed.seconds,
        formula="√(r² + p²) + attention + elementwise + unpacking + the rest, p = 2 × N × b × s ÷ (g × C × u)",
        symbols=(
            workload_symbol("b", sequences, "prompts"),
            workload_symbol("g", run.sharing.tensor, "tensor-parallel cards"),
            workload_symbol("s", tokens, "tokens per prompt"),
            model_symbol("N", run.work.parameters, "parameters of the matrix products that one token passes through"),
            card_symbol("C", machine.ops_per_s, f"dense operations a second in {machine.dtype}"),
            library_symbol(
                "u", round(machine.products.fraction, 3), "share of the dense rate that large matrix products reach"
            ),
            library_symbol("r", round(elapsed.weights_read, 6), "seconds of reading weights"),
            library_symbol("attention", round(elapsed.attention, 6), "seconds of the attention kernels"),
            library_symbol("elementwise", round(elapsed.elementwise, 6), "seconds of norms, activations and sums"),
            library_symbol("unpacking", round(elapsed.dequantisation, 6), "seconds of unpacking quantized weights"),
        ),
        source=machine.products.source,
        certainty="measured",
    )


def step_terms(run: ServedModel, elapsed: PassTime, answer: float, sequences: int) -> Iterator[TimeTerm]:
    """Yield the time terms of all decoding steps, which take `elapsed` in total."""
    for name, seconds in zip(_NAMES, (*elapsed[:2], *elapsed[3:]), strict=True):
        if seconds > 0:
            yield TimeTerm(
                name=name,
                seconds=seconds,
                formula=_EXPERTS_IN_RAM
                if name == "offload" and run.sharing.offloaded.expert_layers
                else _FORMULAS[name],
                symbols=_drafting_symbols(run.draft, answer, seconds)
                if name == "drafting" and run.draft
                else _term_symbols(run, name, answer, sequences),
                source=_term_source(run, name),
                certainty="assumed" if name in ("offload", "drafting") else "measured",
            )


def _term_source(run: ServedModel, name: TimeTermName) -> str:
    """Return the source of the time term `name`."""
    machine = run.machine
    sources = {
        "weights_read": machine.read.source,
        "decode_compute": machine.products.source,
        "cache_read": machine.cache.source,
        "host": machine.engine.source,
        "tensor_exchange": run.sharing.links.source,
        "pipeline_transfers": run.sharing.links.source,
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


def _term_symbols(run: ServedModel, name: TimeTermName, answer: float, sequences: int) -> tuple[Symbol, ...]:
    """Return the symbols in the formula of the time term `name`, with their values."""
    work, machine, sharing = run.work, run.machine, run.sharing
    steps, batch = (
        workload_symbol("T", answer, "tokens of the answer"),
        workload_symbol("b", sequences, "concurrent sequences"),
    )
    cards = workload_symbol("g", sharing.tensor, "tensor-parallel cards")
    bandwidth = card_symbol("B", machine.bytes_per_s, "memory bandwidth of a card in bytes per second")
    weights = model_symbol("W", work.read_bytes(sequences), "bytes of weights that one decoding step reads")
    layers = model_symbol("L", work.layers, "layers")
    match name:
        case "weights_read":
            reached = library_symbol("e", machine.read.fraction, "achieved share of the memory bandwidth")
            return steps, weights, cards, bandwidth, reached
        case "decode_compute":
            passed = work.parameters + work.head_parameters
            parameters = model_symbol("N", passed, "parameters of the matrix products that one token passes through")
            rate = card_symbol("C", machine.ops_per_s, f"dense operations a second in {machine.dtype}")
            share = library_symbol(
                "u", round(machine.products.fraction, 3), "share of the dense rate that large matrix products reach"
            )
            return steps, batch, cards, parameters, rate, share
        case "cache_read":
            return (
                steps,
                batch,
                cards,
                bandwidth,
                library_symbol("c", machine.cache.fraction, "achieved share of the memory bandwidth"),
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
            launch = library_symbol("o", machine.layer_seconds, "seconds to launch the kernels of one layer")
            scheduled = library_symbol("q", machine.sequence_seconds, "seconds to schedule one sequence")
            return steps, layers, launch, batch, scheduled
        case "tensor_exchange":
            return steps, layers, cards
        case "pipeline_transfers":
            return steps, workload_symbol("p", sharing.stages, "stages")
    offloaded = sharing.offloaded
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
        model_symbol("E", work.expert_bytes(sequences), "bytes of routed experts that a pass visits"),
        brought,
        library_symbol("h", offloaded.experts_bytes_per_s, "bandwidth of the CPU's pass through experts in RAM"),
        library_symbol("l", offloaded.expert_layers, "layers whose experts the CPU computes"),
        library_symbol("w", STAGE_WAKE_SECONDS, "seconds to hand a layer to the CPU and back"),
    )
