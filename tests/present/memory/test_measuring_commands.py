"""Commands that measure a plan, as shown."""

from planner.launch.verify import ExpectedAmount, PlanCheck
from planner.present.format import THIN
from planner.present.memory.measuring_commands import check_views
from planner.units import GIB


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
