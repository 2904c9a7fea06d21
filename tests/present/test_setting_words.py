import pytest

from planner.present.plan.settings import adjustments_sentence
from planner.workload.parallel import Parallel
from planner.workload.training import Lora
from planner.workload.workload import Training

WORKLOAD = Training(
    method="lora",
    lora=Lora(targets=("q_proj", "v_proj")),
    gradient_accumulation=1_000,
    parallel=Parallel(zero=1, tensor=2, sequence=True),
)


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ((), ""),
        (("compute",), "Also changed: compute precision to BF16 autocast."),
        (
            ("parallel.zero", "weights"),
            "Also changed: ZeRO stage to Optimizer states (ZeRO-1), weight format to default.",
        ),
        (("parallel.sequence",), "Also changed: sequence parallel to yes."),
        (("gradient_accumulation",), "Also changed: gradient accumulation to 1,000."),
        (
            ("lora.targets", "trainable"),
            "Also changed: target modules to q_proj, v_proj, trainable parameters to every parameter.",
        ),
        (("attention",), "Also changed: attention to SDPA (PyTorch)."),
    ],
)
def test_what_moved_is_said_with_its_new_value(moved, words):
    assert adjustments_sentence(moved, WORKLOAD) == words
