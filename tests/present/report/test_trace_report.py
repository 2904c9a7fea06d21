"""The report on a trace."""

from cost_samples import TODAY
from recordings import training, two_steps

from planner.present.report.document import Drawing, ReportTable
from planner.present.report.trace_report import report_on_trace
from planner.trace.analysis.trace_result import conclude
from planner.units import MIB


def test_the_peak_is_told_with_what_is_alive_at_it(catalog):
    gpu = catalog.hardware.gpu("rtx-4090")
    result = conclude(two_steps(MIB, training(batch=8)), gpu, catalog.hardware.usable_memory(gpu))
    report = report_on_trace(result, TODAY, gpu.name)
    assert report.answers[0].tone == "ok"
    assert {"What was traced", "Memory", "Over the run", "Alive at the peak", "Allocator"} <= {
        part.title for part in report.sections
    }
    alive = next(part for part in report.sections if part.title == "Alive at the peak").blocks[0]
    assert isinstance(alive, ReportTable)
    assert len(alive.rows) == len(result.peak_moment.alive)
    assert any(isinstance(block, Drawing) for part in report.sections for block in part.blocks)


def test_many_live_tensors_are_summed_up():
    result = conclude(two_steps(MIB, training(batch=8)))
    peak = result.peak_moment
    many = result.evolve(peak_moment=peak.evolve(alive=(peak.alive[0],) * 30))
    alive = next(part for part in report_on_trace(many, TODAY).sections if part.title == "Alive at the peak").blocks[0]
    assert len(alive.rows) == 26
    assert alive.rows[-1][0] == "5 more"
