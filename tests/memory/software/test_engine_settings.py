"""The settings that an engine runs with where nobody chose them."""

from small_models import bundled, llama

from planner.memory.software import serving_memory
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


def used(workload: Inference, name: str | None = None):
    filled = with_defaults(workload, llama(), 1)
    assert isinstance(filled, Inference)
    program = serving_memory(filled.profile, llama())
    return program.settings_in_use(llama(), filled, bundled().hardware.gpu(name) if name else None)


def test_vllm_takes_more_at_once_on_a_large_card():
    small, large = (used(Inference(profile="vllm"), name) for name in (None, "h100-sxm5-80gb"))
    assert (small.max_num_seqs, small.max_num_batched_tokens) == (256, 2048)
    assert (large.max_num_seqs, large.max_num_batched_tokens) == (1024, 8192)
    assert (small.version, small.memory_utilization, small.block_size, small.enforce_eager) == ("0.33", 0.92, 16, False)


def test_llama_cpp_has_four_slots_with_one_cache():
    found = used(Inference(profile="llama.cpp", weights="Q4_0", engine={"n_batch": 64}))
    assert (found.slots, found.kv_unified, found.swa_full, found.n_outputs_max) == (4, True, False, 4)
    assert (found.n_batch, found.n_ubatch) == (64, 64)
    assert used(Inference(profile="llama.cpp", weights="Q4_0")).n_batch == 2048


def test_transformers_has_no_settings_of_its_own():
    assert used(Inference()) == Inference().engine
