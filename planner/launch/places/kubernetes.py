"""Kubernetes: a Deployment for a server, a Job for a training.

**Source**: kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus; labels of NVIDIA's GPU feature discovery are the
names of `nvidia-smi` with hyphens.
"""

from collections.abc import Mapping
from typing import Any, Final

from planner.hardware.gpu import Gpu
from planner.hardware.mig import sliced_card_id
from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace, PlacedJob
from planner.launch.text import Commented, commented_words, config_text, container_script, yaml_text
from planner.units import GIB, ceil_div

_RESOURCES: Final = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu"}
_SLICES: Final = "nvidia.com/mig-"
"""Start of the resources of slices (MIG) with the device plugin's strategy `mixed`; a profile's `+` is a `.` there."""
_PRODUCT: Final = "nvidia.com/gpu.product"
_LABELS: Final = {
    "h100-sxm5-80gb": "NVIDIA-H100-80GB-HBM3",
    "h100-pcie-80gb": "NVIDIA-H100-PCIe",
    "h100-nvl-94gb": "NVIDIA-H100-NVL",
    "h200-sxm-141gb": "NVIDIA-H200",
    "a100-sxm4-80gb": "NVIDIA-A100-SXM4-80GB",
    "a100-sxm4-40gb": "NVIDIA-A100-SXM4-40GB",
    "a100-pcie-80gb": "NVIDIA-A100-80GB-PCIe",
    "a100-pcie-40gb": "NVIDIA-A100-PCIE-40GB",
    "l4": "NVIDIA-L4",
    "l40": "NVIDIA-L40",
    "l40s": "NVIDIA-L40S",
    "a10": "NVIDIA-A10",
    "a10g": "NVIDIA-A10G",
    "a40": "NVIDIA-A40",
    "tesla-t4": "Tesla-T4",
    "rtx-a6000": "NVIDIA-RTX-A6000",
    "rtx-3090": "NVIDIA-GeForce-RTX-3090",
    "rtx-4090": "NVIDIA-GeForce-RTX-4090",
    "rtx-5090": "NVIDIA-GeForce-RTX-5090",
}
_SHARED_MEMORY: Final = "16Gi"
_FOLDER: Final = "/work"
_SETTINGS: Final = "/settings"


def _write(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    name = "plan"
    labels = {"app": name}
    container: dict[str, Any] = {"name": name, "image": Commented(job.image, job.requirement)}
    if job.port is not None:
        container["command"] = [*job.container_start, *job.start[1:]]
        container["args"] = [*commented_words(job), "--host", "0.0.0.0", "--port", str(job.port)]
        container["env"] = [
            {"name": setting.key, "value": Commented(str(setting.value), setting.comment)}
            for setting in job.environment
        ]
        container["ports"] = [{"containerPort": job.port}]
    else:
        copied = (f"cp {_SETTINGS}/* .",) if job.configs else ()  # a volume of settings cannot be written to
        container["command"] = ["bash", "-c", container_script(job, *copied)]
    resource = _resource(facts.gpu)
    host = facts.evaluation.memory.host_bytes
    limits: dict[str, Any] = {resource: Commented(facts.cards_per_node, _meaning(facts.gpu))}
    if host:
        limits["memory"] = Commented(f"{ceil_div(host, GIB) + 16}Gi", "RAM of the plan, and shared memory")
    container["resources"] = {"limits": limits}
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]
    volumes: list[dict[str, Any]] = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": _SHARED_MEMORY}}]
    if job.local_files or job.port is None:
        container["workingDir"] = _FOLDER
        holds = "the weights" if job.local_files else "your script or data, and room for checkpoints"
        mounts.append({"name": "work", "mountPath": _FOLDER})
        claim = {"claimName": Commented("work", f"volume with {holds}; choose yours")}
        volumes.append({"name": "work", "persistentVolumeClaim": claim})
    if job.configs:
        container.setdefault("workingDir", _SETTINGS)  # of a server, which only reads its settings
        mounts.append({"name": "settings", "mountPath": _SETTINGS})
        volumes.append({"name": "settings", "configMap": {"name": name}})
    container["volumeMounts"] = mounts
    pod: dict[str, Any] = {"containers": [container], "volumes": volumes}
    label = _LABELS.get(sliced_card_id(facts.gpu.id) or facts.gpu.id)
    if label is not None:
        pod["nodeSelector"] = {_PRODUCT: Commented(label, facts.gpu.name)}
    pod["tolerations"] = [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}]
    template = {"metadata": {"labels": labels}, "spec": pod}
    if job.port is not None:
        document = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }
    else:
        pod["restartPolicy"] = "Never"
        document = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"backoffLimit": 0, "template": template},
        }
    files = [LaunchFile(name=f"{'deployment' if job.port else 'job'}.yaml", text=yaml_text(document))]
    if job.configs:
        data = {config.name: config_text(config) for config in job.configs}
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        files.append(LaunchFile(name="settings.yaml", text=yaml_text(settings)))
    return tuple(files)


def _resource(gpu: Gpu) -> str:
    """Return the resource of the device plugin that stands for `gpu`, such as `nvidia.com/mig-3g.40gb`."""
    if gpu.mig_slice is not None:
        return f"{_SLICES}{gpu.mig_slice.profile.replace('+', '.')}"
    return _RESOURCES.get(gpu.vendor, "nvidia.com/gpu")


def _meaning(gpu: Gpu) -> str:
    """Return the comment beside the number of `gpu`."""
    if gpu.mig_slice is None:
        return "GPUs of the plan"
    return "slice of the plan, with the strategy `mixed`; with `single` it is called nvidia.com/gpu"


def _read(document: Mapping[str, Any]) -> PlacedJob | None:
    if "apiVersion" not in document:
        return None
    pod = document["spec"]["template"]["spec"] if document["kind"] in ("Deployment", "Job") else document["spec"]
    container = pod["containers"][0]
    words = (*container.get("command", ()), *container.get("args", ()))
    limits = container.get("resources", {}).get("limits", {})
    slice_name = next((name for name in limits if name.startswith(_SLICES)), None)
    cards = next((int(limits[name]) for name in (*_RESOURCES.values(), slice_name) if name in limits), None)
    profile = slice_name.removeprefix(_SLICES) if slice_name else None
    environment = {item["name"]: str(item["value"]) for item in container.get("env", ()) if "value" in item}
    label = pod.get("nodeSelector", {}).get(_PRODUCT)
    if words[:2] == ("bash", "-c"):
        return PlacedJob(script=words[2], environment=environment, cards=cards, card_name=label, profile=profile)
    return PlacedJob(words=words, environment=environment, cards=cards, card_name=label, profile=profile)


KUBERNETES: Final = LaunchPlace(
    "kubernetes", "Kubernetes", "Kubernetes 1.34", _write, _read, card_names=_LABELS, holds_configs=True
)
