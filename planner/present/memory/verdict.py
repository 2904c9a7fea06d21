"""Memory verdicts as text: short, as a sentence, as a table cell, and with their certainty."""

import re
from typing import Final

from planner.memory.chance import LIKELY_TO_FIT
from planner.memory.result import MemoryResult, Verdict
from planner.present import format as fmt

_ALMOST_CERTAIN: Final = 0.995
"""How sure a verdict may be called in whole percent; the estimate knows nothing that is certain."""


def sure_text(verdict: Verdict, fit_probability: float) -> str:
    """Return how sure a verdict is: `98 % sure`, `over 99 % sure`; of a tight plan `77 % sure it fits`."""
    probability = 1 - fit_probability if verdict == "does-not-fit" else fit_probability
    return f"{_percent_text(probability)} sure{' it fits' if verdict == 'tight' else ''}"


def _percent_text(probability: float) -> str:
    return f"over {fmt.percent(0.99)}" if probability >= _ALMOST_CERTAIN else fmt.percent(probability)


def confidence_sentence(memory: MemoryResult) -> str:
    """Return how sure the verdict is; empty for a tight plan, whose answer says it."""
    sure = "" if memory.verdict == "tight" else _sure_text(memory)
    return fmt.sentence(sure) if sure else ""


def certainty_sentence(memory: MemoryResult) -> str:
    """Return how many bytes of the peak are exact, measured and assumed."""
    counted = memory.certain_bytes
    kinds = (
        (counted.exact, "counted exactly"),
        (counted.measured, "from formulas checked against real runs"),
        (counted.assumed, "assumed"),
    )
    parts = fmt.listing(tuple(f"{fmt.size(size)} {how}" for size, how in kinds if size))
    return f"Of the peak: {parts}." if parts else ""


VERDICT_TITLES: Final[dict[Verdict, str]] = {"fits": "Fits", "tight": "Tight", "does-not-fit": "Does not fit"}
NOT_SUPPORTED: Final = "Not supported"
"""Verdict text for a plan that the card cannot run at all."""
_LEFT_OUT: Final = {
    "tight": "the plan fits only tightly",
    "does-not-fit": "the plan does not fit",
    "not-supported": "the GPU cannot run it",
}
"""Reason to exclude a card from a recommendation, by the plan's verdict on it."""
_RANKS: Final[dict[Verdict, int]] = {"fits": 2, "tight": 1, "does-not-fit": 0}
_PRINTED_SIZE: Final = re.compile(r", [\d.,]+ [KMG]iB\b[^:]*(?=: https?://)")
"""The size that a source printed, and how exactly, before the source's address; the note's own size says it."""
_NAMED: Final = 3
"""Number of smallest fitting cards that a sentence names at most."""


def verdict_title(verdict: Verdict, fit_probability: float | None) -> str:
    """Return a verdict in a headline: `Probably does not fit` where it may fit in more than 1 of 20 cases.

    A plan that fits in fewer than 19 of 20 cases is called `Tight` likewise.
    """
    if verdict == "does-not-fit" and fit_probability is not None and fit_probability > 1 - LIKELY_TO_FIT:
        return f"Probably {VERDICT_TITLES[verdict].lower()}"
    return VERDICT_TITLES[verdict]


def needs_change(memory: MemoryResult) -> bool:
    """Return whether the plan does not fit, fits only tightly, or cannot run on its card."""
    return bool(memory.unsupported) or memory.verdict in ("tight", "does-not-fit")


def verdict_phrase(memory: MemoryResult) -> str:
    """Return the memory verdict as a short phrase: `Fits, 6.10 GiB free`, `Tight, 77 % sure it fits`.

    Of an engine that fills the card it says what the engine reserves: `Fits, reserves 72.8 GiB`.
    """
    if memory.unsupported:
        return NOT_SUPPORTED
    if memory.verdict is None or memory.free_bytes is None:
        return f"Needs {fmt.size(memory.total_bytes)}"
    if memory.verdict == "fits" and memory.cache_pool is not None:
        return f"{VERDICT_TITLES['fits']}, reserves {fmt.size(reserved_bytes(memory))}"
    return verdict_text(memory.verdict, memory.free_bytes, memory.fit_probability)


def reserved_bytes(memory: MemoryResult) -> int:
    """Return the memory that an engine reserves on the card and fills with KV cache; 0 for other programs."""
    return memory.cache_pool.reserved_bytes if memory.cache_pool else 0


def verdict_text(verdict: Verdict, free_bytes: int, probability: float | None) -> str:
    """Return a memory verdict with the free or missing memory, or if tight with the probability of fitting."""
    if verdict == "tight" and probability is not None:
        return f"{VERDICT_TITLES[verdict]}, {sure_text(verdict, probability)}"
    return f"{verdict_title(verdict, probability)}, {margin_text(free_bytes)}"


def margin_text(free_bytes: int) -> str:
    """Return the free or missing memory: `6.10 GiB free`, `2.00 GiB short`."""
    return f"{fmt.size(abs(free_bytes))} {'free' if free_bytes >= 0 else 'short'}"


def verdict_rank(verdict: Verdict | None) -> int | None:
    """Return a verdict's rank for sorting, the best highest; None without a verdict."""
    return None if verdict is None else _RANKS[verdict]


def verdict_cell(verdict: Verdict | None, unsupported: str) -> str:
    """Return the verdict as a table cell; `unsupported` says why the hardware cannot run the plan, empty if it can."""
    return VERDICT_TITLES[verdict] if verdict else NOT_SUPPORTED if unsupported else fmt.UNKNOWN


def no_fit_sentence() -> str:
    """Return the sentence which says that the plan does not fit."""
    return fmt.sentence(_LEFT_OUT["does-not-fit"])


def exclusion_text(reason: str) -> str:
    """Return the reason why a card is excluded as text; a reason that is no verdict stays unchanged."""
    return _LEFT_OUT.get(reason, reason)


def fitting_sentence(fitting: int, tight: int, total: str, cheapest: str = "") -> str:
    """Return on how many of `total` (such as `43 systems`) the plan fits, and the cheapest if known.

    `tight` is the number of others on which it fits only tightly.
    """
    if not fitting and not tight:
        return f"Does not fit on any of {total}."
    which = f" Cheapest: {cheapest}." if cheapest else ""
    if not fitting:
        return f"Fits only tightly, on {tight} of {total}.{which}"
    tightly = f", tightly on {tight} more" if tight else ""
    return f"Fits on {fitting} of {total}{tightly}.{which}"


def memory_answer(memory: MemoryResult, card: str | None, count: int = 1, smallest: tuple[str, ...] = ()) -> str:
    """Return the memory verdict in one sentence, or without a card the memory needed.

    Args:
        memory: The estimate.
        card: The name of the card, or the phrase for cards that differ.
        count: The number of equal cards.
        smallest: The names of the smallest cards that fit, to suggest if there is no card.
    """
    if card is not None and memory.unsupported:
        return f"{NOT_SUPPORTED} on {card}: {'; '.join(memory.unsupported)}."
    if card is None or memory.verdict is None or memory.capacity_bytes is None:
        return _requirement_sentence(memory, card, smallest)
    kinds = {share.gpu for share in memory.per_gpu}
    title = verdict_title(memory.verdict, memory.fit_probability)
    where = f"{title} on {card if len(kinds) > 1 else fmt.count_of(count, card)}"
    margin = _margin_phrase(memory)
    needs = f"{needs_phrase(memory, count)}{'; ' if ' reserves ' in margin else ', '}{margin}"
    tight = _sure_text(memory) if memory.verdict == "tight" else ""
    return f"{where}: {', '.join(filter(None, (needs, tight)))}."


def needs_phrase(memory: MemoryResult, count: int) -> str:
    """Return the memory that a plan needs of each GPU, or of the fullest, and what of it is usable."""
    which = "the fullest GPU " if len(memory.per_gpu) > 1 else "each " if count > 1 else ""
    return f"{which}{_needs_phrase(memory)} of {_capacity_phrase(memory)}"


def detail_sentence(memory: MemoryResult, card: str, count: int) -> str:
    """Return the memory needed and how sure the verdict is, beside the verdict; without one, why there is none."""
    if memory.verdict is None or memory.capacity_bytes is None or memory.unsupported:
        return memory_answer(memory, card, count)
    return fmt.sentence("; ".join(filter(None, (needs_phrase(memory, count), _sure_text(memory)))))


def gauge_text(memory: MemoryResult) -> str:
    """Return the memory needed of the memory usable, and how sure the verdict is: `16.4 of 23.5 GiB · 98 % sure`.

    Empty without a verdict.
    """
    if memory.verdict is None or memory.capacity_bytes is None:
        return ""
    needed, capacity = fmt.size(memory.total_bytes), fmt.size(memory.capacity_bytes)
    unit = capacity.rpartition(fmt.THIN)[2]
    amount = f"{needed.removesuffix(f'{fmt.THIN}{unit}')} of {capacity}"
    return " · ".join(filter(None, (amount, _sure_text(memory))))


def gauge_facts(memory: MemoryResult, card: str | None, count: int = 1) -> tuple[str, ...]:
    """Return what belongs to `gauge_text`: the card, the free or reserved memory, the range, and other programs' use.

    Empty without a verdict.
    """
    if memory.verdict is None or card is None:
        return ()
    kinds = {share.gpu for share in memory.per_gpu}
    where = card if len(kinds) > 1 else fmt.count_of(count, card)
    which = f"the fullest of {where}" if len(memory.per_gpu) > 1 else where
    other = memory.other_processes_bytes
    facts = (
        f"on each of {where}" if count > 1 and len(memory.per_gpu) <= 1 else f"on {which}",
        _margin_phrase(memory),
        f"needs {fmt.size_range(memory.low_bytes, memory.high_bytes)}" if memory.low_bytes < memory.high_bytes else "",
        f"{fmt.size(other)} used by other programs" if other else "",
    )
    return tuple(filter(None, facts))


def scarcity_phrase(memory: MemoryResult) -> str:
    """Return what marks the fullest card in a table: `least free memory` or `largest shortfall`."""
    return "largest shortfall" if (memory.free_bytes or 0) < 0 else "least free memory"


def fewest_cards_note(memory: MemoryResult) -> tuple[str, ...]:
    """Return a note on how many cards of this kind the plan needs at least, if it does not fit."""
    # The networks of a diffusion pipeline run one after the other, and are not split.
    if memory.verdict != "does-not-fit" or any(phase.name == "denoise" for phase in memory.phases):
        return ()
    if memory.at_least_cards is None:
        return ("Splitting weights, gradients and optimizer states is not enough: the rest exceeds one such GPU.",)
    cards = fmt.plural(memory.at_least_cards, "GPU")
    return (f"Even if all of it could be split evenly, the plan would need at least {cards} of this kind.",)


def cannot_run(memory: MemoryResult) -> bool:
    """Return whether the plan cannot run on its card, so that its time and cost are hypothetical."""
    return memory.capacity_bytes is not None and (bool(memory.unsupported) or memory.verdict == "does-not-fit")


def hypothetical_note(memory: MemoryResult) -> tuple[str, ...]:
    """Return a note that time and cost are hypothetical, if the plan cannot run on its card."""
    if not cannot_run(memory):
        return ()
    verdict = verdict_phrase(memory)
    reason = f"{verdict[:1].lower()}{verdict[1:]}"
    return (f"The plan does not run on this GPU ({reason}); time and cost are hypothetical.",)


def capacity_note(memory: MemoryResult) -> tuple[str, ...]:
    """Return a note on the card's usable memory, its range and its source, if it is known."""
    low, high = memory.capacity_low_bytes, memory.capacity_high_bytes
    if memory.capacity_bytes is None or low is None or high is None:
        return ()
    size, ends = fmt.size(memory.capacity_bytes), fmt.size_range(low, high)
    sure = "" if ends == size else f" ({ends})"
    source = f"; {_PRINTED_SIZE.sub('', memory.capacity_source)}" if memory.capacity_source else ""
    return (f"Usable memory per GPU: {size}{sure}{source}",)


def host_note(memory: MemoryResult) -> tuple[str, ...]:
    """Return a note on the host memory or disk space that the plan needs, if any."""
    if memory.disk_bytes:
        return (f"Offloaded: {fmt.size(memory.disk_bytes)} on NVMe. How much RAM its buffers take is not known.",)
    return (f"Also needs {fmt.size(memory.host_bytes)} of RAM.",) if memory.host_bytes else ()


def _needs_phrase(memory: MemoryResult) -> str:
    """Return the memory needed with its range: `needs 17.4 GiB (16.9 – 18.3)`."""
    return f"needs {fmt.size_with_range(memory.total_bytes, memory.low_bytes, memory.high_bytes)}"


def _without_total_unit(text: str, memory: MemoryResult) -> str:
    """Return the size `text` without its unit if the total has the same unit."""
    number, _, unit = text.rpartition(fmt.THIN)
    return number if fmt.size(memory.total_bytes).endswith(f"{fmt.THIN}{unit}") else text


def _requirement_sentence(memory: MemoryResult, card: str | None, smallest: tuple[str, ...]) -> str:
    """Return the memory needed in one sentence, for a plan without a verdict."""
    sentence = f"N{_needs_phrase(memory)[1:]}"
    if card is not None:
        return f"{sentence}; the usable memory of {card} is unknown."
    named = f" The smallest GPUs that fit: {fmt.listing(smallest[:_NAMED])}." if smallest else ""
    return f"{sentence}.{named}"


def _capacity_phrase(memory: MemoryResult) -> str:
    """Return the card's usable memory, and how much memory other programs use."""
    other = memory.other_processes_bytes
    held = f", {fmt.size(other)} of it used by other programs" if other else ""
    return f"{_without_total_unit(fmt.size(memory.capacity_bytes), memory)} usable{held}"


def _sure_text(memory: MemoryResult) -> str:
    """Return how sure the verdict is, empty without one."""
    if memory.verdict is None or memory.fit_probability is None:
        return ""
    return sure_text(memory.verdict, memory.fit_probability)


def _margin_phrase(memory: MemoryResult) -> str:
    """Return the free or missing memory, or what an engine reserves of the free memory."""
    free = memory.free_bytes or 0
    if memory.cache_pool is None or free < 0:
        return margin_text(free)
    reserved = reserved_bytes(memory)
    share = fmt.percent(reserved / memory.capacity_bytes) if memory.capacity_bytes else ""
    return f"the engine reserves {fmt.size(reserved)} ({share}) unless limited"
