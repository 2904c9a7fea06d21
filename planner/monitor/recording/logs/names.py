"""What other programs call the quantities that are measured here, and in which unit they write them.

**Source** nvidia-smi --help-query-gpu and dmon (captures of drivers 590 to 610 in nvidia_gpu_exporter, MIT), DCGM's
dcgm_fields.cpp (Apache-2.0), nvtop's snapshots, and amd-smi metric --csv.
"""

from typing import Final, NamedTuple

from planner.units import GIB, KB, MB, MIB


class Field(NamedTuple):
    """A quantity by our name, and how much of our unit one is where the log writes no unit of its own."""

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
"""How much of our unit one of theirs is. NVIDIA's tools write MB and MiB for the same, and so do scripts with GB."""

PERCENT: Final = 0.01
"""How much of our unit, a share of one, a percent is."""
_NVIDIA_SMI: Final = {
    "utilization.gpu": Field("utilization_fraction", PERCENT),
    "utilization.memory": Field("memory_controller_fraction", PERCENT),
    "utilization.encoder": Field("encoder_fraction", PERCENT),
    "utilization.decoder": Field("decoder_fraction", PERCENT),
    "utilization.jpeg": Field("jpeg_fraction", PERCENT),
    "utilization.ofa": Field("ofa_fraction", PERCENT),
    "memory.used": Field("memory_used_bytes", MIB),
    "memory.free": Field("memory_free_bytes", MIB),
    "memory.reserved": Field("memory_reserved_bytes", MIB),
    "memory.total": Field("memory_total_bytes", MIB),
    "power.draw": Field("power_watts"),
    "power.draw.instant": Field("power_reported_watts"),
    "power.limit": Field("power_limit_watts"),
    "enforced.power.limit": Field("power_limit_watts"),
    "power.default_limit": Field("power_default_watts"),
    "power.min_limit": Field("power_least_watts"),
    "power.max_limit": Field("power_most_watts"),
    "temperature.gpu": Field("temperature_celsius"),
    "temperature.memory": Field("memory_temperature_celsius"),
    "temperature.gpu.tlimit": Field("temperature_margin_celsius"),
    "clocks.sm": Field("sm_clock_mhz"),
    "clocks.current.sm": Field("sm_clock_mhz"),
    "clocks.mem": Field("memory_clock_mhz"),
    "clocks.current.memory": Field("memory_clock_mhz"),
    "clocks.max.sm": Field("sm_clock_most_mhz"),
    "clocks.max.memory": Field("memory_clock_most_mhz"),
    "fan.speed": Field("fan_fraction", PERCENT),
    "pstate": Field("performance_state"),
    "clocks_event_reasons.active": Field("clock_reasons"),
    "clocks_throttle_reasons.active": Field("clock_reasons"),
    "pcie.link.gen.current": Field("pcie_generation"),
    "pcie.link.gen.gpucurrent": Field("pcie_generation"),
    "pcie.link.width.current": Field("pcie_width"),
    "pcie.link.gen.max": Field("pcie_generation_most"),
    "pcie.link.width.max": Field("pcie_width_most"),
    "ecc.errors.corrected.volatile.total": Field("ecc_corrected"),
    "ecc.errors.uncorrected.volatile.total": Field("ecc_uncorrected"),
    "remapped_rows.correctable": Field("remapped_corrected"),
    "remapped_rows.uncorrectable": Field("remapped_uncorrected"),
}
_DMON: Final = {
    "pwr": Field("power_watts"),
    "gtemp": Field("temperature_celsius"),
    "mtemp": Field("memory_temperature_celsius"),
    "sm": Field("utilization_fraction", PERCENT),
    "mem": Field("memory_controller_fraction", PERCENT),
    "enc": Field("encoder_fraction", PERCENT),
    "dec": Field("decoder_fraction", PERCENT),
    "jpg": Field("jpeg_fraction", PERCENT),
    "ofa": Field("ofa_fraction", PERCENT),
    "mclk": Field("memory_clock_mhz"),
    "pclk": Field("sm_clock_mhz"),
    "fb": Field("memory_used_bytes", MIB),
    "pviol": Field("power_capped_fraction", PERCENT),
    "pci": Field("pcie_replays"),
    "rxpci": Field("pcie_receive_bytes_per_s", MB),
    "txpci": Field("pcie_transmit_bytes_per_s", MB),
}
_DCGM: Final = {
    "gputl": Field("utilization_fraction", PERCENT),
    "mcutl": Field("memory_controller_fraction", PERCENT),
    "ecutl": Field("encoder_fraction", PERCENT),
    "dcutl": Field("decoder_fraction", PERCENT),
    "fbusd": Field("memory_used_bytes", MIB),
    "fbfre": Field("memory_free_bytes", MIB),
    "fbrsv": Field("memory_reserved_bytes", MIB),
    "fbttl": Field("memory_total_bytes", MIB),
    "power": Field("power_watts"),
    "powinst": Field("power_reported_watts"),
    "pmlmt": Field("power_limit_watts"),
    "eplmt": Field("power_limit_watts"),
    "totec": Field("energy_joules", 1e-3),
    "tmptr": Field("temperature_celsius"),
    "mmtmp": Field("memory_temperature_celsius"),
    "smclk": Field("sm_clock_mhz"),
    "mmclk": Field("memory_clock_mhz"),
    "pstat": Field("performance_state"),
    "fansp": Field("fan_fraction", PERCENT),
    "dvcctr": Field("clock_reasons"),
    "pcilg": Field("pcie_generation"),
    "pcilw": Field("pcie_width"),
    "gract": Field("graphics_active_fraction"),
    "smact": Field("sm_active_fraction"),
    "smocc": Field("sm_occupancy_fraction"),
    "tenso": Field("tensor_active_fraction"),
    "drama": Field("dram_active_fraction"),
    "pcitx": Field("pcie_transmit_bytes_per_s"),
    "pcirx": Field("pcie_receive_bytes_per_s"),
    "nvltx": Field("nvlink_transmit_bytes_per_s"),
    "nvlrx": Field("nvlink_receive_bytes_per_s"),
    "esvtl": Field("ecc_corrected"),
    "edvtl": Field("ecc_uncorrected"),
}
# What exporters write into a CSV file, by the field's identifier, each with its short name.
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
AMD_SMI: Final = {
    "gfx_activity": Field("utilization_fraction", PERCENT),
    "umc_activity": Field("memory_controller_fraction", PERCENT),
    "socket_power": Field("power_watts"),
    "gfx_0_clk": Field("sm_clock_mhz"),
    "mem_0_clk": Field("memory_clock_mhz"),
    "edge": Field("temperature_celsius"),
    "hotspot": Field("temperature_celsius"),
    "mem": Field("memory_temperature_celsius"),
}
"""The columns of amd-smi; its `mem` is a temperature, that of dmon is not."""
NVTOP: Final = {
    "gpu_clock": Field("sm_clock_mhz"),
    "mem_clock": Field("memory_clock_mhz"),
    "temp": Field("temperature_celsius"),
    "fan_speed": Field("fan_fraction", PERCENT),
    "power_draw": Field("power_watts"),
    "power_draw_max": Field("power_limit_watts"),
    "gpu_util": Field("utilization_fraction", PERCENT),
    "mem_total": Field("memory_total_bytes"),
    "mem_used": Field("memory_used_bytes"),
    "mem_free": Field("memory_free_bytes"),
    "pcie_link_gen": Field("pcie_generation"),
    "pcie_link_width": Field("pcie_width"),
}
"""The keys of nvtop; its `mem_util` is the share of memory in use, which `mem_used` tells better."""
FIELDS: Final = {
    **AMD_SMI,
    **_DCGM,
    **_DMON,
    **{name: _DCGM[short] for name, short in _DCGM_FIELDS.items()},
    **_NVIDIA_SMI,
}
"""Every name of a column, in small letters and without its unit."""

TIMES: Final = frozenset(
    {"timestamp", "time", "date", "datetime", "elapsed_time", "timestamp_utc", "time_s", "elapsed_s", "epoch", "ts"}
)
CARDS: Final = frozenset(
    {"index", "gpu", "gpu_index", "gpu_id", "id", "device", "device_id", "device_index", "card", "entity", "idx"}
)
UUIDS: Final = frozenset({"uuid", "gpu_uuid"})
PLACES: Final = frozenset({"pci.bus_id", "gpu_bus_id"})
TITLES: Final = frozenset({"name", "gpu_name", "device_name", "modelname", "dvnam"})
PROCESSES: Final = frozenset({"pid", "process_name"})
"""Columns of logs that tell of processes: `nvidia-smi pmon` and `--query-compute-apps`."""
KNOWN: Final = TIMES | CARDS | UUIDS | PLACES | TITLES | FIELDS.keys()
"""Every name that something is made of."""
