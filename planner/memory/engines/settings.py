"""The settings that an engine runs with where the workload leaves them open."""

from planner.hardware.gpu import Gpu
from planner.memory.engines import llama_cpp_setup, vllm_setup
from planner.memory.engines.vllm_setup import CardClass
from planner.models.architecture import Architecture
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.software.settings import EngineSettings
from planner.workload.software.vllm import VllmSettings
from planner.workload.workload import Inference


def settings_in_use(architecture: Architecture, workload: Inference, gpu: Gpu | None) -> EngineSettings:
    """Return the settings of `workload` (defaults filled in) with the engine's defaults for `gpu` where it has none."""
    if workload.profile == "vllm":
        of_card = vllm_setup.card_class(gpu) if gpu else CardClass.OTHER
        setup = vllm_setup.setup_of(workload, of_card)
        return VllmSettings(
            version=setup.version,
            max_num_seqs=setup.sequences,
            max_num_batched_tokens=setup.tokens,
            memory_utilization=setup.utilization,
            block_size=setup.page_tokens,
            enforce_eager=not setup.graphs,
        )
    if workload.profile == "llama.cpp":
        found = llama_cpp_setup.setup_of(architecture, workload)
        return LlamaCppSettings(
            n_batch=llama_cpp_setup.settings_of(workload).n_batch or llama_cpp_setup.BATCH,
            n_ubatch=found.tokens,
            slots=found.slots,
            kv_unified=found.unified,
            swa_full=found.swa_full,
            n_outputs_max=found.outputs,
        )
    return workload.engine
