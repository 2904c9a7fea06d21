"""Every change that is one value for another; those that look for a number are in `ladders`.

To add another way to save memory is to add a record to one of these tables.
"""

from typing import Final

from planner.plan.advice.change import Change
from planner.plan.advice.inference_changes import INFERENCE_CHANGES
from planner.plan.advice.pipeline_changes import PIPELINE_CHANGES
from planner.plan.advice.sharing_changes import SHARING_CHANGES
from planner.plan.advice.training_changes import TRAINING_CHANGES

_SDPA: Final = Change(
    name="SDPA attention",
    lever="attention",
    sentence="Attend with PyTorch's fused kernels, which never hold the scores of every pair of tokens.",
    source="PyTorch scaled_dot_product_attention: the same result, without the scores of every pair of tokens",
    settings={"attention": "sdpa"},
    applies={"attention": ("eager", "flash")},
    keeps="the mathematics",
)
CHANGES: Final[tuple[Change, ...]] = (_SDPA, *TRAINING_CHANGES, *SHARING_CHANGES, *INFERENCE_CHANGES, *PIPELINE_CHANGES)
