import pytest
from planner.present.settled import moved_sentence

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
        (("compute",), "Also changed: precision to bf16 autocast."),
        (("parallel.zero", "weights"), "Also changed: ZeRO stage to 1, parameters as usual."),
        (("parallel.sequence",), "Also changed: sequence parallel to yes."),
        (("gradient_accumulation",), "Also changed: gradient accumulation to 1,000."),
        (("lora.targets", "trainable"), "Also changed: targets to q_proj v_proj, what is trained as usual."),
        (("attention",), "Also changed: attention to sdpa."),
    ],
)
def test_what_moved_is_said_with_its_new_value(moved, words):
    assert moved_sentence(moved, WORKLOAD) == words
