"""Workspaces of quantized and DoRA layers, and steps that train a part."""

from small_models import small_llama

from planner.memory.training.adapters.settings import AdapterSettings
from planner.memory.training.partial import dora_workspace_terms
from planner.memory.weights import dequantized_projection_terms


def test_without_adapted_layers_nothing_is_multiplied_out():
    assert dora_workspace_terms((), 2, 2) == ()
    adapters = AdapterSettings(8, 4, 4, dropout=False, dora=True, converts=True)
    assert not adapters.shares_input(2)
    bare = small_llama()
    stack = bare.main
    group = stack.groups[0]
    tensors = tuple(tensor for tensor in group.layer.tensors if tensor.role != "linear")
    emptied = stack.evolve(groups=(group.evolve(layer=group.layer.evolve(tensors=tensors)),))
    assert dequantized_projection_terms(bare.evolve(stacks=(emptied,)), 2, "a source") == ()
