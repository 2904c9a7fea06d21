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
    "matrix_products": "Matrix products",
    "attention": "Attention",
    "elementwise": "Elementwise operations",
    "loss_head": "Logits and loss",
    "convolutions": "Convolutions",
    "prefill": "Prefill",
    "weights_read": "Weight reads",
    "cache_read": "KV cache reads",
    "decode_compute": "Decode computation",
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
    "communication": "communication between the cards",
    "host": "kernel launches by the host",
    "input": "data loading",
}
BASIS_TITLES: Final[dict[Basis, str]] = {
    "measured": "your measurement",
    "same card": "measurements on this card",
    "family": "measurements on cards of its family",
    "unmeasured": "measurements on cards of other families, as its own has none",
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
    numbers_put_in: str
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
    yield f"Processing {_prompts(time)} takes {whole}" if reads_only else f"A request takes {whole}"
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
    """Return the pace, for the plan bar: `6,610 tokens/s`, `212 samples/s`; empty if not known."""
    if time is None or time.seconds is None:
        return ""
    if time.tokens_per_second is not None:
        return f"{fmt.significant(time.tokens_per_second)} tokens/s"
    if time.samples_per_second is not None:
        return f"{fmt.significant(time.samples_per_second)} samples/s"
    return f"{fmt.duration(time.seconds)} per {'step' if time.kind == 'step' else 'request'}"


def pace_explanation(time: TimeResult | None, workload: Workload) -> str:
    """Return what the pace counts: tokens of one answer, at which context, how long its prompt takes, and the source.

    Empty if there is no time.
    """
    if time is None or time.seconds is None:
        return ""
    source = "" if time.basis == "measured" else "An estimate. "
    source = f"{source}Based on {BASIS_TITLES[time.basis]}."
    if not isinstance(workload, Inference) or time.output_token_seconds is None:
        return f"{time_answer(time)} {source}"
    pace, read = fmt.significant(1 / time.output_token_seconds), workload.prompt_length or 1
    context = max(workload.context_length or read, read)
    grows = f", on average from {fmt.integer(read)} to" if context > read else " at"
    said = [f"Each answer is written at {pace} tokens/s{grows} {fmt.integer(context)} tokens of context."]
    if time.first_token_seconds is not None:
        prompt = fmt.plural(read, "token")
        said.append(f"Before that, reading a prompt of {prompt} takes {fmt.duration(time.first_token_seconds)}.")
    if workload.batch > 1 and time.tokens_per_second is not None:
        total = fmt.significant(time.tokens_per_second)
        said.append(f"{fmt.integer(workload.batch)} answers at once{_on_each(workload)}: {total} tokens/s in all.")
    return " ".join((*said, source))


def _on_each(workload: Inference) -> str:
    """Return where the requests of a batch are processed: ` on each card`, ` on each replica of 2 cards`.

    It is empty if there is only one such place. `workload` has its defaults filled in.
    """
    if (workload.parallel.data or 1) == 1:
        return ""
    cards = workload.parallel.model_shards
    return " on each card" if cards == 1 else f" on each replica of {fmt.integer(cards)} cards"


def _pace(time: TimeResult, before: str) -> str:
    if time.tokens_per_second is not None:
        pace = fmt.number_range(time.tokens_per_second, time.low_tokens_per_second, time.high_tokens_per_second)
        return f"{before}{pace} tokens/s"
    if time.samples_per_second is not None:
        return f"{before}{fmt.significant(time.samples_per_second)} samples/s"
    return ""


def _reasons(time: TimeResult) -> Iterator[str]:
    if time.bound is not None:
        token = time.token_bound or time.bound
        after = "" if token == time.bound else f", and each token after the prompt by {BOUND_TITLES[token]}"
        yield f"It is limited by {BOUND_TITLES[time.bound]}{after}."
    if time.mfu_fraction is not None:
        yield f"Model FLOPs utilization (MFU): {fmt.percent(time.mfu_fraction)}."
    yield f"Based on {BASIS_TITLES[time.basis]}."


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
        numbers_put_in=substitute_symbols(term.formula, term.symbols),
        certainty=CERTAINTY_TITLES[term.certainty],
        symbols=tuple(
            SymbolRow(symbol.name, symbol_value(symbol.value), symbol.meaning, symbol.origin) for symbol in term.symbols
        ),
        source=term.source,
    )
