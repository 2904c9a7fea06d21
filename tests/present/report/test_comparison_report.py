"""The report on two plans."""

from cost_samples import QLORA_ON_4090, TODAY

from planner.present.report.comparison_report import report_on_two_plans
from planner.present.report.document import Drawing, ReportTable


def test_both_plans_are_compared_and_then_told_one_by_one(catalog):
    other = QLORA_ON_4090.evolve(gpu="l40s")
    report = report_on_two_plans(QLORA_ON_4090, other, catalog, TODAY)
    difference, first, second = report.answers
    assert difference.title.startswith("The first plan needs ") or difference.title.startswith("Both need ")
    assert "GPU: GeForce RTX 4090 instead of L40S" in difference.text
    assert first.title == "meta-llama/Llama-3.1-8B on 1 × GeForce RTX 4090"
    assert second.title == "meta-llama/Llama-3.1-8B on 1 × L40S"
    titles = [part.title for part in report.sections]
    assert titles[:3] == ["The two plans", "Memory of both", "Speed and cost of both"]
    assert {"First plan: cost", "Second plan: bill of materials"} <= set(titles)
    assert report.plan == QLORA_ON_4090
    figures = [block for block in report.sections[1].blocks if isinstance(block, Drawing)]
    table = next(block for block in report.sections[2].blocks if isinstance(block, ReportTable))
    assert len(figures) == 2
    assert "Decision" in [row[0] for row in table.rows]


def test_a_plan_that_its_card_cannot_run_has_no_bar(catalog):
    report = report_on_two_plans(QLORA_ON_4090, QLORA_ON_4090.evolve(gpu="tpu-v5e"), catalog, TODAY)
    assert report.answers[0].title == "The memory of the two plans cannot be compared."
    assert sum(isinstance(block, Drawing) for part in report.sections[:3] for block in part.blocks) == 1
