"""Look-ups of programs and their settings."""

import pytest
from each_record import for_each
from pydantic import ValidationError

from planner.errors import SpecError
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.software.registry import (
    MEMORY_RESERVING_PROGRAMS,
    SERVERS,
    SOFTWARE,
    TRAINERS,
    field_owner,
    program_behavior,
    program_started_as,
    serving_support,
    setting_names,
    setting_owner,
    settings_for,
    training_support,
)
from planner.workload.software.software import EngineSettings
from planner.workload.software.vllm import VllmSettings
from planner.workload.workload import Inference, Training


def test_programs_are_registered_by_name_and_role():
    assert set(TRAINERS) | set(SERVERS) == set(SOFTWARE)
    assert training_support("megatron").zero_limit == 1
    assert serving_support(None) is serving_support("hf")


@pytest.mark.parametrize("kind", [Training, Inference])
def test_a_program_that_is_not_registered_is_refused(kind):
    with pytest.raises(SpecError, match="profile"):
        kind(profile="nonsense")


def test_settings_and_fields_have_one_owner():
    owner, field = setting_owner("n_ubatch"), field_owner("gpu_layers")
    assert owner is not None
    assert field is not None
    assert owner.name == field.name == "llama.cpp"
    assert setting_owner("nonsense") is None
    assert field_owner("batch") is None
    assert len(set(setting_names())) == len(setting_names())


def test_empty_settings_become_those_of_the_program():
    assert settings_for("vllm", EngineSettings()) == VllmSettings()
    own = LlamaCppSettings(n_ubatch=256)
    assert settings_for("vllm", own) is own


def test_settings_of_two_programs_are_rejected():
    with pytest.raises(ValidationError, match=r"is a setting of .* but .* is a setting of"):
        Inference.model_validate({"engine": {"n_ubatch": 256, "max_num_seqs": 4}})


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


@for_each("name", tuple(SERVERS))
def test_each_server_has_its_bytes_and_its_time(name: str) -> None:
    module = SOFTWARE[name].module
    for folder, behavior in (("memory", "SERVING"), ("performance", "ENGINE")):
        found = program_behavior(f"planner.{folder}.software", module, behavior)
        assert found is not None, f"planner/{folder}/software/{module}.py has no {behavior}"


def test_programs_are_known_by_the_commands_that_start_them() -> None:
    assert program_started_as("ollama") == program_started_as("./llama-server.exe") == "llama.cpp"
    assert program_started_as("vLLM") == "vllm"
    assert program_started_as("bash") is None
    commands = [command for program in SOFTWARE.values() for command in (program.name, *program.started_as)]
    assert len(commands) == len(set(commands))
    assert all(command == command.lower() for command in commands)
