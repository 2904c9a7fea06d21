"""Scrapes of exporters, written by hand from their documents, each with the readings that they state, in our units.

**Source**: NVIDIA/dcgm-exporter README and `etc/default-counters.csv`; ROCm/device-metrics-exporter `metricslist.md`;
intel/xpumanager `prometheus_exporter.py`; lablup/all-smi `API.md`; XuehaiPan/nvitop `nvitop_exporter/exporter.py`.
"""

from typing import Final

DCGM_LABELS: Final = (
    'gpu="3",UUID="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52",pci_bus_id="00000000:0A:00.0",device="nvidia3",'
    'modelName="NVIDIA A100-SXM4-80GB",Hostname="dgx-2",DCGM_FI_DRIVER_VERSION="535.129.03"'
)
DCGM: Final = f"""\
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{{{DCGM_LABELS}}} 1410
DCGM_FI_DEV_MEM_CLOCK{{{DCGM_LABELS}}} 1593
DCGM_FI_DEV_MEMORY_TEMP{{{DCGM_LABELS}}} 9223372036854775794
DCGM_FI_DEV_GPU_TEMP{{{DCGM_LABELS}}} 61
DCGM_FI_DEV_POWER_USAGE{{{DCGM_LABELS}}} 312.5
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{DCGM_LABELS}}} 3600000000
DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{{DCGM_LABELS}}} 2
DCGM_FI_DEV_GPU_UTIL{{{DCGM_LABELS}}} 97
DCGM_FI_DEV_MEM_COPY_UTIL{{{DCGM_LABELS}}} 41
DCGM_FI_DEV_ENC_UTIL{{{DCGM_LABELS}}} 2147483634
DCGM_FI_DEV_XID_ERRORS{{{DCGM_LABELS}}} 79
DCGM_FI_DEV_FB_FREE{{{DCGM_LABELS}}} 20480
DCGM_FI_DEV_FB_USED{{{DCGM_LABELS}}} 60416
DCGM_FI_DEV_FB_RESERVED{{{DCGM_LABELS}}} 1024
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{DCGM_LABELS}}} 0.625
DCGM_FI_PROF_DRAM_ACTIVE{{{DCGM_LABELS}}} 140737488355328
DCGM_FI_PROF_PCIE_TX_BYTES{{{DCGM_LABELS}}} 1500000
"""
DCGM_READINGS: Final = {
    "sm_clock_mhz": 1410.0,
    "memory_clock_mhz": 1593.0,
    "memory_temperature_celsius": None,
    "temperature_celsius": 61.0,
    "power_watts": 312.5,
    "energy_joules": 3_600_000.0,
    "pcie_replays": 2.0,
    "utilization_fraction": 0.97,
    "memory_controller_fraction": 0.41,
    "encoder_fraction": None,
    "memory_free_bytes": 21_474_836_480.0,
    "memory_used_bytes": 63_350_767_616.0,
    "memory_reserved_bytes": 1_073_741_824.0,
    "memory_total_bytes": 85_899_345_920.0,
    "tensor_active_fraction": 0.625,
    "dram_active_fraction": None,
    "pcie_transmit_bytes_per_s": 1_500_000.0,
}

AMD_LABELS: Final = (
    'gpu_id="5",serial_number="692251001124",card_model="AMD INSTINCT MI300X OAM",hostname="mi300-1",job_id="812",'
    'job_user="ana",job_partition="long",pod="",namespace="",container="",gpu_partition_id="0"'
)
AMD: Final = f"""\
amd_gpu_gfx_activity{{{AMD_LABELS}}} 88
amd_gpu_umc_activity{{{AMD_LABELS}}} 35
amd_gpu_used_vram{{{AMD_LABELS}}} 131072
amd_gpu_free_vram{{{AMD_LABELS}}} 65536
amd_gpu_total_vram{{{AMD_LABELS}}} 196608
amd_gpu_package_power{{{AMD_LABELS}}} 640
amd_gpu_energy_consumed{{{AMD_LABELS}}} 5000000000
amd_gpu_junction_temperature{{{AMD_LABELS}}} 71
amd_gpu_memory_temperature{{{AMD_LABELS}}} 4294967295
amd_gpu_clock{{{AMD_LABELS},clock_index="0",clock_type="system"}} 2100
amd_gpu_clock{{{AMD_LABELS},clock_index="8",clock_type="memory"}} 1300
amd_gpu_violation_ppt_residency_percentage{{{AMD_LABELS}}} 12
"""
AMD_READINGS: Final = {
    "utilization_fraction": 0.88,
    "memory_controller_fraction": 0.35,
    "memory_used_bytes": 137_438_953_472.0,
    "memory_free_bytes": 68_719_476_736.0,
    "memory_total_bytes": 206_158_430_208.0,
    "power_watts": 640.0,
    "energy_joules": 5_000.0,
    "temperature_celsius": 71.0,
    "memory_temperature_celsius": None,
    "sm_clock_mhz": 2100.0,
    "memory_clock_mhz": 1300.0,
    "power_capped_fraction": 0.12,
}

INTEL_LABELS: Final = (
    'uuid="01000000-0000-0000-0000-0000004d0000",dev_name="Intel(R) Data Center GPU Max 1550",pci_bdf="0000:4d:00.0",'
    'dev_file="card1",vendor="Intel(R) Corporation",pci_dev="0xbd5",node="aurora-7",kube_pod="solver-0",'
    'kube_namespace="hpc"'
)
INTEL: Final = f"""\
xpum_engine_ratio{{{INTEL_LABELS}}} 0.75
xpum_engine_ratio{{{INTEL_LABELS},sub_dev="0"}} 0.5
xpum_engine_group_ratio{{{INTEL_LABELS},type="compute"}} 0.75
xpum_engine_group_ratio{{{INTEL_LABELS},type="media"}} 0.25
xpum_memory_used_bytes{{{INTEL_LABELS}}} 68719476736
xpum_power_watts{{{INTEL_LABELS}}} 420
xpum_energy_joules_total{{{INTEL_LABELS}}} 12345
xpum_temperature_celsius{{{INTEL_LABELS},location="gpu"}} 55
xpum_temperature_celsius{{{INTEL_LABELS},location="mem"}} 49
xpum_frequency_mhz{{{INTEL_LABELS},location="gpu",type="actual"}} 1550
xpum_frequency_mhz{{{INTEL_LABELS},location="gpu",type="request"}} 1600
xpum_eu_active_ratio{{{INTEL_LABELS}}} 0.5
"""
INTEL_READINGS: Final = {
    "utilization_fraction": 0.75,
    "decoder_fraction": 0.25,
    "memory_used_bytes": 68_719_476_736.0,
    "power_watts": 420.0,
    "energy_joules": 12_345.0,
    "temperature_celsius": 55.0,
    "memory_temperature_celsius": 49.0,
    "sm_clock_mhz": 1550.0,
    "sm_active_fraction": 0.5,
}

ALL_SMI_LABELS: Final = 'gpu="NVIDIA H200",instance="node-a",gpu_uuid="GPU-aaaa0000-1",gpu_index="2"'
ALL_SMI: Final = f"""\
all_smi_gpu_utilization{{{ALL_SMI_LABELS}}} 42
all_smi_gpu_memory_used_bytes{{{ALL_SMI_LABELS}}} 4294967296
all_smi_gpu_memory_total_bytes{{{ALL_SMI_LABELS}}} 150754820096
all_smi_gpu_power_consumption_watts{{{ALL_SMI_LABELS}}} 180
all_smi_gpu_power_limit_current_watts{{{ALL_SMI_LABELS}}} 700
all_smi_gpu_temperature_celsius{{{ALL_SMI_LABELS}}} 47
all_smi_gpu_frequency_mhz{{{ALL_SMI_LABELS}}} 1980
"""
ALL_SMI_READINGS: Final = {
    "utilization_fraction": 0.42,
    "memory_used_bytes": 4_294_967_296.0,
    "memory_total_bytes": 150_754_820_096.0,
    "power_watts": 180.0,
    "power_limit_watts": 700.0,
    "temperature_celsius": 47.0,
    "sm_clock_mhz": 1980.0,
}

NVITOP_LABELS: Final = 'hostname="10.1.2.3",index="0",devicename="NVIDIA GeForce RTX 3090",uuid="GPU-bbbb0000-1"'
NVITOP: Final = f"""\
gpu_utilization_Percentage{{{NVITOP_LABELS}}} 64
gpu_memory_utilization_Percentage{{{NVITOP_LABELS}}} 30
gpu_memory_total_MiB{{{NVITOP_LABELS}}} 24576
gpu_memory_used_MiB{{{NVITOP_LABELS}}} 8192
gpu_power_usage_W{{{NVITOP_LABELS}}} 301.5
gpu_power_limit_W{{{NVITOP_LABELS}}} 350
gpu_temperature_C{{{NVITOP_LABELS}}} 66
gpu_fan_speed_Percentage{{{NVITOP_LABELS}}} 58
gpu_clock_sm_MHz{{{NVITOP_LABELS}}} 1695
gpu_pcie_tx_throughput_MiBps{{{NVITOP_LABELS}}} 10
"""
NVITOP_READINGS: Final = {
    "utilization_fraction": 0.64,
    "memory_controller_fraction": 0.3,
    "memory_total_bytes": 25_769_803_776.0,
    "memory_used_bytes": 8_589_934_592.0,
    "power_watts": 301.5,
    "power_limit_watts": 350.0,
    "temperature_celsius": 66.0,
    "fan_fraction": 0.58,
    "sm_clock_mhz": 1695.0,
    "pcie_transmit_bytes_per_s": 10_485_760.0,
}

OURS: Final = """\
gpu_planner_gpu_info{gpu="0",uuid="GPU-cccc0000-1",name="NVIDIA L4",pci_bus_id="00000000:03:00.0",mig_parent=""} 1
gpu_planner_gpu_utilization_ratio{gpu="0",uuid="GPU-cccc0000-1"} 0.5
gpu_planner_gpu_memory_used_bytes{gpu="0",uuid="GPU-cccc0000-1"} 1073741824
gpu_planner_gpu_sm_clock_hertz{gpu="0",uuid="GPU-cccc0000-1"} 2040000000
gpu_planner_gpu_energy_joules_total{gpu="0",uuid="GPU-cccc0000-1"} 99
gpu_planner_gpu_throttled_ratio{gpu="0",uuid="GPU-cccc0000-1",reason="power"} 0.2
gpu_planner_gpu_clock_reason{gpu="0",uuid="GPU-cccc0000-1",reason="power-cap"} 1
gpu_planner_gpu_clock_reason{gpu="0",uuid="GPU-cccc0000-1",reason="idle"} 0
gpu_planner_gpu_clock_reason{gpu="0",uuid="GPU-cccc0000-1",reason="software-thermal"} 1
gpu_planner_gpu_xid_events_total{gpu="0",uuid="GPU-cccc0000-1",xid="31"} 0
gpu_planner_gpu_xid_events_total{gpu="0",uuid="GPU-cccc0000-1",xid="48"} 2
gpu_planner_gpu_info{gpu="0:2",uuid="MIG-dddd",name="NVIDIA L4 MIG 1g",pci_bus_id="",mig_parent="GPU-cccc0000-1"} 1
gpu_planner_gpu_memory_used_bytes{gpu="0:2",uuid="MIG-dddd"} 1048576
"""
OURS_READINGS: Final = {
    "utilization_fraction": 0.5,
    "memory_used_bytes": 1_073_741_824.0,
    "sm_clock_mhz": 2040.0,
    "energy_joules": 99.0,
    "power_capped_fraction": 0.2,
    "clock_reasons": float(0x4 | 0x20),
}
