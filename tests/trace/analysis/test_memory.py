"""The estimator's result from the facts of a trace: terms, phases, interval and verdict."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import Recorder, any_recordings, training, two_steps
from small_models import bundled

from planner.hardware.usable import UsableMemory
from planner.memory.overhead import cublas_workspace_bytes, fixed_overhead, framework_overhead
from planner.memory.result import MemoryResult
from planner.trace.analysis.memory import allocator_capacity_bytes, facts_of, traced_fits_on, traced_memory
from planner.trace.recording import TracedFacts, TraceDifference
from planner.trace.request import TraceParallel

MIB = 1 << 20
GIB = 1 << 30
CARDS = [(gpu, bundled().hardware.usable_memory(gpu)) for gpu in bundled().hardware.gpus]


def card(name: str):
    return bundled().hardware.gpu(name)


def exactly(size: int) -> UsableMemory:
    """A card of which a process may have `size` bytes, no more and no less."""
    return UsableMemory(
        bytes=size, low_bytes=size, high_bytes=size, certainty="measured", source="by hand", explanation="by hand"
    )


def on(facts: TracedFacts, size: int) -> MemoryResult:
    return traced_memory(facts, card("rtx-4090"), exactly(size))


def needed(facts: TracedFacts, allocator_bytes: int) -> int:
    """What a process needs on the card with so many bytes for the allocator."""
    fixed = framework_overhead(fixed_overhead(card("rtx-4090")), 0, 0, 2)
    return allocator_bytes + fixed.context + fixed.workspace


def test_categories_become_terms():
    result = traced_memory(facts_of(two_steps(MIB)))
    assert {term.name: term.bytes for term in result.terms if term.name != "framework_overhead"} == {
        "weights": 2 * MIB,
        "buffers": MIB,
        "gradients": MIB,
        "optimizer_states": 4 * MIB,
        "activations": 2 * MIB,
        "temporaries": MIB + 4,
    }
    assert (result.term("buffers").parts[0].name, result.term("buffers").parts[0].bytes) == ("inputs", MIB)
    assert result.term("weights").symbols[0].value == 2
    assert result.term("weights").source == "traced with PyTorch 2.13.0"
    assert result.term("weights").certainty == "exact"
    assert not result.term("weights").parts


def test_every_other_category_has_its_term():
    recorder = Recorder()
    for category in ("adapters", "buffers", "kv_cache", "communication"):
        recorder.make(MIB, category)
    terms = {term.name for term in traced_memory(facts_of(recorder.recording())).terms}
    assert terms == {"adapters", "buffers", "kv_cache", "communication", "framework_overhead"}


def test_the_overhead_is_context_workspaces_and_the_replays_slack():
    facts = facts_of(two_steps(64 * MIB))
    overhead = traced_memory(facts, card("rtx-4090")).term("framework_overhead")
    slack = facts.reserved_bytes - facts.allocated_bytes
    assert {part.name: part.bytes for part in overhead.parts} == {
        "GPU context (CUDA or HIP)": 426 * MIB,
        "cuBLAS workspace": 2 * cublas_workspace_bytes(card("rtx-4090")),
        "allocator slack": slack,
    }
    assert overhead.formula == "C + W + R − A"
    values = {symbol.name: symbol.value for symbol in overhead.symbols}
    assert values["R"] - values["A"] == slack
    assert overhead.certainty == "assumed"
    assert "replay" in overhead.source


def test_inference_has_one_workspace():
    recording = two_steps(MIB, training(task="inference"))
    parts = traced_memory(facts_of(recording), card("rtx-4090")).term("framework_overhead").parts
    assert parts[1].bytes == cublas_workspace_bytes(card("rtx-4090"))


def fragmented() -> TracedFacts:
    recorder = Recorder()
    recorder.free(*[recorder.make(12 * MIB) for _ in range(200)])
    recorder.make(3000 * MIB)
    return facts_of(recorder.recording())


def test_on_a_small_card_the_allocator_releases_cached_memory():
    facts = fragmented()
    assert facts.reserved_bytes == 5400 * MIB
    roomy = on(facts, 24 * GIB)
    assert (roomy.verdict, roomy.total_bytes) == ("fits", needed(facts, facts.reserved_bytes))
    size = needed(facts, 4000 * MIB)
    narrow = on(facts, size)
    assert (narrow.verdict, narrow.total_bytes, narrow.free_bytes) == ("tight", size, 0)


def test_a_card_below_the_minimum_capacity_is_unlikely_to_fit():
    facts = fragmented()
    need = needed(facts, facts.least_reserved_bytes)
    assert on(facts, need).verdict == "tight"
    short = on(facts, need - 1)
    assert (short.verdict, short.total_bytes, short.free_bytes) == ("does-not-fit", need, -1)
    assert short.fit_probability < 0.5 <= on(facts, need).fit_probability


def test_differences_widen_the_interval():
    facts = facts_of(two_steps(64 * MIB))
    unsure = TraceDifference(name="scratch", explanation="unseen", source="x", low_bytes=0, bytes=8, high_bytes=GIB)
    sure, wide = traced_memory(facts), traced_memory(facts.evolve(differences=(unsure,)))
    assert wide.high_bytes == sure.high_bytes + GIB - 8
    assert wide.low_bytes == sure.low_bytes - 8
    assert wide.total_bytes == sure.total_bytes
    assert wide.notes == ("scratch: unseen (counted as 0.0 MiB; between 0.0 and 1,024.0 MiB)",)


def test_untested_versions_and_cpu_operators_have_notes():
    facts = facts_of(two_steps(MIB, training(device="cpu"))).evolve(tested=False, torch="3.0.0", notes=("by hand",))
    version, operators, own = traced_memory(facts).notes
    assert version.startswith("Tracing was not tested with PyTorch 3.0.0")
    assert "CPU's operators" in operators
    assert own == "by hand"
    assert traced_memory(facts_of(two_steps())).notes == ()


@pytest.mark.parametrize(
    ("strategy", "note"),
    [
        ("ddp", "The figures are for one rank of 8; each holds the whole model (DDP)."),
        ("fsdp", "The figures are for one rank of 8; each holds its shard of the model (FSDP)."),
    ],
)
def test_a_note_states_the_number_of_ranks(strategy, note):
    facts = facts_of(two_steps(MIB, training(parallel=TraceParallel(ranks=8, strategy=strategy))))
    assert traced_memory(facts).notes == (note,)


def test_a_sharded_model_is_split_over_multiples_of_its_ranks():
    whole = facts_of(two_steps(GIB))
    shard = whole.evolve(request=training(parallel=TraceParallel(ranks=8, strategy="fsdp")))
    size = needed(whole, 9 * GIB)
    assert (on(whole, size).at_least_cards, on(shard, size).at_least_cards) == (2, 12)
    assert on(shard, 100 * GIB).at_least_cards == 8


def test_a_device_without_eager_operators_gets_no_verdict():
    facts = facts_of(two_steps())
    for name in ("tpu-v4", "gaudi2"):
        gpu = card(name)
        result = traced_memory(facts, gpu, bundled().hardware.usable_memory(gpu))
        assert result.verdict is None
        assert len(result.unsupported) == 1


def test_other_processes_reduce_the_free_memory():
    facts = facts_of(two_steps())
    usable = bundled().hardware.usable_memory(card("rtx-4090"))
    result = traced_memory(facts, card("rtx-4090"), usable, 2, 24 * GIB)
    assert result.verdict == "does-not-fit"
    assert result.other_processes_bytes == 24 * GIB
    assert (result.per_gpu[0].gpu, result.per_gpu[0].count) == ("rtx-4090", 2)
    assert result.per_gpu[0].verdict == result.verdict


def test_without_a_card_there_is_no_verdict():
    result = traced_memory(facts_of(two_steps()))
    assert (result.verdict, result.capacity_bytes, result.per_gpu, result.at_least_cards) == (None, None, (), None)


def test_the_allocator_gets_the_memory_beside_context_and_workspaces():
    facts = facts_of(two_steps())
    assert allocator_capacity_bytes(facts, card("rtx-4090"), needed(facts, 5 * GIB)) == 5 * GIB
    assert allocator_capacity_bytes(facts, card("rtx-4090"), MIB) == 0


@settings(max_examples=50)
@given(any_recordings(), st.sampled_from(CARDS), st.sampled_from([0, GIB]))
def test_terms_sum_to_the_byte_and_lie_in_the_interval(recording, chosen, others):
    facts = facts_of(recording)
    result = traced_memory(facts, *chosen, other_processes_bytes=others)
    assert sum(term.bytes for term in result.terms) == result.total_bytes
    assert all(term.bytes > 0 for term in result.terms)
    assert 0 <= result.low_bytes <= result.total_bytes <= result.high_bytes
    assert result.allocated_bytes <= result.reserved_bytes <= result.total_bytes
    assert result.peak.bytes == result.total_bytes == max(phase.bytes for phase in result.phases)
    assert all(sum(share.bytes for share in phase.shares) == phase.bytes for phase in result.phases)
    assert {share.name: share.bytes for share in result.peak.shares if share.bytes} == {
        term.name: term.bytes for term in result.terms
    }
    (fit,) = traced_fits_on(facts, [chosen], others)
    assert (fit.total_bytes, fit.verdict, fit.free_bytes) == (result.total_bytes, result.verdict, result.free_bytes)
    assert (fit.gpu_id, fit.unsupported) == (chosen[0].id, result.unsupported)
