"""Metrics of exporters as data: which of our quantities each one is, and in which unit.

**Source**: NVIDIA/dcgm-exporter@d5e5f51 `etc/default-counters.csv`, `rendermetrics/render_metrics.go` and
`dcgm_structs.h` (blank values); utkuozdemir/nvidia_gpu_exporter@e656cd8 `docs/METRICS.md`;
ROCm/device-metrics-exporter@afd0fe8 `docs/configuration/metricslist.md`; intel/xpumanager@04ebef9
`prometheus_exporter.py`; lablup/all-smi `API.md` (0.26); XuehaiPan/nvitop@0bcb5e0 `nvitop_exporter/exporter.py`;
prometheus/node_exporter; our own exposition, `planner.monitor.exposition.names`.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from planner.monitor.exposition.names import CARD_SERIES, INFO, XIDS
from planner.units import MIB

MetricUse = Literal["value", "rate", "bit", "xid", "info"]
"""How a metric states a quantity: by its value, that of a counter, its rate, one bit, or in its labels."""

_SCALES: Final[Mapping[str, float]] = {
    "": 1.0,
    "%": 0.01,
    "MiB": float(MIB),
    "MiB/s": float(MIB),
    "Mb/s": 1e6 / 8,
    "KB": 1e3,
    "mJ": 1e-3,
    "µJ": 1e-6,
    "Hz": 1e-6,
    "ns": 1e-9,
}
"""Size of an exporter's unit in the unit of our quantity; of a counter in `ns`, a rate is a share of the time."""


class FleetMetric(NamedTuple):
    """A metric of an exporter: its name, our quantity, its unit (a key of the table above) and how it states it.

    `where` are labels that a series must have. Of two metrics that state the same, the first one counts. `off` marks
    one that the exporter leaves out unless its configuration asks for it.
    """

    name: str
    ours: str
    unit: str = ""
    use: MetricUse = "value"
    where: tuple[tuple[str, str], ...] = ()
    off: bool = False
    bit: int = 0

    @property
    def scale(self) -> float:
        """Return the factor from the exporter's unit to ours."""
        return _SCALES[self.unit]


class Exporter(NamedTuple):
    """An exporter: where its series name the GPU, and its metrics; `alive` are metrics that every GPU has.

    `prefixed` marks an exporter whose names may have a prefix of the site. `add` says how to export what is off.
    """

    key: str
    title: str
    port: int
    metrics: tuple[FleetMetric, ...]
    alive: tuple[str, ...]
    uuid: str = "uuid"
    number: str = "index"
    name: str = "name"
    bus: str = "pci_bus_id"
    mig: tuple[str, ...] = ()
    prefixed: bool = False
    ignored: str = ""
    """Label of series that are of a part of the GPU, such as a tile."""
    add: str = ""


def _off(*metrics: FleetMetric) -> tuple[FleetMetric, ...]:
    return tuple(metric._replace(off=True) for metric in metrics)


_DCGM: Final = Exporter(
    "dcgm",
    "dcgm-exporter",
    9400,
    (
        FleetMetric("DCGM_FI_DEV_GPU_UTIL", "utilization_fraction", "%"),
        FleetMetric("DCGM_FI_DEV_MEM_COPY_UTIL", "memory_controller_fraction", "%"),
        FleetMetric("DCGM_FI_DEV_FB_USED", "memory_used_bytes", "MiB"),
        FleetMetric("DCGM_FI_DEV_FB_FREE", "memory_free_bytes", "MiB"),
        FleetMetric("DCGM_FI_DEV_FB_RESERVED", "memory_reserved_bytes", "MiB"),
        FleetMetric("DCGM_FI_DEV_FB_TOTAL", "memory_total_bytes", "MiB", off=True),
        FleetMetric("DCGM_FI_DEV_POWER_USAGE", "power_watts"),
        FleetMetric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "energy_joules", "mJ"),
        FleetMetric("DCGM_FI_DEV_GPU_TEMP", "temperature_celsius"),
        FleetMetric("DCGM_FI_DEV_MEMORY_TEMP", "memory_temperature_celsius"),
        FleetMetric("DCGM_FI_DEV_SM_CLOCK", "sm_clock_mhz"),
        FleetMetric("DCGM_FI_DEV_MEM_CLOCK", "memory_clock_mhz"),
        FleetMetric("DCGM_FI_DEV_ENC_UTIL", "encoder_fraction", "%"),
        FleetMetric("DCGM_FI_DEV_DEC_UTIL", "decoder_fraction", "%"),
        FleetMetric("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "pcie_replays"),
        FleetMetric("DCGM_FI_DEV_XID_ERRORS", "xid", "", "xid"),
        FleetMetric("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "remapped_corrected"),
        FleetMetric("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "remapped_uncorrected"),
        FleetMetric("DCGM_FI_DEV_ROW_REMAP_FAILURE", "remapping_failed"),
        FleetMetric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "graphics_active_fraction"),
        FleetMetric("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor_active_fraction"),
        FleetMetric("DCGM_FI_PROF_DRAM_ACTIVE", "dram_active_fraction"),
        FleetMetric("DCGM_FI_PROF_PCIE_TX_BYTES", "pcie_transmit_bytes_per_s"),
        FleetMetric("DCGM_FI_PROF_PCIE_RX_BYTES", "pcie_receive_bytes_per_s"),
        *_off(
            FleetMetric("DCGM_FI_PROF_SM_ACTIVE", "sm_active_fraction"),
            FleetMetric("DCGM_FI_PROF_SM_OCCUPANCY", "sm_occupancy_fraction"),
            FleetMetric("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "clock_reasons"),
            FleetMetric("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "clock_reasons"),
            FleetMetric("DCGM_FI_DEV_POWER_MGMT_LIMIT", "power_limit_watts"),
            FleetMetric("DCGM_FI_DEV_MAX_SM_CLOCK", "sm_clock_most_mhz"),
            FleetMetric("DCGM_FI_DEV_POWER_VIOLATION", "power_capped_fraction", "ns", "rate"),
            FleetMetric("DCGM_FI_DEV_THERMAL_VIOLATION", "software_thermal_fraction", "ns", "rate"),
            FleetMetric("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "ecc_corrected"),
            FleetMetric("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "ecc_uncorrected"),
        ),
    ),
    ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
    uuid="UUID",
    number="gpu",
    name="modelName",
    mig=("GPU_I_ID", "GPU_I_PROFILE"),
    add="add a line such as “DCGM_FI_PROF_SM_ACTIVE, gauge, SMs active” to the CSV file of dcgm-exporter's option -f",
)


def _smi(name: str, ours: str, unit: str = "", use: MetricUse = "value") -> FleetMetric:
    return FleetMetric(f"nvidia_smi_{name}", ours, unit, use)


_NVIDIA_GPU_EXPORTER: Final = Exporter(
    "nvidia-gpu-exporter",
    "nvidia_gpu_exporter",
    9835,
    (
        _smi("gpu_info", "info", "", "info"),
        _smi("utilization_gpu_ratio", "utilization_fraction"),
        _smi("utilization_memory_ratio", "memory_controller_fraction"),
        _smi("utilization_encoder_ratio", "encoder_fraction"),
        _smi("utilization_decoder_ratio", "decoder_fraction"),
        _smi("utilization_jpeg_ratio", "jpeg_fraction"),
        _smi("utilization_ofa_ratio", "ofa_fraction"),
        _smi("mig_graphics_activity_ratio", "graphics_active_fraction"),
        _smi("mig_memory_used_bytes", "memory_used_bytes"),
        _smi("mig_memory_free_bytes", "memory_free_bytes"),
        _smi("mig_memory_total_bytes", "memory_total_bytes"),
        _smi("memory_total_bytes", "memory_total_bytes"),
        _smi("memory_used_bytes", "memory_used_bytes"),
        _smi("memory_free_bytes", "memory_free_bytes"),
        _smi("memory_reserved_bytes", "memory_reserved_bytes"),
        _smi("power_draw_watts", "power_watts"),
        _smi("power_draw_instant_watts", "power_watts"),
        _smi("energy_joules_total", "energy_joules"),
        _smi("enforced_power_limit_watts", "power_limit_watts"),
        _smi("power_default_limit_watts", "power_default_watts"),
        _smi("power_min_limit_watts", "power_least_watts"),
        _smi("power_max_limit_watts", "power_most_watts"),
        _smi("temperature_gpu", "temperature_celsius"),
        _smi("temperature_memory", "memory_temperature_celsius"),
        _smi("temperature_gpu_tlimit", "temperature_margin_celsius"),
        _smi("clocks_current_sm_clock_hz", "sm_clock_mhz", "Hz"),
        _smi("clocks_current_memory_clock_hz", "memory_clock_mhz", "Hz"),
        _smi("clocks_max_sm_clock_hz", "sm_clock_most_mhz", "Hz"),
        _smi("clocks_max_memory_clock_hz", "memory_clock_most_mhz", "Hz"),
        _smi("fan_speed_ratio", "fan_fraction"),
        _smi("pstate", "performance_state"),
        _smi("clocks_event_reasons_active", "clock_reasons"),
        _smi("clocks_throttle_reasons_active", "clock_reasons"),
        _smi("clocks_event_reasons_counters_sw_power_cap_seconds", "power_capped_fraction", "", "rate"),
        _smi("clocks_event_reasons_counters_sw_thermal_slowdown_seconds", "software_thermal_fraction", "", "rate"),
        _smi("clocks_event_reasons_counters_hw_thermal_slowdown_seconds", "hardware_thermal_fraction", "", "rate"),
        _smi("pcie_link_gen_current", "pcie_generation"),
        _smi("pcie_link_width_current", "pcie_width"),
        _smi("pcie_link_gen_max", "pcie_generation_most"),
        _smi("pcie_link_width_max", "pcie_width_most"),
        _smi("pcie_throughput_tx_bytes_per_second", "pcie_transmit_bytes_per_s"),
        _smi("pcie_throughput_rx_bytes_per_second", "pcie_receive_bytes_per_s"),
        _smi("ecc_errors_corrected_volatile_total", "ecc_corrected"),
        _smi("ecc_errors_uncorrected_volatile_total", "ecc_uncorrected"),
        _smi("remapped_rows_correctable", "remapped_corrected"),
        _smi("remapped_rows_uncorrectable", "remapped_uncorrected"),
        _smi("remapped_rows_pending", "remapping_pending"),
        _smi("remapped_rows_failure", "remapping_failed"),
        _smi("compute_cap", "compute_capability"),
        _smi("ecc_mode_current", "ecc_enabled"),
        _smi("mig_mode_current", "mig_enabled"),
        _smi("persistence_mode", "persistence_enabled"),
    ),
    ("nvidia_smi_memory_used_bytes", "nvidia_smi_power_draw_watts", "nvidia_smi_utilization_gpu_ratio"),
    mig=("gpu_instance_id",),
)

_AMD: Final = Exporter(
    "amd",
    "AMD device-metrics-exporter",
    5000,
    (
        FleetMetric("gpu_gfx_activity", "utilization_fraction", "%"),
        FleetMetric("gpu_umc_activity", "memory_controller_fraction", "%"),
        FleetMetric("gpu_used_vram", "memory_used_bytes", "MiB"),
        FleetMetric("gpu_free_vram", "memory_free_bytes", "MiB"),
        FleetMetric("gpu_total_vram", "memory_total_bytes", "MiB"),
        FleetMetric("gpu_package_power", "power_watts"),
        FleetMetric("gpu_average_package_power", "power_watts"),
        FleetMetric("gpu_power_usage", "power_watts"),
        FleetMetric("gpu_energy_consumed", "energy_joules", "µJ"),
        FleetMetric("gpu_junction_temperature", "temperature_celsius"),
        FleetMetric("gpu_edge_temperature", "temperature_celsius"),
        FleetMetric("gpu_memory_temperature", "memory_temperature_celsius"),
        FleetMetric("gpu_clock", "sm_clock_mhz", where=(("clock_type", "system"),)),
        FleetMetric("gpu_clock", "memory_clock_mhz", where=(("clock_type", "memory"),)),
        FleetMetric("gpu_violation_ppt_residency_percentage", "power_capped_fraction", "%"),
        FleetMetric("gpu_violation_socket_thermal_residency_percentage", "hardware_thermal_fraction", "%"),
        FleetMetric("gpu_ecc_correct_total", "ecc_corrected"),
        FleetMetric("gpu_ecc_uncorrect_total", "ecc_uncorrected"),
        FleetMetric("pcie_replay_count", "pcie_replays"),
    ),
    ("gpu_used_vram", "gpu_gfx_activity", "gpu_package_power"),
    uuid="gpu_uuid",
    number="gpu_id",
    name="card_model",
    bus="pcie_bus_id",
    prefixed=True,
)

_INTEL: Final = Exporter(
    "intel",
    "Intel XPU Manager",
    29999,
    (
        FleetMetric("xpum_engine_ratio", "utilization_fraction"),
        FleetMetric("xpum_engine_group_ratio", "decoder_fraction", where=(("type", "media"),)),
        FleetMetric("xpum_memory_bandwidth_ratio", "dram_active_fraction"),
        FleetMetric("xpum_memory_used_bytes", "memory_used_bytes"),
        FleetMetric("xpum_power_watts", "power_watts"),
        FleetMetric("xpum_energy_joules_total", "energy_joules"),
        FleetMetric("xpum_energy_joules", "energy_joules"),
        FleetMetric("xpum_temperature_celsius", "temperature_celsius", where=(("location", "gpu"),)),
        FleetMetric("xpum_temperature_celsius", "memory_temperature_celsius", where=(("location", "mem"),)),
        FleetMetric("xpum_frequency_mhz", "sm_clock_mhz", where=(("location", "gpu"), ("type", "actual"))),
        FleetMetric("xpum_eu_active_ratio", "sm_active_fraction"),
    ),
    ("xpum_power_watts", "xpum_engine_ratio", "xpum_memory_used_bytes"),
    number="dev_file",
    name="dev_name",
    bus="pci_bdf",
    ignored="sub_dev",
)


def _all_smi(name: str, ours: str, unit: str = "") -> FleetMetric:
    return FleetMetric(f"all_smi_gpu_{name}", ours, unit)


_ALL_SMI: Final = Exporter(
    "all-smi",
    "all-smi",
    9090,
    (
        _all_smi("utilization", "utilization_fraction", "%"),
        _all_smi("memory_used_bytes", "memory_used_bytes"),
        _all_smi("memory_total_bytes", "memory_total_bytes"),
        _all_smi("power_consumption_watts", "power_watts"),
        _all_smi("power_limit_current_watts", "power_limit_watts"),
        _all_smi("power_limit_max_watts", "power_most_watts"),
        _all_smi("temperature_celsius", "temperature_celsius"),
        _all_smi("frequency_mhz", "sm_clock_mhz"),
        _all_smi("clock_graphics_max_mhz", "sm_clock_most_mhz"),
        _all_smi("clock_memory_max_mhz", "memory_clock_most_mhz"),
        _all_smi("pcie_gen_current", "pcie_generation"),
        _all_smi("pcie_width_current", "pcie_width"),
        _all_smi("performance_state", "performance_state"),
    ),
    ("all_smi_gpu_memory_used_bytes", "all_smi_gpu_utilization"),
    uuid="gpu_uuid",
    number="gpu_index",
    name="gpu",
)

_NVITOP: Final = Exporter(
    "nvitop",
    "nvitop-exporter",
    8000,
    (
        FleetMetric("gpu_utilization_Percentage", "utilization_fraction", "%"),
        FleetMetric("gpu_memory_utilization_Percentage", "memory_controller_fraction", "%"),
        FleetMetric("gpu_encoder_utilization_Percentage", "encoder_fraction", "%"),
        FleetMetric("gpu_decoder_utilization_Percentage", "decoder_fraction", "%"),
        FleetMetric("gpu_memory_total_MiB", "memory_total_bytes", "MiB"),
        FleetMetric("gpu_memory_used_MiB", "memory_used_bytes", "MiB"),
        FleetMetric("gpu_memory_free_MiB", "memory_free_bytes", "MiB"),
        FleetMetric("gpu_clock_sm_MHz", "sm_clock_mhz"),
        FleetMetric("gpu_clock_memory_MHz", "memory_clock_mhz"),
        FleetMetric("gpu_power_usage_W", "power_watts"),
        FleetMetric("gpu_power_limit_W", "power_limit_watts"),
        FleetMetric("gpu_temperature_C", "temperature_celsius"),
        FleetMetric("gpu_fan_speed_Percentage", "fan_fraction", "%"),
        FleetMetric("gpu_pcie_tx_throughput_MiBps", "pcie_transmit_bytes_per_s", "MiB/s"),
        FleetMetric("gpu_pcie_rx_throughput_MiBps", "pcie_receive_bytes_per_s", "MiB/s"),
        FleetMetric("gpu_nvlink_total_tx_throughput_MiBps", "nvlink_transmit_bytes_per_s", "MiB/s"),
        FleetMetric("gpu_nvlink_total_rx_throughput_MiBps", "nvlink_receive_bytes_per_s", "MiB/s"),
    ),
    ("gpu_memory_used_MiB", "gpu_utilization_Percentage"),
    name="devicename",
)

_OURS: Final = Exporter(
    "gpu-planner",
    "gpu-planner monitor --serve",
    9836,
    (
        FleetMetric(INFO.name, "info", "", "info"),
        FleetMetric(XIDS.name, "xid", "", "xid"),
        *(
            FleetMetric(
                series.name,
                series.metric.name,
                "Hz" if series.factor == 1e6 else "",
                "bit" if series.bit else "value",
                series.labels,
                bit=series.bit,
            )
            for series in CARD_SERIES
        ),
    ),
    ("gpu_planner_gpu_memory_used_bytes", "gpu_planner_gpu_power_watts"),
    number="gpu",
)

EXPORTERS: Final = (_DCGM, _NVIDIA_GPU_EXPORTER, _OURS, _AMD, _INTEL, _ALL_SMI, _NVITOP)
"""Every exporter that is known; of a GPU that several of them report, the first one's readings count."""
EXPORTER_BY_KEY: Final = {exporter.key: exporter for exporter in EXPORTERS}
"""Exporters by key."""

HOST_QUERIES: Final[Mapping[str, str]] = {
    "cpu_fraction": '1 - avg by (instance) (rate(node_cpu_seconds_total{{mode=~"idle|iowait"}}[{range}])) * 2',
    "io_wait_fraction": 'avg by (instance) (rate(node_cpu_seconds_total{{mode="iowait"}}[{range}]))',
    "memory_available_bytes": "node_memory_MemAvailable_bytes",
    "memory_used_bytes": "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes",
    "disk_read_bytes_per_s": "sum by (instance) (rate(node_disk_read_bytes_total[{range}]))",
    "disk_write_bytes_per_s": "sum by (instance) (rate(node_disk_written_bytes_total[{range}]))",
    "network_receive_bytes_per_s": (
        'sum by (instance) (rate(node_network_receive_bytes_total{{device!~"lo|veth.*|cali.*"}}[{range}]))'
    ),
    "network_transmit_bytes_per_s": (
        'sum by (instance) (rate(node_network_transmit_bytes_total{{device!~"lo|veth.*|cali.*"}}[{range}]))'
    ),
}
"""What node_exporter says of a host, as PromQL; `{range}` is the length of a rate."""

POD_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "pod": ("exported_pod", "pod", "pod_name", "kube_pod"),
    "namespace": ("exported_namespace", "namespace", "pod_namespace", "kube_namespace"),
    "container": ("exported_container", "container", "container_name", "kube_container"),
    "job": ("hpc_job", "job_id", "exported_job"),
}
"""Labels of the work on a GPU. Where both exist, Prometheus has renamed the exporter's own, which count, to
`exported_…`: the others are of the exporter's pod."""
HOST_LABELS: Final = ("Hostname", "hostname", "exported_hostname", "node", "kubernetes_node", "exported_instance")
"""Labels that name the host of a GPU; without any, it is the address that was scraped."""

NOT_AVAILABLE: Final = frozenset(
    (
        *(140737488355328.0 + code for code in range(4)),
        *(2147483632.0 + code for code in range(4)),
        4294967295.0,
    )
)
"""Values that mean "not available": DCGM's blanks of floating-point and 32-bit fields, and AMD's of 32 bits."""
NOT_AVAILABLE_FROM: Final = 9.2e18
"""Values from here on are the blanks of 64-bit fields, of DCGM (0x7ffffffffffffff0 and more) and of AMD (2⁶⁴ − 1)."""
