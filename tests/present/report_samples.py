"""A small report with every kind of block, for the tests of its writers."""

from planner.plan.plan import ModelChoice, Plan
from planner.present.format import THIN
from planner.present.report.document import (
    Area,
    Bullets,
    CodeListing,
    Drawing,
    DrawingLabel,
    Polyline,
    Prose,
    Rectangle,
    Report,
    ReportAnswer,
    ReportColumn,
    ReportSection,
    ReportTable,
)

PLAN = Plan(model=ModelChoice(id="a--b </script> --> `x`"))
DRAWING = Drawing(
    100,
    50,
    (
        Rectangle(0, 0.125, 10, 20, "weights"),
        Rectangle(10, 0, 5, 20, "free", 0.5),
        Polyline(((0, 0), (1.5, 2)), "text", 2, is_dashed=True),
        Polyline(((0, 0), (3, 4)), "muted"),
        Area(((0, 0), (1, 1), (2, 0)), "series-1", 0.25),
        DrawingLabel(3, 4, "a < b", "end", is_small=True),
        DrawingLabel(3, 4, "c"),
    ),
    'Parts: "a" & b.',
)
SAMPLE = Report(
    title="Model on 1 × GPU",
    question="Does it fit?",
    answers=(ReportAnswer(f"Fits: 3{THIN}GiB", "on one\ncard", "ok"), ReportAnswer("Rent", "")),
    sections=(
        ReportSection("Memory", (Prose("1. a *b* <c>"), Bullets(("- one", "two | three")), DRAWING)),
        ReportSection(
            "Table",
            (
                ReportTable(
                    (ReportColumn("Part"), ReportColumn("GiB", "right")),
                    (("Weights", "2"), ("", "1"), ("Total", "3")),
                    last_is_total=True,
                ),
                CodeListing("run <it> ``now``\n", "start.sh"),
                CodeListing("bare"),
            ),
        ),
    ),
    made="Made on a day.",
    plan=PLAN,
)
