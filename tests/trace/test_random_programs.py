"""Small random programs are traced as they really run."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from random_programs import Program, one_thread, peaks_of, programs


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(program=programs())
def test_a_random_program_has_the_traced_peak(tmp_path: Path, program: Program) -> None:
    with one_thread():
        peaks = peaks_of(program.request(tmp_path))
    assert peaks.is_right, f"{peaks} ({peaks.error:+.2%})\n{program.fields}\n{program.source}"
