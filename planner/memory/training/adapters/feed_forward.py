"""What the feed-forward block of one layer keeps where its projections are frozen, adapted, quantised or fused."""

from planner.memory.training.adapters.mixers import Kept, mixer_is_tuned
from planner.memory.training.adapters.settings import Read, Recipe, read_bytes
from planner.memory.training.adapters.sites import LayerTuning, Sites, Uses, sites_of, uses
from planner.memory.training.autograd.feed_forward import KEPT_BY_ACTIVATION, STATISTIC, keeps_result
from planner.models.architecture import Activation, Layer, Mlp, Moe


def forward_kept(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning, sites: Sites) -> Kept:
    """Return what the feed-forward block keeps, and what the adapter of its last projection reads."""
    block = layer.feed_forward
    if block is None:
        return Kept(0)
    if isinstance(block, Mlp):
        into, out = uses(tuning, sites.forward_in), uses(tuning, sites.forward_out)
        reached = tuning.reached or into.trained + into.adapted > 0
        reached = reached or (not layer.parallel and mixer_is_tuned(tuning, sites)) or "trained" in tuning.statuses
        dropped = block.dropout > 0
        return _dense(block.intermediate, block.gated, block.activation, recipe, out, reached=reached, dropped=dropped)
    shared = Kept(0)
    if block.shared_intermediate:
        used = uses(tuning, sites.forward_out)
        shared = _dense(block.shared_intermediate, True, block.activation, recipe, used)
        gate = recipe.formats.computed * hidden if block.shared_gate else 0
        shared = Kept(shared.total + gate, shared.adapters)
    routed = _experts(block, hidden, recipe, uses(tuning, sites.experts))
    return Kept(routed + _router(block, hidden, recipe, uses(tuning, sites.router)) + shared.total, shared.adapters)


def _dense(
    width: int,
    gated: bool,
    activation: Activation,
    recipe: Recipe,
    used: Uses,
    *,
    reached: bool = True,
    dropped: bool = False,
) -> Kept:
    """Count the tensors of the intermediate width: what the activation and the gate keep, and what is read at last."""
    formats = recipe.formats
    kept = KEPT_BY_ACTIVATION[activation]
    own_result = keeps_result(activation, gated=gated)
    tensors = kept.tensors + 1 if gated else kept.tensors - (0 if own_result else 1)
    if gated and recipe.fused.gates:
        tensors = 2
    in_fp32 = kept.fp32 + (1 if gated and kept.fp32 else 0)
    wider = in_fp32 * (4 - formats.computed) if formats.autocast and formats.projected < 4 else 0
    read = read_bytes(recipe, used, formats.projected, is_kept=own_result and reached and not dropped, reached=reached)
    if recipe.fused.adapters and used.adapted:
        read = Read(0, read.copies, read.adapters)
    if not reached:
        tensors = wider = 0
    return Kept(width * (formats.projected * tensors + wider + read.whole + read.copies), width * read.adapters)


def _experts(block: Moe, hidden: int, recipe: Recipe, used: Uses) -> int:
    """Count the experts' input and output; frozen ones keep neither what they read nor what their last product reads.

    The output is kept for the router's weights.
    """
    size = recipe.formats.stream
    kept = KEPT_BY_ACTIVATION[block.activation].tensors + (2 if block.gated else 0)
    if not used.trained:
        return block.visits * size * (hidden + block.intermediate * (kept - 1))
    if not (block.every_expert and recipe.formats.autocast):
        return block.visits * size * (2 * hidden + block.intermediate * kept)
    inner = block.intermediate * kept * recipe.formats.computed
    return block.visits * ((size + recipe.formats.computed) * hidden + inner)


def _router(block: Moe, hidden: int, recipe: Recipe, used: Uses) -> int:
    copied = 4 * hidden if block.fp32_router and recipe.formats.stream < 4 and used.trained else 0
    return copied + STATISTIC * block.experts


def last_read(layer: Layer, hidden: int, recipe: Recipe, tuning: LayerTuning) -> int:
    """Return the bytes per element that the feed-forward block's last projection keeps of what it reads."""
    used = uses(tuning, sites_of(layer, hidden).forward_out)
    return read_bytes(recipe, used, recipe.formats.projected).total
