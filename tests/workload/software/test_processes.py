"""Programs that reserve memory, recognized by their command line."""

import pytest

from planner.workload.software.processes import MEMORY_RESERVING_PROGRAMS


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("VLLM::EngineCore", "vLLM"),
        ("sglang::scheduler", "SGLang"),
        ("trtllm-serve model", "TensorRT-LLM"),
        ("python train.py", None),
    ],
)
def test_programs_are_recognized_by_a_part_of_the_command_line(command: str, title: str | None) -> None:
    found = [name for part, name in MEMORY_RESERVING_PROGRAMS.items() if part in command.lower()]
    assert found == ([] if title is None else [title])
