import pytest

from planner.errors import RecipeError
from planner.launch.load import is_launch_file, load_launch_file


def recipe(tmp_path, text, name="run.sh"):
    file = tmp_path / name
    file.write_text(text)
    return load_launch_file(file)


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve Qwen/Qwen3-8B --max-model-len=4096 --enforce-eager",
        "CUDA_VISIBLE_DEVICES=0 nohup /usr/bin/vllm serve Qwen/Qwen3-8B --max-model-len 4096 --enforce-eager &",
        'a=(\n  --max-model-len 4096  # context\n  --enforce-eager )\nexec vllm serve Qwen/Qwen3-8B "${a[@]}"',
        "docker run vllm -v\nbash -c '\ntrue\n:' && vllm serve 'Qwen/Qwen3-8B' --max-model-len 4096 --enforce-eager",
    ],
)
def test_a_server_is_found_behind_what_starts_it(tmp_path, text):
    found = recipe(tmp_path, text)
    assert (found.model, found.workload.context_length, found.workload.engine.enforce_eager) == (
        "Qwen/Qwen3-8B", 4096, True,
    )  # fmt: skip


def test_a_training_is_read_from_the_file_that_the_script_names(tmp_path):
    (tmp_path / "a.yaml").write_text("base_model: Qwen/Qwen3-8B\nadapter: lora\n")
    found = recipe(tmp_path, "axolotl train a.yaml --launcher accelerate -- --num_processes 4")
    assert (found.format, found.cards, found.workload.method) == ("axolotl", 4, "lora")


def test_a_file_elsewhere_is_not_read(tmp_path):
    (tmp_path / "secret.yaml").write_text("base_model: a\n")
    (tmp_path / "in").mkdir()
    with pytest.raises(RecipeError, match="is not in its folder"):
        recipe(tmp_path / "in", "axolotl train ../secret.yaml")


def test_a_modelfile_is_read_alone_and_with_its_server(tmp_path):
    modelfile = "# mine\nFROM ./Llama-3.1-8B-Q8_0.gguf\nPARAMETER num_ctx 2048\nSYSTEM be brief\n"
    alone = recipe(tmp_path, modelfile, "Modelfile")
    assert (alone.workload.weights, alone.workload.context_length) == ("Q8_0", 2048)
    script = "export OLLAMA_NUM_PARALLEL=4\nollama serve &\nollama create mine -f Modelfile\n"
    assert recipe(tmp_path, script).workload.batch == 4


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("run.sh", "echo hello", "starts none of the supported programs"),
        ("run.sh", f"python train.py {'x' * 3_000}\npython 'a\tb.py'", "starts none of the supported programs"),
        ("run.sh", "echo 'hello", "a quotation mark without its pair"),
        ("compose.yaml", "services: {}", "is not a file of Docker Compose"),
        ("compose.yaml", "services: {a: {command: [sleep]}}", "starts none of the supported programs"),
        ("run.sh", "trl sft --config none.yaml", "names the file 'none.yaml'"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, name, text, message):
    with pytest.raises(RecipeError, match=message):
        recipe(tmp_path, text, name)


def test_a_script_in_python_is_traced(tmp_path):
    with pytest.raises(RecipeError) as caught:
        recipe(tmp_path, "cd /data\nCUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 train.py --bf16\n")
    assert caught.value.hint.endswith(
        "gpu-planner trace -- CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 train.py --bf16"
    )


def test_a_missing_script_is_told(tmp_path):
    with pytest.raises(RecipeError, match="cannot be read"):
        load_launch_file(tmp_path / "none.sh")


def test_scripts_and_training_files_are_launch_files(tmp_path):
    names = ("run.sh", "job.sbatch", "Modelfile", "a.yaml")
    assert all(is_launch_file(tmp_path / name) for name in names)
    assert not is_launch_file(tmp_path / "weights.gguf")


def test_a_training_file_in_json_is_read(tmp_path):
    found = recipe(tmp_path, '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4}', "ds.json")
    assert (found.format, found.workload.micro_batch) == ("deepspeed", 4)


JOB = """\
apiVersion: batch/v1
kind: Job
spec: {template: {spec: {containers: [{command: [bash, -c, "axolotl train a.yaml"],
  resources: {limits: {nvidia.com/gpu: 2}}}]}}}
"""


def test_settings_in_a_config_map_are_read(tmp_path):
    (tmp_path / "settings.yaml").write_text('data: {a.yaml: "base_model: Qwen/Qwen3-8B"}')
    found = recipe(tmp_path, JOB, "job.yaml")
    assert (found.model, found.cards) == ("Qwen/Qwen3-8B", 2)


def test_a_config_map_without_the_file_is_told(tmp_path):
    (tmp_path / "settings.yaml").write_text("data: {}")
    with pytest.raises(RecipeError, match=r"names the file 'a\.yaml'"):
        recipe(tmp_path, JOB, "job.yaml")


def test_a_modelfile_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "Modelfile").write_text("#" * 300_000)
    with pytest.raises(RecipeError, match="too large"):
        recipe(tmp_path, "ollama create a -f Modelfile")


def test_a_modelfile_in_a_config_map_is_read(tmp_path):
    (tmp_path / "settings.yaml").write_text('data: {Modelfile: "FROM ./a-Q8_0.gguf"}')
    assert recipe(tmp_path, "ollama create a -f Modelfile").workload.weights == "Q8_0"


@pytest.mark.parametrize("name", ["axolotl.yaml", "type.yml"])
def test_a_training_file_in_yaml_is_no_file_of_a_place(tmp_path, name):
    assert recipe(tmp_path, "type: task\nbase_model: Qwen/Qwen3-8B\n", name).format == "axolotl"


def test_a_modelfile_without_a_model_is_refused(tmp_path):
    file = tmp_path / "Modelfile"
    file.write_text("PARAMETER num_ctx 4096\n")
    with pytest.raises(RecipeError, match="names no model") as refused:
        load_launch_file(file)
    assert "FROM" in refused.value.hint


@pytest.mark.parametrize("words", ["[vllm, serve, Qwen/Qwen3-8B, [a]]", "[vllm, serve, {a: b}]", "[vllm, serve, null]"])
def test_what_is_no_word_of_a_command_is_refused(tmp_path, words):
    text = f"services: {{plan: {{image: vllm/vllm-openai, command: {words}}}}}"
    with pytest.raises(RecipeError, match="is not a file of Docker Compose with one program") as refused:
        recipe(tmp_path, text, "compose.yaml")
    assert refused.value.hint


def test_numbers_among_the_words_of_a_command_are_read_as_words(tmp_path):
    text = "services: {plan: {image: v, command: [vllm, serve, Qwen/Qwen3-8B, --max-model-len, 4096]}}"
    assert recipe(tmp_path, text, "compose.yaml").workload.context_length == 4096
