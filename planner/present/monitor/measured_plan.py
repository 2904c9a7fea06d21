"""A plan's prediction beside what a card measures, in words."""

from planner.memory.result import TermName
from planner.plan.measured import BesideMeasured
from planner.plan.plan import Plan
from planner.plan.solve import Solved
from planner.present import format as fmt
from planner.present.memory.solved import solved_words
from planner.present.names import TERM_TITLES


def measured_sentence(found: BesideMeasured) -> str:
    """Return `Predicted 17.2 GiB, measured 17.9 GiB: +4 %, mostly the device context and the allocator.`.

    Where several processes compute on the card, it says which of them was measured.
    """
    expected = found.expected
    sizes = f"Predicted {fmt.size(expected.memory_bytes)}, measured {fmt.size(found.measured_bytes)}"
    return f"{sizes}{_where(found)}: {_difference(found.difference_fraction)}{_why(found)}."


def fill_sentence(plan: Plan, solved: tuple[Solved, Solved] | None) -> str:
    """Return by how much the batch can be raised: `The batch can go from 4 to 6, up to 8 tight.`; else why not."""
    if solved is None:
        return ""
    surely, barely = solved
    now = plan.workload.micro_batch if plan.workload.task == "training" else plan.workload.batch
    largest = surely.value if isinstance(surely.value, int) else 0
    most = barely.value if isinstance(barely.value, int) else 0
    if max(largest, most) <= now:
        return f"A larger batch than {fmt.integer(now)} does not fit."
    return f"The batch can go from {fmt.integer(now)} to {solved_words(surely, barely)}."


def _where(found: BesideMeasured) -> str:
    measured = found.measured
    if found.basis == "card":
        return " on the whole card"
    is_one_of_several = measured.pid is not None and measured.process_count > 1
    return f" in process {measured.pid}, the largest of {measured.process_count}" if is_one_of_several else ""


def _difference(fraction: float) -> str:
    if abs(fraction) < 0.005:
        return f"within 1{fmt.THIN}%"
    return f"{'+' if fraction > 0 else '−'}{fmt.percent(abs(fraction))}"


def _why(found: BesideMeasured) -> str:
    if found.reason == "before-peak":
        return "; less than the estimate's range, so the peak may be yet to come"
    if found.reason == "other-processes":
        return "; more than the estimate's range, part of which other processes hold"
    if found.reason == "engine-fills-card":
        return f"; {found.measured.engine} takes most of a card at its start, which this plan leaves out"
    likeliest = "" if found.likeliest is None else f", mostly {_term(found.likeliest)}"
    if found.reason == "more-than-expected":
        return "; more than the estimate's range, so what runs may not be what was planned"
    return likeliest if abs(found.difference_fraction) >= 0.005 else ""


def _term(name: TermName) -> str:
    """Return a term's name within a sentence; the overhead's range is that of the context and of the allocator."""
    if name == "framework_overhead":
        return "the device context and the allocator"
    title = TERM_TITLES[name]
    return title if title[:2].isupper() else f"{title[:1].lower()}{title[1:]}"
