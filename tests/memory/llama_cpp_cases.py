"""Workloads of llama.cpp and what they hold, for tests."""

from small_models import llama

from planner.memory.estimate import fullest_timeline
from planner.models.architecture import Architecture, StateMixer
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

LLAMA_3 = "meta-llama/Llama-3.1-8B"


def filled(model: Architecture, **changes) -> Inference:
    workload = with_defaults(Inference.model_validate({"profile": "llama.cpp"} | changes), model, 1)
    assert isinstance(workload, Inference)
    return workload


def alive(model: Architecture, **changes) -> dict[str, int]:
    snapshot = fullest_timeline(model, filled(model, **changes)).snapshots[1]
    return {term.name: term.bytes for term in snapshot.terms}


def in_ram(model: Architecture, **changes) -> int:
    return fullest_timeline(model, filled(model, **changes)).host_bytes or 0


def state_model(second: bool = False) -> Architecture:
    mixer = StateMixer(name="mamba2", conv_state_elements=30, recurrent_state_elements=70, inner_dim=64)
    model = llama(num_hidden_layers=2)
    group = model.main.groups[0]
    layer = group.layer.evolve(second_mixer=mixer) if second else group.layer.evolve(mixer=mixer)
    return model.evolve(stacks=(model.main.evolve(groups=(group.evolve(layer=layer),)),))
