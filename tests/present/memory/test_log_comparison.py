"""Comparison of an estimate with a log, as shown."""

import pytest

from planner.launch.verify import ExpectedAmount, PlanCheck
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import LogReading
from planner.plan.logs.comparison import compare_plan
from planner.plan.logs.figures import FIGURE_UNITS, FigureComparison
from planner.plan.logs.log_amounts import LogComparison, LogComparisonRow
from planner.plan.plan import ModelChoice, Plan
from planner.present.format import THIN
from planner.present.memory.log_comparison import ROW_TITLES, check_views, log_view
from planner.units import GIB, MIB

PLAN = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="l40s")


READING = LogReading(formats=("nvidia-smi",), measured=())


def view_of(*rows, reading=READING):
    return log_view(LogComparison(reading=reading, rows=rows))


def row(name, predicted, actual, **more):
    exact = {"low_bytes": actual, "high_bytes": actual}
    return LogComparisonRow(name=name, predicted_bytes=predicted, actual_bytes=actual, **{**exact, **more})


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([row("process", 10 * GIB, 11 * GIB)], "The run used 10 % more memory than estimated (whole process): "),
        ([row("sum", 10 * GIB, 9 * GIB)], "The run used 10 % less memory than estimated: "),
        ([row("process", 10 * GIB, 10 * GIB)], "The estimate agrees with the log (whole process): "),
        ([row("allocated", 10 * GIB, 11 * GIB, low_bytes=9 * GIB, high_bytes=12 * GIB)], "The estimate agrees"),
        ([row("card", None, GIB)], "The log has no total that can be compared with the estimate."),
        ([row("capacity", GIB, GIB)], "The log has no total that can be compared with the estimate."),
    ],
)
def test_the_sentence_compares_the_most_comprehensive_amount(rows, sentence):
    assert view_of(*rows).sentence.replace(THIN, " ").startswith(sentence)


def test_lower_bounds_are_marked():
    shown = view_of(row("process", 10 * GIB, 11 * GIB, at_least=True, lines=(3, 4)))
    assert shown.rows[0].actual.startswith("≥ ")
    assert "measured at least 11" in shown.sentence
    assert "lines 3 and 4 of the log" in shown.rows[0].exact


def test_every_row_has_a_reason_or_states_that_none_is_known():
    shown = view_of(row("allocated", GIB, 2 * GIB), row("card", None, GIB, explanation="Others."), row("host", 0, MIB))
    assert [found.why for found in shown.rows] == [
        "The cause of this difference is unknown.",
        "Others.",
        "The cause of this difference is unknown.",
    ]
    assert [found.difference.replace(THIN, " ") for found in shown.rows] == ["+100 %", "", "+1.00 MiB"]
    assert shown.rows[1].predicted == "not estimated"


def test_a_comparison_is_exported_as_text_and_rows(catalog):
    text = "INFO Initializing a V1 LLM engine (v0.8.5) with config: model='meta/L', \nModel loading took 14.9889 GiB"
    shown = log_view(compare_plan(PLAN, catalog, read_log(text)))
    printed = shown.as_text()
    assert "version 0.8.5, meta/L; 1 amount" in shown.subject
    assert "Weights" in printed
    assert "- The log is from vLLM" in printed
    assert shown.csv_rows()[0]["actual"] == round(14.9889 * GIB)


def test_every_row_has_a_title():
    assert set(ROW_TITLES) == set(LogComparisonRow.model_fields["name"].annotation.__args__)


def figure(name, predicted, actual, **more):
    measured = {"name": name, "value": actual, "low": actual, "high": actual, "line": 7, "text": ""}
    conditions = {key: more.pop(key) for key in tuple(more) if key.endswith("_tokens") or key == "requests"}
    return FigureComparison(measured={**measured, **conditions}, unit=FIGURE_UNITS[name], predicted=predicted, **more)


def test_speeds_have_their_conditions_and_their_range():
    shown = log_view(
        LogComparison(
            reading=READING,
            rows=(),
            figures=(
                figure("prompt", 100.0, 110.0, predicted_low=90.0, predicted_high=120.0, prompt_tokens=512),
                figure("generation", 10.0, 20.0, predicted_low=9.0, predicted_high=12.0, answer_tokens=1, requests=8),
                figure("output-token", None, 0.25, answer_tokens=5, depth_tokens=1_000, explanation="No time."),
                figure("cache-tokens", 1000.0, 1005.0, predicted_low=1000.0, predicted_high=1000.0),
            ),
        )
    )
    rows = [(row.title, row.predicted, row.actual, row.difference, row.in_range) for row in shown.rows]
    assert [tuple(text.replace(THIN, " ") for text in row) for row in rows] == [
        ("Prompt, 512 tokens", "100 (90.0 – 120) tokens/s", "110 tokens/s", "+10 %", "yes"),
        ("Generation, 1 token, 8 requests", "10.0 (9.00 – 12.0) tokens/s", "20.0 tokens/s", "+100 %", "no"),
        ("Time per output token, 5 tokens after 1,000", "not estimated", "250 ms", "", ""),
        ("KV cache in tokens", "1,000 tokens", "1,005 tokens", "+0.50 %", "within 1 %"),
    ]
    assert shown.sentence == "1 of 3 speeds within the estimated range."
    assert [row.why for row in shown.rows][::2] == ["The measurement is within the estimated range.", "No time."]
    assert shown.rows[0].exact == "measured 110 to 110 tokens/s, line 7 of the log"
    assert shown.csv_rows()[0]["unit"] == "tokens/s"


def test_a_range_is_told_in_the_unit_of_the_estimate():
    estimated = row("process", 10 * GIB, 9 * GIB, predicted_low_bytes=9 * GIB, predicted_high_bytes=12 * GIB)
    (shown,) = view_of(estimated).rows
    assert shown.predicted.replace(THIN, " ") == "10.0 GiB (9.00 – 12.0)"
    assert shown.in_range == "yes"


def test_what_a_command_should_show_has_its_title_range_and_words():
    sizes = {"unit": "bytes", "value": 10 * GIB, "low": 9 * GIB, "high": 12 * GIB}
    expected = (
        ExpectedAmount(name="reserved", prints="reserved_bytes", **sizes),
        ExpectedAmount(name="host", prints="CPU", **{**sizes, "low": None, "high": None}),
        ExpectedAmount(name="step", unit="s", value=0.5, low=0.4, high=0.6, prints="seconds_per_step"),
    )
    (view,) = check_views((PlanCheck(title="Memory", command="run\n", language="shell", expected=expected),))
    assert (view.title, view.command) == ("Memory", "run")
    assert [tuple(text.replace(THIN, " ") for text in row) for row in view.expected] == [
        ("Reserved by PyTorch", "10.0 GiB (9.00 – 12.0)", "reserved_bytes"),
        ("Host memory", "10.0 GiB", "CPU"),
        ("Optimizer step", "500 ms (400 – 600)", "seconds_per_step"),
    ]
