from service_samples import latencies, simulation

from planner.plan.serving.measured import MeasuredComparison, compare_with_run, traffic_of_run
from planner.present.serving.measured import comparison_heading, comparison_verdict, measured_columns
from planner.serving.result import CacheUse
from planner.serving_runs.record import Distribution, MeasuredPercentile, serving_run

CACHE = CacheUse(capacity_tokens=1_000, mean_fraction=0.1, highest_fraction=0.2, preemptions=0, prefix_hit_fraction=0.0)


def compared(first: float = 0.4, program: str = "vllm", found=None, **values) -> MeasuredComparison:
    bucket = MeasuredPercentile(percent=50, value=first, low=first / 2, high=first)
    fields = {
        "engine": "vllm",
        "concurrency": 4,
        "prompt_tokens": Distribution(mean=100),
        "answer_tokens": Distribution(mean=20),
        "first_token": Distribution(mean=first, percentiles=(bucket,)),
        "requests_per_s": 2.0,
    }
    run = serving_run("vllm-bench", {name: value for name, value in (fields | values).items() if value is not None})
    return compare_with_run(run, program, traffic_of_run(run), found or simulation(latencies=(latencies(),)))


def test_the_heading_names_source_and_traffic():
    assert comparison_heading(compared()) == (
        "Measured by a result file of vllm bench serve: 4 clients at once, prompts of 100 tokens, answers of 20."
    )


def test_the_verdict_counts_what_lies_in_the_range():
    assert comparison_verdict(compared()) == "2 of 2 measured latencies lie in the simulated range."
    assert comparison_verdict(compared(1.2)) == "1 of 2 measured latencies lie in the simulated range."
    assert comparison_verdict(compared(first_token=None)) == "The file states no latency that is simulated."


def test_what_may_explain_a_difference_is_told():
    off = simulation(latencies=(latencies(),), cache=CACHE)
    assert "The server was SGLang, and vLLM is simulated." in comparison_verdict(
        compared(9, engine="sglang", found=off)
    )
    assert "The server was mine, and vLLM is simulated." in comparison_verdict(compared(9, engine="mine", found=off))
    told = comparison_verdict(
        compared(9, engine=None, failed_requests=1, preemptions=3, prefix_hit_tokens=50, found=off)
    )
    assert "1 request failed" in told
    assert "preempted 3 requests, the simulation 0" in told
    assert "--shared-prefix" in told
    assert "does not name its program" in told
    waiting = simulation(latencies=(latencies(),), cache=None, saturated=True)
    assert "cannot keep up" in comparison_verdict(compared(9, preemptions=0, found=waiting))


def test_rows_have_both_figures_and_their_difference():
    mean, median, rate = compared(0.2).figures
    figure, measured, simulated, difference, met = measured_columns()
    assert [figure.text(row) for row in (mean, median, rate)] == ["First token, mean", "First token, p50", "requests/s"]
    assert measured.text(mean) == "200\u2009ms"
    assert measured.text(median) == "200\u2009ms (100 – 200)"
    assert simulated.text(mean) == "400\u2009ms (200 – 800)"
    assert (measured.text(rate), simulated.text(rate)) == ("2", "4")
    assert difference.text(rate) == "+100\u2009%"
    assert [met.text(row) for row in (mean, rate)] == ["yes", "–"]
    assert difference.text(compared(0.0).figures[0]) == "–"
