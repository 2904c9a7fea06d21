import pytest

from planner.present.plan.parallel import sharing_summary
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (Training(), "DDP over 8"),
        (Training(parallel=Parallel(zero=3)), "FSDP over 8"),
        (Training(parallel=Parallel(tensor=2, pipeline=4)), "tensor 2, pipeline 4 over 8"),
        (Inference(), "independent replicas"),
        (Inference(parallel=Parallel(tensor=8)), "tensor 8 over 8"),
    ],
)
def test_how_cards_work_together(workload, words):
    assert sharing_summary(workload, 8) == words
