"""The report on a recording."""

from cost_samples import TODAY
from recording_kit import CARDS, recording, sample

from planner.monitor.recording.log_import import open_recording
from planner.paths import resources_dir
from planner.present.report.document import Bullets, Drawing, DrawingLabel, Prose, ReportTable
from planner.present.report.recording_report import report_on_recording


def _section(report, title):
    return next((part for part in report.sections if part.title == title), None)


def test_a_run_is_told_with_its_readings_diagnoses_energy_and_events():
    report = report_on_recording(open_recording(resources_dir() / "demo" / "training.gpurec"), TODAY, 0.30)
    longest, energy = report.answers
    assert longest.title.startswith("Longest, for ")
    assert "at $0.30 per kWh" in energy.title
    assert len([block for block in _section(report, "Readings").blocks if isinstance(block, Drawing)]) == 4
    diagnosis = _section(report, "Diagnosis")
    told = [block.text for block in diagnosis.blocks if isinstance(block, Prose)]
    assert any("nput-bound" in text for text in told)
    # The longest spans of each kind, each with the evidence of its own kind.
    assert not any("Too early" in text for text in told)
    assert sum("Limited by compute" in text for text in told) == 1
    assert [text.partition(": ")[2].partition(".")[0] for text in told][-1] == "Not fully used"
    assert any(isinstance(block, ReportTable) for block in diagnosis.blocks)
    assert any(isinstance(block, Bullets) for block in diagnosis.blocks)
    assert _section(report, "Events") is not None
    assert report.plan is None


def test_a_recording_without_samples_says_that_nothing_was_read():
    report = report_on_recording(recording(), TODAY)
    assert [answer.title for answer in report.answers] == ["No GPU reported its energy or power."]
    assert _section(report, "Readings") is None
    assert _section(report, "Diagnosis") is None
    assert _section(report, "Events") is None


def test_a_single_sample_has_no_curves():
    report = report_on_recording(recording(CARDS, sample(0.0)), TODAY)
    assert _section(report, "Readings") is None


def test_curves_begin_with_the_recording_whatever_the_clock_says():
    def readings(begin: float):
        samples = [sample(begin + second, a={"power_watts": 100.0 + second}) for second in range(4)]
        return _section(report_on_recording(recording(CARDS, *samples), TODAY), "Readings")

    (power,) = [block for block in readings(0.0).blocks if isinstance(block, Drawing)]
    assert "100\u2009W" in [shape.text for shape in power.shapes if isinstance(shape, DrawingLabel)]
    assert readings(0.0) == readings(100.0)
