"""Fused norms of Unsloth save less than the norms of transformers."""

from small_models import llama
from tuned_networks import kept, needed

from planner.memory.training.adapters.settings import Formats, LayerSettings, norm_saved_bytes
from planner.memory.training.losses import FusedKernels
from planner.models.layers import Norm

FORMATS = {
    "bf16": Formats(2, 2, 2, 2, autocast=False),
    "fp32": Formats(4, 4, 4, 4, autocast=False),
    "amp-bf16": Formats(4, 2, 2, 4, autocast=True),
}


def test_unsloth_fuses_what_transformers_does_step_by_step():
    # Norms keep their input alone, the gate two tensors, adapters nothing of their own inputs.
    common = {"method": "lora", "compute": "amp-bf16", "loss": "full-logits"}
    fused, plain = (needed(llama(), profile=profile, **common) for profile in ("unsloth", "hf"))
    assert kept(fused) < kept(plain)
    norm = Norm(kind="rms", native=False)
    settings = LayerSettings(FORMATS["bf16"], "sdpa", None, FusedKernels(norms=True))
    assert norm_saved_bytes(norm, 64, 2, settings, trained=True) == 2 * 64 + 4
