"""How llama.cpp is set up for a workload: slots, cells, micro-batches, and which layers stand on the card.

**Source**: llama.cpp 0.5.0: src/llama-context.cpp (cells in multiples of 256, rows with an output),
src/llama-kv-cache-iswa.cpp (cells of sliding layers), src/llama-model.cpp load_tensors (layers on the card),
tools/server/server.cpp (4 slots with one cache unless told otherwise), common/common.h (batches).
"""

from typing import Final, NamedTuple

from planner.models.architecture import Architecture, Attention, LayerGroup
from planner.units import ceil_div
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.workload import Inference

CELLS: Final = 256
"""Cells of a cache come in multiples of this."""
_SERVER_SLOTS: Final = 4
BATCH: Final = 2_048
_MICRO_BATCH: Final = 512


class Setup(NamedTuple):
    """The choices of llama.cpp; `cells` are those of each of `streams` caches side by side."""

    slots: int
    streams: int
    cells: int
    tokens: int
    outputs: int
    unified: bool
    swa_full: bool
    layers: int
    layers_on_card: int
    output_on_card: bool

    def sliding_cells(self, window: int) -> int:
        """Return the cells of each cache of a layer that looks back `window` tokens.

        **Formula**: pad256(min(cells, window · (slots if they share a cache, else 1) + micro-batch)).
        """
        if self.swa_full:
            return self.cells
        return padded(min(self.cells, window * (self.slots if self.unified else 1) + self.tokens))

    def cells_of(self, mixer: object) -> int:
        """Return the cells of each cache of a layer with `mixer`."""
        window = mixer.window if isinstance(mixer, Attention) else None
        return self.cells if window is None else self.sliding_cells(window)

    def on_card(self, group: LayerGroup) -> int:
        """Return how many layers of `group` stand on the card, which holds the last ones."""
        first = self.layers - self.layers_on_card
        places = group.places or range(group.count)
        return sum(place >= first for place in places)


def padded(cells: int) -> int:
    """Return `cells` rounded up to a multiple of 256."""
    return ceil_div(cells, CELLS) * CELLS


def settings_of(workload: Inference) -> LlamaCppSettings:
    """Return the settings of llama.cpp that `workload` names; all open where it names none."""
    return workload.engine if isinstance(workload.engine, LlamaCppSettings) else LlamaCppSettings()


def setup_of(architecture: Architecture, workload: Inference) -> Setup:
    """Return how llama-server runs `workload` (defaults filled in) with the settings that it names.

    Without `gpu_layers` everything is on the card; else the output is the first layer there, and the last layers
    follow.
    """
    settings = settings_of(workload)
    slots = max(settings.slots or max(_SERVER_SLOTS, workload.batch), workload.batch)
    unified = settings.kv_unified if settings.kv_unified is not None else settings.slots is None
    context = workload.context_length or 1
    cells = padded(workload.batch * context if unified else context)
    streams = 1 if unified else slots
    batch = min(settings.n_batch or BATCH, cells * streams)
    tokens = min(settings.n_ubatch or _MICRO_BATCH, batch)
    layers = architecture.main.layer_count
    asked = layers + 1 if workload.gpu_layers is None else min(workload.gpu_layers, layers + 1)
    return Setup(
        slots=slots,
        streams=streams,
        cells=cells,
        tokens=ceil_div(tokens, slots) * slots,
        outputs=min(max(settings.n_outputs_max or slots, slots), tokens),
        unified=unified,
        swa_full=bool(settings.swa_full),
        layers=layers,
        layers_on_card=max(asked - 1, 0),
        output_on_card=asked > 0,
    )
