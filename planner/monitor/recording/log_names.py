"""Column names and units of other programs' logs, mapped to our metrics.

**Source** nvidia-smi --help-query-gpu and dmon (captures of drivers 590 to 610 in nvidia_gpu_exporter, MIT), DCGM's
dcgm_fields.cpp (Apache-2.0), nvtop's snapshots, and amd-smi metric --csv.
"""

from typing import Final, NamedTuple

from planner.units import GIB, KB, MB, MIB


class LogField(NamedTuple):
    """Metric of a log column, and the factor to the metric's unit if the log states no unit."""

    metric: str
    per_one: float = 1.0


UNITS: Final = {
    "%": 0.01,
    "mib": float(MIB),
    "mb": float(MIB),
    "gib": float(GIB),
    "gb": float(GIB),
    "b": 1.0,
    "w": 1.0,
    "mw": 1e-3,
    "mj": 1e-3,
    "j": 1.0,
    "mhz": 1.0,
    "c": 1.0,
    "kb/s": float(KB),
    "mb/s": float(MB),
}
"""Factors from units in logs to the metrics' units. NVIDIA's tools and scripts use MB and MiB interchangeably."""

PERCENT: Final = 0.01
"""Factor from percent to a fraction."""
_NVIDIA_SMI: Final = {
    "utilization.gpu": LogField("utilization_fraction", PERCENT),
    "utilization.memory": LogField("memory_controller_fraction", PERCENT),
    "utilization.encoder": LogField("encoder_fraction", PERCENT),
    "utilization.decoder": LogField("decoder_fraction", PERCENT),
    "utilization.jpeg": LogField("jpeg_fraction", PERCENT),
    "utilization.ofa": LogField("ofa_fraction", PERCENT),
    "memory.used": LogField("memory_used_bytes", MIB),
    "memory.free": LogField("memory_free_bytes", MIB),
    "memory.reserved": LogField("memory_reserved_bytes", MIB),
    "memory.total": LogField("memory_total_bytes", MIB),
    "power.draw": LogField("power_watts"),
    "power.draw.instant": LogField("power_reported_watts"),
    "power.limit": LogField("power_limit_watts"),
    "enforced.power.limit": LogField("power_limit_watts"),
    "power.default_limit": LogField("power_default_watts"),
    "power.min_limit": LogField("power_least_watts"),
    "power.max_limit": LogField("power_most_watts"),
    "temperature.gpu": LogField("temperature_celsius"),
    "temperature.memory": LogField("memory_temperature_celsius"),
    "temperature.gpu.tlimit": LogField("temperature_margin_celsius"),
    "clocks.sm": LogField("sm_clock_mhz"),
    "clocks.current.sm": LogField("sm_clock_mhz"),
    "clocks.mem": LogField("memory_clock_mhz"),
    "clocks.current.memory": LogField("memory_clock_mhz"),
    "clocks.max.sm": LogField("sm_clock_most_mhz"),
    "clocks.max.memory": LogField("memory_clock_most_mhz"),
    "fan.speed": LogField("fan_fraction", PERCENT),
    "pstate": LogField("performance_state"),
    "clocks_event_reasons.active": LogField("clock_reasons"),
    "clocks_throttle_reasons.active": LogField("clock_reasons"),
    "pcie.link.gen.current": LogField("pcie_generation"),
    "pcie.link.gen.gpucurrent": LogField("pcie_generation"),
    "pcie.link.width.current": LogField("pcie_width"),
    "pcie.link.gen.max": LogField("pcie_generation_most"),
    "pcie.link.width.max": LogField("pcie_width_most"),
    "ecc.errors.corrected.volatile.total": LogField("ecc_corrected"),
    "ecc.errors.uncorrected.volatile.total": LogField("ecc_uncorrected"),
    "remapped_rows.correctable": LogField("remapped_corrected"),
    "remapped_rows.uncorrectable": LogField("remapped_uncorrected"),
}
_DMON: Final = {
    "pwr": LogField("power_watts"),
    "gtemp": LogField("temperature_celsius"),
    "mtemp": LogField("memory_temperature_celsius"),
    "sm": LogField("utilization_fraction", PERCENT),
    "mem": LogField("memory_controller_fraction", PERCENT),
    "enc": LogField("encoder_fraction", PERCENT),
    "dec": LogField("decoder_fraction", PERCENT),
    "jpg": LogField("jpeg_fraction", PERCENT),
    "ofa": LogField("ofa_fraction", PERCENT),
    "mclk": LogField("memory_clock_mhz"),
    "pclk": LogField("sm_clock_mhz"),
    "fb": LogField("memory_used_bytes", MIB),
    "pviol": LogField("power_capped_fraction", PERCENT),
    "pci": LogField("pcie_replays"),
    "rxpci": LogField("pcie_receive_bytes_per_s", MB),
    "txpci": LogField("pcie_transmit_bytes_per_s", MB),
}
_DCGM: Final = {
    "gputl": LogField("utilization_fraction", PERCENT),
    "mcutl": LogField("memory_controller_fraction", PERCENT),
    "ecutl": LogField("encoder_fraction", PERCENT),
    "dcutl": LogField("decoder_fraction", PERCENT),
    "fbusd": LogField("memory_used_bytes", MIB),
    "fbfre": LogField("memory_free_bytes", MIB),
    "fbrsv": LogField("memory_reserved_bytes", MIB),
    "fbttl": LogField("memory_total_bytes", MIB),
    "power": LogField("power_watts"),
    "powinst": LogField("power_reported_watts"),
    "pmlmt": LogField("power_limit_watts"),
    "eplmt": LogField("power_limit_watts"),
    "totec": LogField("energy_joules", 1e-3),
    "tmptr": LogField("temperature_celsius"),
    "mmtmp": LogField("memory_temperature_celsius"),
    "smclk": LogField("sm_clock_mhz"),
    "mmclk": LogField("memory_clock_mhz"),
    "pstat": LogField("performance_state"),
    "fansp": LogField("fan_fraction", PERCENT),
    "dvcctr": LogField("clock_reasons"),
    "pcilg": LogField("pcie_generation"),
    "pcilw": LogField("pcie_width"),
    "gract": LogField("graphics_active_fraction"),
    "smact": LogField("sm_active_fraction"),
    "smocc": LogField("sm_occupancy_fraction"),
    "tenso": LogField("tensor_active_fraction"),
    "drama": LogField("dram_active_fraction"),
    "pcitx": LogField("pcie_transmit_bytes_per_s"),
    "pcirx": LogField("pcie_receive_bytes_per_s"),
    "nvltx": LogField("nvlink_transmit_bytes_per_s"),
    "nvlrx": LogField("nvlink_receive_bytes_per_s"),
    "esvtl": LogField("ecc_corrected"),
    "edvtl": LogField("ecc_uncorrected"),
}
# Field identifiers that exporters write into CSV files, with their short names.
_DCGM_FIELDS: Final = {
    "dcgm_fi_dev_gpu_util": "gputl",
    "dcgm_fi_dev_mem_copy_util": "mcutl",
    "dcgm_fi_dev_enc_util": "ecutl",
    "dcgm_fi_dev_dec_util": "dcutl",
    "dcgm_fi_dev_fb_used": "fbusd",
    "dcgm_fi_dev_fb_free": "fbfre",
    "dcgm_fi_dev_fb_total": "fbttl",
    "dcgm_fi_dev_power_usage": "power",
    "dcgm_fi_dev_total_energy_consumption": "totec",
    "dcgm_fi_dev_gpu_temp": "tmptr",
    "dcgm_fi_dev_memory_temp": "mmtmp",
    "dcgm_fi_dev_sm_clock": "smclk",
    "dcgm_fi_dev_mem_clock": "mmclk",
    "dcgm_fi_prof_gr_engine_active": "gract",
    "dcgm_fi_prof_sm_active": "smact",
    "dcgm_fi_prof_sm_occupancy": "smocc",
    "dcgm_fi_prof_pipe_tensor_active": "tenso",
    "dcgm_fi_prof_dram_active": "drama",
    "dcgm_fi_prof_pcie_tx_bytes": "pcitx",
    "dcgm_fi_prof_pcie_rx_bytes": "pcirx",
    "dcgm_fi_prof_nvlink_tx_bytes": "nvltx",
    "dcgm_fi_prof_nvlink_rx_bytes": "nvlrx",
}
AMD_SMI_FIELDS: Final = {
    "gfx_activity": LogField("utilization_fraction", PERCENT),
    "umc_activity": LogField("memory_controller_fraction", PERCENT),
    "socket_power": LogField("power_watts"),
    "gfx_0_clk": LogField("sm_clock_mhz"),
    "mem_0_clk": LogField("memory_clock_mhz"),
    "edge": LogField("temperature_celsius"),
    "hotspot": LogField("temperature_celsius"),
    "mem": LogField("memory_temperature_celsius"),
}
"""Columns of amd-smi; its `mem` is a temperature, unlike the `mem` of dmon."""
NVTOP_FIELDS: Final = {
    "gpu_clock": LogField("sm_clock_mhz"),
    "mem_clock": LogField("memory_clock_mhz"),
    "temp": LogField("temperature_celsius"),
    "fan_speed": LogField("fan_fraction", PERCENT),
    "power_draw": LogField("power_watts"),
    "power_draw_max": LogField("power_limit_watts"),
    "gpu_util": LogField("utilization_fraction", PERCENT),
    "mem_total": LogField("memory_total_bytes"),
    "mem_used": LogField("memory_used_bytes"),
    "mem_free": LogField("memory_free_bytes"),
    "pcie_link_gen": LogField("pcie_generation"),
    "pcie_link_width": LogField("pcie_width"),
}
"""Keys of nvtop; its `mem_util` is the fraction of memory used, which `mem_used` states more precisely."""
FIELDS_BY_COLUMN: Final = {
    **AMD_SMI_FIELDS,
    **_DCGM,
    **_DMON,
    **{name: _DCGM[short] for name, short in _DCGM_FIELDS.items()},
    **_NVIDIA_SMI,
}
"""Metric of each recognized column, by column name in lower case without unit."""

TIME_COLUMNS: Final = frozenset(
    {"timestamp", "time", "date", "datetime", "elapsed_time", "timestamp_utc", "time_s", "elapsed_s", "epoch", "ts"}
)
CARD_INDEX_COLUMNS: Final = frozenset(
    {"index", "gpu", "gpu_index", "gpu_id", "id", "device", "device_id", "device_index", "card", "entity", "idx"}
)
UUID_COLUMNS: Final = frozenset({"uuid", "gpu_uuid"})
BUS_ID_COLUMNS: Final = frozenset({"pci.bus_id", "gpu_bus_id"})
CARD_NAME_COLUMNS: Final = frozenset({"name", "gpu_name", "device_name", "modelname", "dvnam"})
PROCESS_LOG_COLUMNS: Final = frozenset({"pid", "process_name"})
"""Columns of logs about processes: `nvidia-smi pmon` and `--query-compute-apps`."""
KNOWN_COLUMNS: Final = (
    TIME_COLUMNS | CARD_INDEX_COLUMNS | UUID_COLUMNS | BUS_ID_COLUMNS | CARD_NAME_COLUMNS | FIELDS_BY_COLUMN.keys()
)
"""Every recognized column name."""
