"""A memory result as sentences, a bar, a breakdown and phases."""

import pytest
from memory_samples import on_card, result, seen, term

from planner.memory.estimate import estimate_memory
from planner.memory.result import CachePool, Phase, Symbol, Term, TermPart
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present import format as fmt
from planner.present.format import THIN
from planner.present.memory.view import evaluation_view, formula_in_words, memory_view
from planner.units import GIB, MIB
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.workload import Inference, Parallel, Training

LLAMA, MIXTRAL = "meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"


CLOSE = 5e-4
"""A share is shown with four decimals."""


def put_in(row):
    plain = row.substituted.replace("×", "*").replace("−", "-").replace("²", "**2").replace(",", "")
    return eval(plain, {"__builtins__": {}})


def rows(model, workload, count=1):
    plan = Plan(model=ModelChoice(id=model), workload=workload, gpu="h100-sxm5-80gb", count=count)
    catalog = load_catalog()
    return evaluation_view(evaluate(plan, catalog), catalog).terms


def test_the_reason_names_the_peak_phase_and_the_largest_term():
    assert seen(memory_view(result()).reason) == (
        "Memory peaks during decoding; largest part: weights (12.0 GiB, 75 %). The cache is full."
    )
    empty = result(terms=(term("weights", 0),))
    assert memory_view(empty).reason == ""


def test_the_bar_shows_terms_in_order_then_free_and_other_memory():
    view = memory_view(on_card(24 * GIB, "fits", other_processes_bytes=GIB), "RTX 4090")
    assert [(piece.name, piece.start_bytes // GIB, piece.bytes // GIB) for piece in view.segments] == [
        ("weights", 0, 12),
        ("kv_cache", 12, 3),
        ("framework_overhead", 15, 1),
        ("free", 16, 7),
        ("other_processes", 23, 1),
    ]
    assert sum(piece.share for piece in view.segments) == pytest.approx(1)
    assert seen(view.headline).startswith("Fits: 16.0 of 24.0 GiB")
    assert seen(view.segments[0].text) == "Weights 12.0 GiB"
    assert seen(view.segments[0].tooltip) == "Weights: 12,884,901,888 B"


def test_the_bar_shows_what_an_engine_reserves_beyond_the_need():
    pool = CachePool(bytes=9 * GIB, tokens=9_000, sequences=9.0, utilization=0.75, reserved_bytes=18 * GIB)
    segments = memory_view(on_card(24 * GIB, "fits", cache_pool=pool), "RTX 4090").segments
    assert [(piece.name, piece.bytes // GIB) for piece in segments if piece.kind == "free"] == [
        ("reserved", 2),
        ("free", 6),
    ]


def test_the_bar_overflows_a_card_that_is_too_small():
    view = memory_view(on_card(12 * GIB, "does-not-fit", at_least_cards=2), "RTX 3060")
    overflow = view.segments[-1]
    assert (overflow.kind, overflow.start_bytes, overflow.bytes) == ("overflow", 12 * GIB, 4 * GIB)
    assert overflow.share == pytest.approx(0.25)
    assert "at least 2 GPUs" in view.at_least[0]
    assert not any("at least" in note for note in view.notes)


def test_the_bar_without_a_card_is_the_total():
    view = memory_view(result())
    assert view.bar_bytes == view.total_bytes
    assert {piece.kind for piece in view.segments} == {"term"}


def test_a_term_has_formula_numbers_symbols_and_parts():
    part = TermPart(name="scales", bytes=GIB, formula="P / 64", source="QLoRA")
    memory = result(terms=(term("weights", 12 * GIB, parts=(part,)),))
    (row,) = memory_view(memory).terms
    assert (row.title, row.amount, seen(row.share_text), row.certainty) == (
        "Weights",
        "12.00",
        "75 %",
        "counted exactly",
    )
    assert (row.formula, row.substituted, row.source) == ("2 × P", "2 × 8", "counted")
    assert (row.symbols[0].name, row.symbols[0].value, row.symbols[0].origin) == ("P", "8", "model")
    assert (row.parts[0].title, seen(row.parts[0].text), row.parts[0].substituted) == (
        "scales",
        "1.00 GiB",
        "8 / 64",
    )
    assert seen(row.range_text) == "12.0 GiB"


def test_a_small_network_has_its_table_in_mib():
    small = result(
        terms=(term("weights", 30 * MIB), term("kv_cache", 2 * MIB), term("buffers", 9)), total_bytes=32 * MIB
    )
    view = memory_view(small)
    assert view.unit == "MiB"
    assert [row.amount for row in view.terms] == ["30.0", "2.0", "< 0.1"]
    assert "30.0 MiB" in view.as_text()
    assert memory_view(result()).unit == "GiB"


def test_an_operator_of_pytorch_is_named_without_its_namespace():
    phase = Phase(name="decode", bytes=16 * GIB, shares=(), explanation="reached in body.1 by aten::threshold_backward")
    memory = result(phases=(phase,))
    assert memory_view(memory).reason.endswith("Reached in body.1 by threshold_backward.")


def test_terms_without_bytes_are_left_out():
    assert [row.name for row in memory_view(result()).terms] == ["weights", "kv_cache", "framework_overhead"]


def test_phases_are_relative_to_the_peak():
    load, decode = memory_view(result()).phases
    assert (load.title, load.is_peak, load.share) == ("Load", False, pytest.approx(13 / 16))
    assert (decode.title, decode.is_peak, seen(decode.text)) == ("Decode", True, "16.0 GiB")


def test_a_memory_result_is_exported_as_text_and_table():
    view = memory_view(on_card(24 * GIB, "fits", notes=("dropout is off",)), "RTX 4090")
    text = seen(view.as_text())
    assert text.startswith("Fits on 1 × RTX 4090")
    assert "Weights                    12.00 GiB   75 %  2 × 8 parameters" in text
    assert text.endswith("- dropout is off")
    header, first, *_ = view.csv_rows()
    assert len(header) == len(first)
    assert first[:3] == ("weights", "12884901888", "12.000000")


@pytest.mark.parametrize(
    ("sizes", "how"), [((3, 5), "bucket 2 5.00 GiB + bucket 1 3.00 GiB"), ((8,), "bucket 1 8.00 GiB")]
)
def test_parts_are_shown_by_name_instead_of_numbered_symbols(sizes, how):
    parts = tuple(TermPart(f"bucket {place}", size * GIB, f"{size}", "a book") for place, size in enumerate(sizes, 1))
    symbols = tuple(
        Symbol(f"B{place}", part.bytes, f"bytes: {part.name}", "library") for place, part in enumerate(parts)
    )
    formula = " + ".join(symbol.name for symbol in symbols)
    listed = term("communication", 8 * GIB, formula=formula, symbols=symbols, parts=parts)
    (row,) = (row for row in memory_view(result(terms=(listed, *result().terms))).terms if row.name == "communication")
    assert (seen(row.how), row.symbols) == (how, ())
    assert [part.title for part in row.parts] == [part.name for part in parts]


def test_a_note_states_the_memory_that_stays_in_ram(catalog: Catalog):
    model = catalog.models.model(LLAMA)
    plain, offloaded = (
        " ".join(memory_view(estimate_memory(model, workload)).notes)
        for workload in (Inference(), Inference(weights="Q4_K_M", gpu_layers=10))
    )
    assert "of RAM" not in plain
    assert "Also needs 3.53" in offloaded
    on_disk = Training(profile="deepspeed", parallel=Parallel(zero=3, offload="nvme"))
    assert "on NVMe" in " ".join(memory_view(estimate_memory(model, on_disk, count=8)).notes)


def test_a_note_states_the_cache_pool_of_vllm(catalog: Catalog):
    card = catalog.hardware.gpu("rtx-4090")
    result = estimate_memory(
        catalog.models.model(LLAMA), Inference(profile="vllm"), card, catalog.hardware.usable_memory(card)
    )
    assert result.cache_pool is not None
    assert f"{result.cache_pool.tokens:,} tokens" in " ".join(memory_view(result, "RTX 4090").notes)


@pytest.mark.parametrize("optimizer", [name for name in OPTIMIZERS if name != "sgd"])
@pytest.mark.parametrize(("model", "method"), [(LLAMA, "full"), (MIXTRAL, "lora")])
def test_the_formula_of_every_optimizers_states_gives_its_bytes(model, method, optimizer):
    (states,) = (
        row for row in rows(model, Training(method=method, optimizer=optimizer)) if row.name == "optimizer_states"
    )
    assert put_in(states) == pytest.approx(states.bytes, abs=1, rel=CLOSE)


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_the_formulas_give_the_bytes_with_expert_parallelism(zero):
    shared = [
        row for row in rows(MIXTRAL, Training(parallel=Parallel(expert=8, zero=zero)), count=8) if "/ N" in row.formula
    ]
    assert shared
    for row in shared:
        assert put_in(row) == pytest.approx(row.bytes, rel=CLOSE), row.title


def term_of(formula, *symbols, parts=(), size=4 * GIB):
    written = tuple(Symbol(name, value, meaning, "model") for name, value, meaning in symbols)
    named = tuple(TermPart(name, held, "", "a book") for name, held in parts)
    return Term(
        name="weights",
        bytes=size,
        formula=formula,
        symbols=written,
        source="a book",
        certainty="exact",
        low_bytes=size,
        high_bytes=size,
        parts=named,
    )


def said(written):
    return seen(formula_in_words(written))


PARAMETERS = ("P", 8_030_261_248, "number of parameters; tied parameters count once")
WIDTH = ("w", 2, "bytes per parameter in BF16")
CARDS = ("N", 8, "GPUs that share this memory, rounded up")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (term_of("P × w", PARAMETERS, WIDTH), "8.03 B parameters × 2 bytes"),
        (term_of("(P × w) / N", PARAMETERS, WIDTH, CARDS), "8.03 B parameters × 2 bytes / 8 GPUs"),
        (
            term_of(
                "((P × w) / N) × f", PARAMETERS, WIDTH, CARDS, ("f", 0.81, "share of the gradients reduced so far")
            ),
            "8.03 B parameters × 2 bytes / 8 GPUs × 81 %",
        ),
        (
            term_of(
                "B × n × c / 8", ("B", 1, "sequences"), ("n", 63_000, "tokens cached"), ("c", 4.5, "bits per element")
            ),
            "1 sequence × 63,000 tokens × 4.5 bits",
        ),
        (
            term_of(
                "(T + 2 × n) × h", ("T", 8192, "tokens: 4 × 2,048"), ("n", 4, "sequences"), ("h", 96, "width of it")
            ),
            "(8,192 tokens + 2 × 4 sequences) × width 96",
        ),
        (
            term_of("p × g", ("p", 512, "pages"), ("g", 2 * MIB, "bytes per page of a group")),
            "512 pages × 2.00 MiB",
        ),
        (
            term_of(
                "G",
                ("G", 512 * MIB, "bytes of the graph, laid out"),
            ),
            "graph, laid out 512 MiB",
        ),
        (
            term_of("sum of n traced allocations", ("n", 148, "allocations alive at the peak")),
            "sum of 148 traced allocations",
        ),
        (term_of("n × k", ("n", 3, "tokens"), ("k", "auto", "copies")), "3 tokens × auto"),
        (term_of("P / (w × N)", PARAMETERS, WIDTH, CARDS), "8.03 B parameters / (2 bytes × 8 GPUs)"),
    ],
)
def test_numbers_and_nouns_replace_symbols(written, words):
    assert said(written) == words


def test_of_many_parts_the_two_largest_are_named():
    parts = (("context (lazy)", GIB), ("slack", 2 * GIB), ("workspace", GIB // 2), ("rest", GIB // 2))
    assert said(term_of("C + W", parts=parts)) == "slack 2.00 GiB + context 1.00 GiB + 2 more"


def test_what_is_freed_before_the_peak_is_subtracted():
    assert (
        said(term_of("A + B − M", parts=(("a", 3 * GIB), ("b", 2 * GIB))))
        == "a 3.00 GiB + b 2.00 GiB − 1.00 GiB already freed"
    )


def test_a_sum_of_sizes_names_the_largest_and_what_is_freed():
    sizes = (("N", GIB, "bytes of norms"), ("C", 3 * GIB, "bytes of checkpoints"), ("M", GIB // 2, "bytes: freed"))
    summed = term_of("N + C − M", *sizes, size=7 * GIB // 2)
    assert said(summed) == "checkpoints 3.00 GiB + norms 1.00 GiB − 512 MiB already freed"


def test_the_view_of_several_cards_says_what_each_needs(catalog):
    plan = Plan(model=ModelChoice(id=LLAMA), workload=Inference(batch=2), gpu="rtx-4090", count=2)
    view = evaluation_view(evaluate(plan, catalog), catalog)
    assert view.answer.startswith("Fits on 2 × GeForce RTX 4090: each needs ")


def test_the_view_of_a_plan_without_a_card_names_fitting_cards(catalog):
    evaluation = evaluate(Plan(model=ModelChoice(id=LLAMA)), catalog)
    smallest = catalog.hardware.gpu(evaluation.smallest_fits[0]).name
    assert smallest in evaluation_view(evaluation, catalog).answer


@pytest.mark.parametrize(
    ("workload", "fact"),
    [
        (
            Inference(context_length=32_768),
            f"1 sequence of 32,768 tokens, 4,096 of them prompt. A prompt of 32,768 tokens would need 23.3{THIN}GiB",
        ),
        (Inference(context_length=32_768, profile="vllm"), "1 sequence of 32,768 tokens, 4,096 of them prompt"),
        (Inference(context_length=32_768, prompt_length=2_048), ""),
        (Inference(), ""),
        (Training(method="lora"), ""),
    ],
)
def test_the_assumed_prompt_of_a_long_context_belongs_to_the_answer(catalog, workload, fact):
    plan = Plan(model=ModelChoice(id=LLAMA), workload=workload, gpu="h100-sxm5-80gb")
    assert evaluation_view(evaluate(plan, catalog), catalog).assumed == fact


def test_a_full_prompt_that_changes_the_verdict_is_said_with_its_verdict(catalog):
    workload = Inference(context_length=32_768)
    plan = Plan(model=ModelChoice(id=LLAMA), workload=workload, gpu="rtx-4090")
    evaluation = evaluate(plan, catalog)
    full = evaluate(plan.evolve(workload=workload.evolve(prompt_length=32_768)), catalog).memory
    assert (evaluation.memory.verdict, full.verdict) == ("fits", "tight")
    assumed = evaluation_view(evaluation, catalog).assumed
    assert assumed.endswith(f"would need {fmt.size(full.total_bytes)} and would fit only tightly")
