"""What Hugging Face Transformers can run and train."""

from typing import get_args

from planner.models.architecture import ModelKind
from planner.workload.software.transformers import TRANSFORMERS


def test_the_title_of_training_names_peft() -> None:
    assert TRANSFORMERS.title_for("training") == "Hugging Face Transformers and PEFT"
    assert TRANSFORMERS.title_for("inference") == "Hugging Face Transformers"
    assert TRANSFORMERS.brief_title == "Hugging Face"


def test_every_kind_of_network_runs_and_logs_are_pytorchs() -> None:
    assert TRANSFORMERS.serving is not None
    assert set(TRANSFORMERS.serving.networks) == set(get_args(ModelKind))
    assert TRANSFORMERS.log_format == "pytorch"
