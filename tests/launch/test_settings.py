from planner.launch.places import PLACES
from planner.launch.settings import Job, Setting, settings_from
from planner.workload.recipes.servers import Option
from planner.workload.workload import Inference


def test_a_switch_has_no_value_among_the_words():
    assert Setting("--swa-full", True, "").words == ("--swa-full",)
    assert Setting("--parallel", 4, "").words == ("--parallel", "4")


def test_fields_without_a_value_or_a_name_in_the_program_are_left_out():
    options = (
        Option("--batch", "batch", "integer", "requests"),
        Option("--layers", "gpu_layers", "integer", "layers"),
        Option("--cache", "kv_cache", "word", "cache", {"fp8": "f8"}),
        Option("--type", "compute", "word", "type", {"bf16": "bfloat16"}),
    )
    chosen = list(settings_from(options, Inference(batch=3)))
    assert [(one.key, one.value, one.fields) for one in chosen] == [
        ("--batch", 3, ("batch",)),
        ("--type", "bfloat16", ("compute",)),
    ]


def test_the_settings_of_a_job_are_those_of_its_command_and_its_variables():
    job = Job(("a",), "a", arguments=(Setting("-x", 1, ""),), environment=(Setting("Y", "2", ""),))
    assert [setting.key for setting in job.settings] == ["-x", "Y"]


def test_only_kubernetes_holds_the_files_of_programs_in_its_own():
    assert [place.name for place in PLACES.values() if place.holds_configs] == ["kubernetes"]
