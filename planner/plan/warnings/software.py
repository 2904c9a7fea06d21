"""Cards that the software of a plan leaves behind."""

from collections.abc import Iterable, Iterator

from planner.hardware.software import SoftwareFact, software_of
from planner.plan.evaluate import Evaluation
from planner.plan.warnings.warning import PlanWarning
from planner.workload.workload import Inference


def software_warnings(evaluation: Evaluation, facts: Iterable[SoftwareFact]) -> Iterator[PlanWarning]:
    """Yield that newer PyTorch has no builds for the plan's card; llama.cpp does not need it."""
    gpu, workload = evaluation.gpu, evaluation.workload
    if gpu is None or (isinstance(workload, Inference) and workload.profile == "llama.cpp"):
        return
    pytorch = next(each for each in software_of(gpu, facts) if each.feature == "pytorch")
    if pytorch.newest is not None:
        sentence = f"PyTorch {pytorch.newest} is the newest that is known to run on a {gpu.name}: {pytorch.reason}."
        yield PlanWarning(name="software-ends", sentence=sentence, source=pytorch.source)
