"""Time estimates as sentences and as rows of their parts."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.performance.result import Basis, Bound, TimeResult, TimeTerm, TimeTermName
from planner.present import format as fmt
from planner.present.format import substitute_symbols, symbol_value
from planner.present.memory.view import SymbolRow
from planner.present.names import CERTAINTY_TITLES
from planner.workload.workload import Inference, Workload

TIME_TITLES: Final[dict[TimeTermName, str]] = {
    "generation": "Generation of completions",
    "scoring": "Scores of completions",
    "value_model": "Training of the value model",
    "weight_sync": "Weight sync",
    "matrix_products": "Matrix products",
    "attention": "Attention",
    "elementwise": "Elementwise operations",
    "loss_head": "Logits and loss",
    "images": "Images in the frozen vision tower",
    "convolutions": "Convolutions",
    "prefill": "Prefill",
    "weights_read": "Weight reads",
    "cache_read": "KV cache reads",
    "decode_compute": "Decode computation",
    "drafting": "Drafting",
    "recomputation": "Recomputation",
    "dequantisation": "Dequantization",
    "host": "Host and kernel launches",
    "bubble": "Pipeline bubble",
    "gradient_exchange": "Gradient communication",
    "parameter_gathering": "Parameter all-gather",
    "tensor_exchange": "Tensor-parallel communication",
    "context_exchange": "Context-parallel communication",
    "expert_exchange": "Expert-parallel communication",
    "pipeline_transfers": "Pipeline transfers",
    "optimizer": "Optimizer",
    "offload": "Offloading",
    "input": "Data loading",
}
BOUND_TITLES: Final[dict[Bound, str]] = {
    "compute": "compute",
    "memory bandwidth": "memory bandwidth",
    "communication": "communication between the GPUs",
    "host": "kernel launches by the host",
    "input": "data loading",
}
BASIS_TITLES: Final[dict[Basis, str]] = {
    "measured": "your measurement",
    "same card": "measurements on this GPU",
    "family": "measurements on GPUs of the same family",
    "unmeasured": "measurements on GPUs of other families; there are none for this GPU's family",
}


class TimeRow(NamedTuple):
    """A term of the time with its formula; `share` is its fraction of the total time."""

    name: str
    title: str
    text: str
    seconds: float
    share: float
    share_text: str
    overlapped: str
    how: str
    substituted: str
    certainty: str
    symbols: tuple[SymbolRow, ...]
    source: str


class TimeEstimateView(NamedTuple):
    """A time estimate ready for display; without a time, `reason` says why."""

    answer: str
    reason: str
    rows: tuple[TimeRow, ...]
    notes: tuple[str, ...]


def time_view(time: TimeResult) -> TimeEstimateView:
    """Return the display of `time`."""
    if time.seconds is None:
        return TimeEstimateView("", unknown_time_sentence(time), (), time.notes)
    rows = tuple(_row(term, time.seconds) for term in _in_order(time))
    return TimeEstimateView(time_answer(time), " ".join(_reasons(time)), rows, time.notes)


def unknown_time_sentence(time: TimeResult) -> str:
    """Return a sentence on why there is no time; empty if there is one."""
    reason = time.unsupported
    return fmt.sentence(f"The time is unknown: {reason}") if reason else ""


def time_answer(time: TimeResult) -> str:
    """Return one sentence with the time of a step or a request, and the pace."""
    assert time.seconds is not None  # callers check that there is a time
    whole = fmt.duration_with_range(time.seconds, time.low_seconds, time.high_seconds)
    if time.kind == "step":
        return f"One step takes {whole}{_pace(time, ': ')}."
    return f"{fmt.listing(tuple(_request(time, whole)))}{_pace(time, '; ')}."


def _request(time: TimeResult, whole: str) -> Iterator[str]:
    """Yield the time of a request, of its first token and of each further one; without an answer, of its prompt."""
    reads_only = time.first_token_seconds == time.seconds
    yield f"Prefill of {_prompts(time)} takes {whole}" if reads_only else f"A request takes {whole}"
    if time.first_token_seconds is not None and not reads_only:
        first = (time.first_token_seconds, time.low_first_token_seconds, time.high_first_token_seconds)
        yield f"the first token arrives after {fmt.duration_with_range(*first)}"
    if time.output_token_seconds is not None:
        further = (time.output_token_seconds, time.low_output_token_seconds, time.high_output_token_seconds)
        yield f"{'a token after it' if reads_only else 'each further token takes'} {fmt.duration_with_range(*further)}"


def _prompts(time: TimeResult) -> str:
    """Return what is read before the first token: `a prompt of 4,096 tokens`, `8 prompts of 4,096 tokens at once`."""
    count = time.requests_at_once or 1
    prompts, at_once = ("a prompt", "") if count == 1 else (f"{fmt.integer(count)} prompts", " at once")
    tokens = "" if time.prompt_tokens is None else f" of {fmt.plural(time.prompt_tokens, 'token')}"
    return f"{prompts}{tokens}{at_once}"


def pace_phrase(time: TimeResult | None) -> str:
    """Return the pace, for the plan bar: `6,610 tokens/s`, `212 samples/s`, `7.97 s per image`; empty if not known."""
    if time is None or time.seconds is None:
        return ""
    if time.tokens_per_second is not None:
        return f"{fmt.rounded(time.tokens_per_second)} tokens/s"
    if time.samples_per_second is not None:
        if time.samples == "images" and time.samples_per_second < 1:
            return f"{fmt.duration(1 / time.samples_per_second)} per image"
        return f"{fmt.rounded(time.samples_per_second)} {time.samples}/s"
    return f"{fmt.duration(time.seconds)} per {_unit(time)}"


def pace_explanation(time: TimeResult | None, workload: Workload) -> str:
    """Return what the pace counts: the time to the first token, tokens of one request at which context, and the source.

    Empty if there is no time.
    """
    if time is None or time.seconds is None:
        return ""
    source = _basis_sentence(time)
    if not isinstance(workload, Inference) or time.output_token_seconds is None:
        return f"{time_answer(time)} {source}"
    pace, read = fmt.rounded(1 / time.output_token_seconds), workload.prompt_length or 1
    context = max(workload.context_length or read, read)
    grows = f", averaged from {fmt.integer(read)} to" if context > read else " at"
    rate = f"{pace} tokens/s per request{grows} {fmt.integer(context)} tokens of context"
    if time.first_token_seconds is not None:
        prompts = f"{fmt.integer(workload.batch)} prompts of " if workload.batch > 1 else ""
        first = f"{fmt.duration(time.first_token_seconds)} (prefill of {prompts}{fmt.plural(read, 'token')})"
        rate = f"Time to first token {first}, then {rate}"
    texts = [f"{rate}."]
    if (together := _requests_together(workload)) and time.tokens_per_second is not None:
        texts.append(f"{together}: {fmt.rounded(time.tokens_per_second)} tokens/s in total.")
    return " ".join((*texts, source))


def _requests_together(workload: Inference) -> str:
    """Return what runs at once: `8 concurrent requests on each card`, `2 replicas of 4 cards`; empty for one request.

    `workload` has its defaults filled in.
    """
    replicas, cards = workload.parallel.data or 1, workload.parallel.model_shards
    if workload.batch == 1:
        each = "one per GPU" if cards == 1 else f"each on {fmt.integer(cards)} GPUs"
        return f"{fmt.integer(replicas)} replicas, {each}" if replicas > 1 else ""
    where = " on each GPU" if cards == 1 else f" on each replica of {fmt.integer(cards)} GPUs"
    return f"{fmt.integer(workload.batch)} concurrent requests{where if replicas > 1 else ''}"


def _pace(time: TimeResult, before: str) -> str:
    if time.tokens_per_second is not None:
        pace = fmt.number_range(time.tokens_per_second, time.low_tokens_per_second, time.high_tokens_per_second)
        return f"{before}{pace} tokens/s"
    if time.samples_per_second is not None:
        return f"{before}{fmt.rounded(time.samples_per_second)} {time.samples}/s"
    return ""


def _reasons(time: TimeResult) -> Iterator[str]:
    whole = " of the whole request" if time.token_bound is not None else ""
    share = time.mfu_fraction
    mfu = "" if share is None else f"model FLOPs utilization, MFU{whole}: {fmt.percent(share)}"
    if time.bound is None and mfu:
        yield fmt.sentence(mfu)
    if time.bound is not None:
        if time.first_token_bound is None or time.token_bound is None:
            text = f"The {_unit(time)} is limited by {BOUND_TITLES[time.bound]}"
        else:
            text = f"Prefill is limited by {BOUND_TITLES[time.first_token_bound]}"
            text += f", decoding by {BOUND_TITLES[time.token_bound]}"
        yield f"{text}{f' ({mfu})' if mfu else ''}."
    yield _basis_sentence(time)


def _basis_sentence(time: TimeResult) -> str:
    """Return what the time is based on: `Estimated from measurements on this card.`."""
    how = "Based on" if time.basis == "measured" else "Estimated from"
    return f"{how} {BASIS_TITLES[time.basis]}."


def _unit(time: TimeResult) -> str:
    return "step" if time.kind == "step" else "request"


def _in_order(time: TimeResult) -> list[TimeTerm]:
    return sorted((term for term in time.terms if term.seconds), key=lambda term: -term.exposed_seconds)


def _row(term: TimeTerm, whole: float) -> TimeRow:
    share = term.exposed_seconds / whole
    return TimeRow(
        name=term.name,
        title=TIME_TITLES[term.name],
        text=fmt.duration(term.exposed_seconds) if term.exposed_seconds else "hidden",
        seconds=term.exposed_seconds,
        share=share,
        share_text=fmt.percent(share),
        overlapped=f"{fmt.duration(term.overlapped_seconds)} overlapped" if term.overlapped_seconds else "",
        how=term.formula,
        substituted=substitute_symbols(term.formula, term.symbols),
        certainty=CERTAINTY_TITLES[term.certainty],
        symbols=tuple(
            SymbolRow(symbol.name, symbol_value(symbol.value), symbol.meaning, symbol.origin) for symbol in term.symbols
        ),
        source=term.source,
    )
