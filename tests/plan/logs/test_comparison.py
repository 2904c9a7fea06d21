"""An estimate beside a log: rows, their reasons, and what a correction may be made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_texts import RUN, TRAIN, VLLM, llama_cpp

from planner.errors import SpecError
from planner.memory.logs.reading import LoggedAmount, LogReading
from planner.plan.catalog import load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import GROUPS, compare_with_log
from planner.plan.logs.log_amounts import suggest_correction
from planner.units import GIB, MIB
from planner.workload.workload import Inference

KNOWN = load_catalog()


def test_a_log_of_vllm_agrees_with_a_plan_for_vllm(compared):
    plan = RUN.evolve(workload=RUN.workload.evolve(profile="vllm"))
    found = compared(VLLM, plan)
    assert abs(found.row("weights").difference_bytes) < 0.003 * found.row("weights").predicted_bytes
    cache = found.row("kv_cache")
    assert abs(cache.difference_bytes) < 0.001 * cache.predicted_bytes
    assert "158,656 tokens" in cache.explanation
    assert "has room for" in cache.explanation
    assert found.row("pool").actual_bytes == round(19.36 * GIB)
    assert "share" in found.row("pool").explanation
    assert "CUDA graphs" not in found.row("overhead").explanation
    assert found.notes == ()


def test_a_log_of_another_engine_has_a_note_and_no_correction(compared, catalog):
    found = compared(VLLM)
    assert "The log is from vLLM, but the plan is for Hugging Face Transformers" in found.notes[0]
    assert "CUDA graphs take 0.44 GiB" in found.row("overhead").explanation
    assert "profiles its largest batch" in found.row("working").explanation
    assert found.row("pool").predicted_bytes is None
    assert "does not include this amount" in found.row("pool").explanation
    assert suggest_correction(found, evaluate(RUN, catalog), "2026-10-03", "ab") is None


def test_a_log_of_llama_cpp_agrees_with_its_estimate(compared, catalog):
    plan = RUN.evolve(workload=Inference(context_length=32_768, weights="Q4_K_M"))
    found = compared(llama_cpp(), plan)
    assert "in host memory" in found.row("weights").explanation
    assert "other processes" in found.row("overhead").explanation
    assert found.row("kv_cache").agrees or abs(found.row("kv_cache").difference_bytes) < 64 * MIB
    assert found.row("host").actual_bytes == round(281.81 * MIB)
    assert "n_ubatch" not in found.row("working").explanation
    assert "n_ubatch" in compared(llama_cpp()).row("working").explanation


def test_a_log_without_anything_to_compare_is_refused(compared):
    with pytest.raises(SpecError, match="nothing in this log"):
        compared("| PyTorch CUDA memory summary, device ID 0 |\n| Active memory         |   1 MiB |   1 MiB |")


def test_every_term_of_an_estimate_belongs_to_at_most_one_row():
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names))


@given(
    st.lists(
        st.builds(
            LoggedAmount,
            name=st.sampled_from(["model weights", "CUDA graphs", "x"]),
            bytes=st.integers(0, 10**12),
            low_bytes=st.just(0),
            high_bytes=st.just(10**12),
            meaning=st.just(""),
            line=st.integers(1, 99),
            text=st.just(""),
            term=st.sampled_from(
                ["weights", "kv_cache", "activations", "state", "framework_overhead", "gradients", None]
            ),
            counter=st.sampled_from(
                ["allocated", "reserved", "process", "card", "capacity", "card-total", "host", None]
            ),
            sense=st.sampled_from(["peak", "moment", "at-least", "pool"]),
            device=st.sampled_from([None, "0", "CUDA1"]),
        ),
        max_size=8,
    ),
    st.sampled_from([RUN, TRAIN, RUN.evolve(gpu=None, count=2)]),
    st.sampled_from(["pytorch", "vllm", "llama.cpp", None]),
    st.one_of(st.none(), st.integers(1, 10**7)),
)
def test_any_reading_can_be_compared(measured, plan, engine, tokens):
    catalog = KNOWN
    reading = LogReading(
        formats=("vllm",), measured=tuple(measured), engine=engine, cache_tokens=tokens, splits_model=bool(tokens)
    )
    evaluation = evaluate(plan, catalog)
    try:
        comparison = compare_with_log(evaluation, reading, KNOWN)
    except SpecError:
        return
    made = suggest_correction(comparison, evaluation, "2026-10-03", "ab")
    if made is not None:
        memory = evaluate(plan.evolve(corrections=(made,)), catalog).memory
        assert sum(term.bytes for term in memory.terms) == memory.total_bytes
