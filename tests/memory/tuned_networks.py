"""Small networks of every family, and what their training needs, for tests."""

from traced_families import COMMON, FAMILIES

from planner.memory.estimate import estimate_memory
from planner.models.readers.config_json import read_config
from planner.workload.training import Training


def network(name):
    family = FAMILIES[name]
    usual = {"model_type": family.model_type} | ({"num_experts_per_tok": 2} if name == "mixtral" else {})
    return read_config(COMMON | family.sizes | usual, family.model_type)


def needed(architecture, **how):
    return estimate_memory(architecture, Training.model_validate({"micro_batch": 2, "sequence_length": 128} | how))


def kept(result):
    """Return the activations at the end of the forward pass."""
    forward = next(phase for phase in result.phases if phase.name == "forward")
    return sum(share.bytes for share in forward.shares if share.name == "activations")
