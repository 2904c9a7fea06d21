"""Setups of vLLM and what they hold, for tests."""

from small_models import llama

from planner.memory.estimate import fullest_timeline
from planner.memory.software.vllm.setup import CardClass, CardSetup, setup_of
from planner.models.architecture import StateMixer
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

LARGE = CardSetup(CardClass.LARGE)


def setup(length=4096, of_card=LARGE, **engine):
    return setup_of(Inference(profile="vllm", context_length=length, engine=engine), of_card)


def alive(model, phase, of_card=LARGE, **changes) -> dict[str, int]:
    filled = with_defaults(Inference(profile="vllm").evolve(**changes), model, 1)
    snapshot = next(m for m in fullest_timeline(model, filled, of_card).snapshots if m.name == phase)
    return {term.name: term.bytes for term in snapshot.terms}


def with_states(layers: int, of_states: int, **state):
    """Return a llama of `layers`, of which the first `of_states` keep a state instead of a cache."""
    mixer = StateMixer(name="gated-delta-net", inner_dim=64, **state)
    model = llama(num_hidden_layers=layers, num_key_value_heads=8)
    group = model.main.groups[0]
    states = group.evolve(layer=group.layer.evolve(mixer=mixer), count=of_states, places=tuple(range(of_states)))
    rest = tuple(range(of_states, layers))
    groups = (states, group.evolve(count=len(rest), places=rest)) if rest else (states,)
    return model.evolve(stacks=(model.main.evolve(groups=groups),))
