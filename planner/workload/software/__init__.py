"""The programs that run a workload: one record for each, by which it can be chosen.

What a program does to bytes is `planner/memory/software`, to time `planner/performance/software`; what would help in it
is `planner/plan/advice/software`, and its log lines are read in `planner/memory/logs`. What a *card* can run is another
question: `planner/hardware/software.py`.
"""
