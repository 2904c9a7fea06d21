"""Settings that are explicitly set."""

from planner.workload.software.settings import EngineSettings
from planner.workload.software.vllm import VllmSettings


def test_only_set_fields_are_explicit() -> None:
    assert EngineSettings().explicit_names() == ()
    assert VllmSettings(max_num_seqs=8, enforce_eager=False).explicit_names() == ("max_num_seqs", "enforce_eager")
