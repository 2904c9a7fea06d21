import pytest

from planner.errors import RecipeError
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.detect import read_recipe
from planner.workload.recipes.servers import parse_options, read_llama_server, read_vllm_options

READERS = {"vllm": read_vllm_options, "llama.cpp": read_llama_server}


def read(kind, *words):
    reader = ConfigReader(parse_options(words), "a command")
    READERS[kind](reader)
    return reader.finish(kind)


def test_options_are_parsed_by_their_long_names():
    words = ("model", "-tp", "2", "--enforce-eager", "-c=5", "--port", "80", "more", "-ngl", "-1")
    assert parse_options(words) == {
        "": "model", "--tensor-parallel-size": "2", "--enforce-eager": True, "--ctx-size": "5", "--port": "80",
        "--n-gpu-layers": "-1",
    }  # fmt: skip


def test_vllm_counts_its_cards_and_takes_the_cache_of_the_computation():
    recipe = read("vllm", "Qwen/Qwen3-8B", "-tp", "2", "-pp", "2", "--dtype", "float16", "--max-num-seqs", "8")
    assert (recipe.cards, recipe.workload.kv_cache, recipe.workload.batch) == (4, "fp16", 8)


def test_vllm_splits_experts_over_replicas_and_ignores_what_is_not_estimated():
    recipe = read(
        "vllm", "a/b", "-dp", "4", "--enable-expert-parallel", "--limit-mm-per-prompt", '{"image":2}', "--quantization",
        "quark", "--port", "1", "--swap-space", "4",
    )  # fmt: skip
    assert recipe.workload.parallel.expert == 4
    reasons = {entry.key: entry.reason.partition(":")[0] for entry in recipe.ignored}
    assert reasons == {
        "--limit-mm-per-prompt": "not estimated", "--quantization": "not estimated", "--port": "does not change memory",
        "--swap-space": "unknown",
    }  # fmt: skip


def test_experts_of_a_single_replica_are_not_split():
    assert read("vllm", "a/b", "--enable-expert-parallel").workload.parallel.expert == 1


@pytest.mark.parametrize(
    ("words", "context"),
    [(("-c", "8192", "-np", "4"), 2048), (("-c", "8192"), 8192), (("-c", "0"), None), ((), None)],
)
def test_the_context_of_llama_server_is_divided_among_slots(words, context):
    assert read("llama.cpp", "-m", "x-Q8_0.gguf", *words).workload.context_length == context


def test_layers_of_llama_server_are_split_by_whole_numbers():
    recipe = read("llama.cpp", "-m", "a.gguf", "-ts", "20,12", "-ngl", "all", "--no-kv-unified")
    assert (recipe.cards, recipe.workload.parallel.pipeline_layers) == (2, (20, 12))
    reasons = {entry.key: entry.reason for entry in recipe.ignored}
    assert reasons["--n-gpu-layers"] == "all layers, as in a plan that sets no number"
    assert read("llama.cpp", "-m", "a.gguf", "-ts", "0.5,0.5").workload.parallel.pipeline == 2
    assert read("llama.cpp", "-m", "a.gguf", "-ts", "1").cards == 1


def test_a_repository_names_the_model():
    assert read("llama.cpp", "-hf", "ggml-org/Qwen3-8B-GGUF").model == "ggml-org/Qwen3-8B-GGUF"


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (("-ncmoe", "12"), {"n_cpu_moe": 12}),
        (("--cpu-moe",), {"n_cpu_moe": 1000}),
        (("-ot", "exps=CPU"), {"n_cpu_moe": 1000}),
        (("-ot", r".ffn_.*_exps.=CPU"), {"n_cpu_moe": 1000}),
        (("-ot", r"blk\.(0|1|4)\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"), {"cpu_moe_layers": (0, 1, 4)}),
        (("-ot", r"'blk\.([0-2])\.ffn_.*_exps\.=CPU,blk\.9\.ffn_.*_exps=CPU'"), {"cpu_moe_layers": (0, 1, 2, 9)}),
        (("-ot", r"blk\.(3[3-4])\.ffn_.*_exps=CPU"), {"cpu_moe_layers": (33, 34)}),
    ],
)
def test_experts_in_ram_are_read_from_the_patterns_of_llama_cpp(words, settings):
    recipe = read("llama.cpp", "-m", "a.gguf", *words)
    assert not [entry for entry in recipe.ignored if entry.key == "--override-tensor"]
    for name, value in settings.items():
        assert getattr(recipe.workload.engine, name) == value


@pytest.mark.parametrize(
    "pattern",
    [
        "exps=CUDA1",
        "ffn_gate_exps=CPU",  # one of three matrices
        r"ffn_.*=CPU",  # dense layers and routers too
        "nothing=CPU",
        "(exps=CPU",
        "(a+)+exps=CPU",
        ".*a*b*exps=CPU",
        "x" * 9000 + "=CPU",
    ],
)
def test_other_overrides_are_told_as_not_estimated(pattern):
    recipe = read("llama.cpp", "-m", "a.gguf", "-ot", pattern)
    reason = next(entry.reason for entry in recipe.ignored if entry.key == "--override-tensor")
    assert reason.startswith("not estimated: ")
    assert not recipe.workload.engine.keeps_experts_in_ram


def test_ollama_hands_experts_in_ram_on_to_llama_server():
    recipe = read_recipe({"FROM": "a.gguf", "LLAMA_ARG_N_CPU_MOE": "7"}, "a Modelfile", "ollama")
    assert recipe.workload.engine.n_cpu_moe == 7


def test_vllm_drafts_as_its_section_or_its_options_say():
    text = '{"method": "eagle3", "model": "a/head", "num_speculative_tokens": 4, "quantization": "fp8"}'
    recipe = read("vllm", "a/b", "-sc", text)
    own = recipe.workload.speculation
    assert (own.method, own.model, own.tokens) == ("eagle3", "a/head", 4)
    assert [entry.key for entry in recipe.ignored] == ["--speculative-config.quantization"]
    own = read("vllm", "a/b", "--spec-method", "mtp", "--spec-tokens", "2").workload.speculation
    assert (own.method, own.tokens) == ("mtp", 2)


@pytest.mark.parametrize("text", ["[1]", "{", "eagle"])
def test_a_section_that_is_no_object_is_refused(text):
    with pytest.raises(RecipeError, match="must be an object in JSON"):
        read("vllm", "a/b", "--speculative-config", text)


def test_slots_for_adapters_are_read_with_their_layers():
    own = read("vllm", "a/b", "--enable-lora", "--lora-target-modules", "q_proj", "v_proj").workload.adapters
    assert (own.slots, own.rank, own.targets) == (1, 16, ("q_proj", "v_proj"))
    own = read("vllm", "a/b", "--enable-lora", "--max-loras", "4", "--max-lora-rank", "64").workload.adapters
    assert (own.slots, own.rank, own.targets) == (4, 64, "all-linear")
    assert read("llama.cpp", "--lora", "a.gguf,b.gguf").workload.adapters.slots == 2
