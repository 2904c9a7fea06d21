"""Workspaces of quantized and DoRA layers, and steps that train a part."""

from planner.memory.training.adapters.settings import AdapterSettings
from planner.memory.training.partial import dora_workspace_terms


def test_without_adapted_layers_nothing_is_multiplied_out():
    assert dora_workspace_terms((), 2, 2) == ()
    adapters = AdapterSettings(8, 4, 4, dropout=False, dora=True, converts=True)
    assert not adapters.shares_input(2)
