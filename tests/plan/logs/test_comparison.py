"""An estimate beside a log: rows, their reasons, and what a correction may be made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_texts import RUN, TRAIN, VLLM, llama_cpp, smi, summary

from planner.errors import SpecError
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import LoggedAmount, LogReading
from planner.plan.catalog import load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import GROUPS, compare_with_log
from planner.plan.logs.log_amounts import suggest_correction
from planner.units import GIB, MIB
from planner.workload.software.llama_cpp import LlamaCppSettings
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


def test_notes_state_another_context_length_and_model(compared):
    found = compared(VLLM.replace("32,768", "8,192") + "INFO Starting to load model Qwen/Qwen3-8B...\n")
    assert "The log's context is 8,192 tokens, the plan's 32,768." in found.notes
    assert "The log is for the model Qwen/Qwen3-8B, the plan for meta-llama/Llama-3.1-8B." in found.notes
    same = compared(VLLM + "INFO Starting to load model /models/Meta-Llama-3.1-8B-Instruct...\n")
    assert not any("names the model" in note for note in same.notes)


@pytest.mark.parametrize(
    ("taken", "words"),
    [("29.92", "suggests fp32"), ("7.48", "8 bits per weight"), ("4.20", "4 bits per weight"), ("10.00", "")],
)
def test_another_weight_format_is_recognized_by_its_bits(compared, taken, words):
    row = compared(f"Model loading took {taken} GiB").row("weights")
    assert words in row.explanation
    assert row.corrections == ()
    assert bool(row.explanation) == bool(words)


@pytest.mark.parametrize(
    ("context", "cache", "words"),
    [
        (65_536, 8192.0, "2 times the plan's 32,768"),
        (32_768, 2048.0, "an 8-bit cache"),
        (32_768, 8192.0, "a wider format"),
        (32_768, 3000.0, ""),
    ],
)
def test_a_longer_or_quantized_cache_is_recognized(compared, context, cache, words):
    assert words in compared(llama_cpp(context, cache)).row("kv_cache").explanation


def test_reserved_memory_alone_is_explained_as_more_than_allocated(compared):
    text = "\n".join(line for line in summary(1, 23900).splitlines() if "Allocated" not in line)
    assert "more than the allocated memory" in compared(text, TRAIN).row("reserved").explanation


def test_other_processes_on_the_card_are_explained(compared):
    assert "other processes use 0.49 GiB" in compared(smi(22900, 21500, others=500), TRAIN).row("card").explanation
    rest = compared(smi(22900, 21500, others=500), TRAIN).row("card").explanation
    assert "the driver and unlisted processes use 0.88 GiB" in rest
    alone = "\n".join(smi(22900, 21500).splitlines()[:2])
    assert "includes the GPU's other processes" in compared(alone, TRAIN).row("card").explanation
    assert "Of the GPU" not in compared(smi(21510, 21500), TRAIN).row("card").explanation


@pytest.mark.parametrize(("held", "words"), [("9.08", "not below it"), ("29.08", "more than estimated")])
def test_an_out_of_memory_message_gives_a_lower_bound(compared, held, words):
    text = (
        "CUDA out of memory. Tried to allocate 2.78 GiB. GPU 0 has a total capacity of 31.47 GiB of which 1.73 GiB is "
        f"free. Of the allocated memory {held} GiB is allocated by PyTorch, and 0.35 GiB is reserved by PyTorch but "
        "unallocated."
    )
    found = compared(text, TRAIN)
    assert found.row("allocated").at_least
    assert words in found.row("allocated").explanation
    assert "used or requested at least this much" in found.row("allocated").explanation
    assert "beyond its tensors" not in found.row("reserved").explanation
    assert "not the plan's GPU" in found.row("capacity").explanation


def test_overhead_is_explained_only_by_an_engine_that_the_log_names(catalog):
    reading = read_log(VLLM)
    known, unknown = (
        compare_with_log(evaluate(RUN, catalog), one, catalog) for one in (reading, reading.evolve(engine=None))
    )
    assert "CUDA graphs take" in known.row("overhead").explanation
    assert "CUDA graphs take" not in unknown.row("overhead").explanation


def test_the_context_of_all_slots_together_is_that_of_the_plan(compared):
    log = llama_cpp(65_536, 8192.0)
    assert any("log's context is 65,536" in note for note in compared(log).notes)
    engine = LlamaCppSettings(slots=2, kv_unified=True)
    workload = RUN.workload.evolve(profile="llama.cpp", batch=2, engine=engine)
    slotted = compared(log, RUN.evolve(workload=workload))
    assert not any("log's context" in note for note in slotted.notes)
    assert "times the plan's" not in slotted.row("kv_cache").explanation
