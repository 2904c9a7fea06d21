"""What holds for every network and workload."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_models import architectures, bundled, llama, other, small_llama, workloads

from planner.hardware.usable import UsableMemory
from planner.memory.estimate import estimate_memory, fits_on
from planner.memory.result import MemoryResult
from planner.models.architecture import Architecture
from planner.units import GIB
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

some = settings(max_examples=60)


COUNTS = st.sampled_from((1, 2, 8))


CARD = "rtx-4090"


def sums_of(result: MemoryResult) -> None:
    assert sum(term.bytes for term in result.terms) == result.total_bytes
    assert all(sum(share.bytes for share in phase.shares) == phase.bytes for phase in result.phases)
    assert len({term.name for term in result.terms}) == len(result.terms)
    assert all(term.bytes > 0 for term in result.terms)


@some
@given(architectures(), workloads(), COUNTS)
def test_terms_and_shares_sum_to_the_byte(model, workload, count):
    sums_of(estimate_memory(model, workload, count=count))


@some
@given(architectures(), workloads(), COUNTS)
def test_the_peak_is_the_phase_with_the_most_bytes(model, workload, count):
    result = estimate_memory(model, workload, count=count)
    assert result.peak.name == result.peak_phase
    assert result.peak.bytes == result.total_bytes == max(phase.bytes for phase in result.phases)
    alive: dict[str, int] = {}
    for share in result.peak.shares:
        alive[share.name] = alive.get(share.name, 0) + share.bytes
    assert alive == {term.name: term.bytes for term in result.terms}


@some
@given(architectures(), workloads(), COUNTS)
def test_the_interval_holds_the_total(model, workload, count):
    result = estimate_memory(model, workload, count=count)
    assert 0 < result.low_bytes <= result.total_bytes <= result.high_bytes
    assert 0 < result.allocated_bytes <= result.reserved_bytes <= result.total_bytes
    assert all(0 <= term.low_bytes <= term.bytes <= term.high_bytes for term in result.terms)


@some
@given(architectures(), workloads())
def test_symbols_and_sources_are_there(model, workload):
    for term in estimate_memory(model, workload).terms:
        assert term.formula
        assert term.source
        assert term.symbols
        assert sum(part.bytes for part in term.parts) in (0, term.bytes)


@some
@given(architectures(), workloads(), st.data())
def test_more_work_never_needs_less(model, workload, data):
    field = data.draw(
        st.sampled_from(
            ("micro_batch", "sequence_length")
            if workload.task == "training"
            else ("batch", "prompt_length", "context_length")
        )
    )
    filled = with_defaults(workload, model, 1)
    more = getattr(filled, field) + data.draw(st.integers(1, 100))
    grown = filled.evolve(**{field: more})
    if field == "prompt_length":
        grown = grown.evolve(context_length=max(more, grown.context_length))
    # llama.cpp shares its cells between the sequences and packs its graph anew: there, more may by chance take less.
    assume(workload.task == "training" or filled.profile != "llama.cpp")
    small, large = (estimate_memory(model, w).total_bytes for w in (filled, grown))
    assert small <= large


@some
@given(workloads(), st.integers(1, 20), st.sampled_from(("llama", "mistral")))
def test_more_layers_never_need_less(workload, layers, family):
    sizes = {
        "vocab_size": 100,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
    }
    totals = [
        estimate_memory(other(family, sizes, num_hidden_layers=n), workload).total_bytes for n in (layers, layers + 1)
    ]
    assert totals[0] <= totals[1]


@some
@given(architectures())
def test_active_parameters_are_some_of_all(model):
    assert 0 < model.active_parameters <= model.parameters


@some
@given(architectures(), workloads(), st.integers(0, 40 * GIB), st.integers(0, GIB), st.integers(0, GIB))
def test_the_verdict_agrees_with_the_numbers(model, workload, capacity, margin, taken):
    available = UsableMemory(
        bytes=capacity + margin,
        low_bytes=capacity,
        high_bytes=capacity + margin,
        certainty="assumed",
        source="s",
        explanation="e",
    )
    workload = workload.evolve(other_processes_bytes=taken)
    card = bundled().hardware.gpu(CARD)
    result = estimate_memory(model, workload, card, available)
    assert result.free_bytes == capacity + margin - taken - result.total_bytes
    if result.unsupported:
        assert (result.verdict, result.fit_probability) == (None, None)
        return
    expected = "tight"
    if result.high_bytes <= capacity - taken:
        expected = "fits"
    elif result.free_bytes < 0:
        expected = "does-not-fit"
    assert result.verdict == expected
    assert (result.fit_probability >= 0.95, result.fit_probability >= 0.5) == (
        expected == "fits",
        expected != "does-not-fit",
    )
    assert (result.at_least_cards == 1) == (result.free_bytes >= 0)
    if result.at_least_cards not in (None, 1):
        assert result.at_least_cards > 1
    (fit,) = fits_on(model, workload, [(card, available)])
    assert (fit.verdict, fit.total_bytes, fit.free_bytes) == (result.verdict, result.total_bytes, result.free_bytes)
    assert fit.fit_probability == result.fit_probability


def highest(model: Architecture, workloads_: list[Training | Inference]) -> list[int]:
    return [estimate_memory(model, workload).high_bytes for workload in workloads_]


@some
@given(architectures(), st.sampled_from(("batch", "context_length")), st.integers(1, 64))
def test_more_tokens_never_need_less_at_worst(model, field, step):
    bounds = highest(model, [Inference(**{field: 1 + step * n * n}) for n in range(8)])
    assert bounds == sorted(bounds)


@some
@given(architectures(), st.integers(1, 64), st.integers(1, 40 * GIB), st.sampled_from(("hf", "vllm", "training")))
def test_a_larger_batch_is_never_likelier_to_fit(model, step, capacity, how):
    available = UsableMemory(
        bytes=capacity, low_bytes=capacity, high_bytes=capacity, certainty="measured", source="s", explanation="e"
    )
    if how == "vllm" and model.kind == "encoder":
        how = "hf"
    sizes = [1 + step * n for n in range(6)]
    asked = [Training(micro_batch=size) if how == "training" else Inference(batch=size, profile=how) for size in sizes]
    card = bundled().hardware.gpu(CARD)
    chances = [estimate_memory(model, workload, card, available).fit_probability for workload in asked]
    assert chances == sorted(chances, reverse=True)


def test_the_worst_case_does_not_fall_where_decoding_overtakes_the_prefill():
    model = bundled().models.model("meta-llama/Llama-2-70b-hf")
    assert estimate_memory(model, Inference(context_length=6900)).peak_phase == "prefill"
    assert estimate_memory(model, Inference(context_length=7100)).peak_phase == "decode"
    bounds = highest(model, [Inference(context_length=length) for length in range(6900, 7100, 4)])
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("workload", [Inference(), Training(activation_checkpointing="full")])
def test_a_llama_of_100_million_tokens_is_only_large(workload):
    field = "context_length" if workload.task == "inference" else "sequence_length"
    sums_of(estimate_memory(llama(), workload.evolve(**{field: 100_000_000})))


def test_the_smallest_network_has_a_sum_too():
    tiny = small_llama(vocab_size=1, hidden_size=2, intermediate_size=1, num_attention_heads=1, num_key_value_heads=1)
    sums_of(estimate_memory(tiny, Training(sequence_length=1)))


def test_every_model_of_the_catalog_can_be_estimated_with_the_defaults():
    models = bundled().models
    for record in models.records[::5]:
        for workload in (Inference(), Training()) if record.kind != "diffusion" else (Inference(),):
            sums_of(estimate_memory(models.model(record.id), workload))


def test_a_whole_catalog_is_judged_as_each_card_is():
    hardware = bundled().hardware
    cards = [(card, hardware.usable_memory(card)) for card in hardware.gpus[::7]]
    workload = Inference(context_length=2000)
    for fit, (card, available) in zip(fits_on(llama(), workload, cards), cards, strict=True):
        result = estimate_memory(llama(), workload, card, available)
        assert fit.gpu_id == card.id
        assert (fit.verdict, fit.total_bytes, fit.free_bytes) == (result.verdict, result.total_bytes, result.free_bytes)
        assert fit.unsupported == result.unsupported


def test_layers_with_a_recurrent_state_say_which_kernels_are_assumed():
    def assumed(model_type, workload):
        sizes = {"hidden_size": 64, "vocab_size": 100, "num_hidden_layers": 4}
        heads = {
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "intermediate_size": 96,
            "state_size": 16,
        }
        notes = estimate_memory(other(model_type, sizes | heads), workload).notes
        return [note.partition("kernels of ")[2].partition(".")[0] for note in notes if "recurrent state" in note]

    for workload in (Training(), Inference()):
        assert assumed("mamba", workload) == ["mamba-ssm and causal-conv1d"]
        assert assumed("llama", workload) == []
    # vLLM brings its own kernels.
    assert assumed("mamba", Inference(profile="vllm")) == []
    assert assumed("lfm2", Training()) == []
