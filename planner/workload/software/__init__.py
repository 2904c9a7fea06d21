"""Software that runs workloads, one record per program.

The memory behavior of a program is in `planner/memory/software`, its timing in `planner/performance/software`, its
memory-saving advice in `planner/plan/advice/software`, and its log formats in `planner/memory/logs`. Software support
of a *card* is separate: `planner/hardware/software_support.py`.
"""
