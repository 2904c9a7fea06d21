"""Software that runs workloads, one record per program.

The memory behavior of a program is in `planner/memory/software`, its timing in `planner/performance/software`, how it
schedules requests in `planner/serving/software`, its launch files in `planner/launch/software`, its memory-saving
advice in `planner/plan/advice/software`, and its log formats in `planner/memory/logs`. Which software a *GPU* supports
is separate: `planner/hardware/software_support.py`.
"""
