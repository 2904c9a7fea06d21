import yaml
from launched import PLANS, serving

import planner
from planner.launch.launch import launch_settings
from planner.launch.load import load_launch_file

CATALOG = planner.load_catalog()


def service(program, plan):
    return yaml.safe_load(launch_settings(plan, CATALOG, program, "compose").files[0].text)["services"]["plan"]


def test_a_server_has_its_port_and_gpus():
    found = service("vllm", PLANS["served on 2"])
    assert found["entrypoint"] == ["vllm", "serve", "meta-llama/Llama-3.1-8B"]
    device = found["deploy"]["resources"]["reservations"]["devices"][0]
    assert (device["count"], device["capabilities"], found["ports"]) == (2, ["gpu"], ["8000:8000"])


def test_what_the_shell_expands_is_kept_from_compose():
    assert '"$${arguments[@]}"' in service("trl", PLANS["lora"])["entrypoint"][2]


def test_a_file_of_another_hand_is_read(tmp_path):
    file = tmp_path / "compose.yaml"
    file.write_text("services: {a: {image: x, command: [vllm, serve, Qwen/Qwen3-8B, --max-model-len, '2048']}}")
    recipe = load_launch_file(file)
    assert (recipe.model, recipe.workload.context_length, recipe.cards) == ("Qwen/Qwen3-8B", 2048, 1)


def documents(program, plan):
    files = launch_settings(plan, CATALOG, program, "kubernetes").files
    return [yaml.safe_load(file.text) for file in files]


def pod(document):
    return document["spec"]["template"]["spec"]


def test_a_server_is_a_deployment_on_the_plans_card():
    (document,) = documents("vllm", serving("vllm", gpu="h100-sxm5-80gb"))
    assert document["kind"] == "Deployment"
    assert pod(document)["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    assert pod(document)["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 1


def test_a_training_is_a_job_with_its_settings_beside_it():
    job, settings = documents("axolotl", PLANS["qlora"])
    assert (job["kind"], pod(job)["restartPolicy"], settings["kind"]) == ("Job", "Never", "ConfigMap")
    assert yaml.safe_load(settings["data"]["axolotl.yaml"])["adapter"] == "qlora"


def test_weights_in_a_file_come_from_a_volume():
    (document,) = documents("llama-server", PLANS["gguf"])
    assert "work" in {volume["name"] for volume in pod(document)["volumes"]}


def test_ram_is_asked_for_and_a_card_without_a_label_is_named():
    plan = serving("llama.cpp", gpu="rtx-4070", weights="Q4_K_M", gpu_layers=20)
    settings = launch_settings(plan, CATALOG, "llama-server", "kubernetes")
    document = yaml.safe_load(settings.files[0].text)
    assert "memory" in pod(document)["containers"][0]["resources"]["limits"]
    assert "nodeSelector" not in pod(document)
    assert "gpu" in {row.field for row in settings.not_expressed}


def test_a_pod_of_another_hand_is_read(tmp_path):
    file = tmp_path / "pod.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, args: [vllm, serve, Qwen/Qwen3-8B], "
        "env: [{name: A, valueFrom: {}}], resources: {limits: {amd.com/gpu: 1}}}]}\n"
    )
    assert load_launch_file(file).cards == 1


def test_a_slice_of_a_card_is_a_resource_of_its_own_and_read_back(tmp_path):
    plan = serving("vllm", gpu="h100-sxm5-80gb-mig-1g.20gb")
    settings = launch_settings(plan, CATALOG, "vllm", "kubernetes")
    files = settings.files
    document = yaml.safe_load(files[0].text)
    assert "gpu" not in {row.field for row in settings.not_expressed}
    assert pod(document)["containers"][0]["resources"]["limits"] == {"nvidia.com/mig-1g.20gb": 1}
    assert pod(document)["tolerations"][0]["key"] == "nvidia.com/mig-1g.20gb"
    file = tmp_path / files[0].name
    file.write_text(files[0].text)
    recipe = load_launch_file(file)
    assert (recipe.gpu, recipe.cards) == ("h100-sxm5-80gb-mig-1g.20gb", 1)


def test_media_engines_of_a_slice_are_written_with_a_dot():
    (document,) = documents("vllm", serving("vllm", gpu="rtx-pro-6000-blackwell-server-mig-1g.24gb.me"))
    assert "nvidia.com/mig-1g.24gb.me" in pod(document)["containers"][0]["resources"]["limits"]
