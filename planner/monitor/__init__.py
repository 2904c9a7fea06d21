"""Live monitoring of this machine: its GPUs, its host, and faults that prevent reading them.

Only the sampler (`sampler`), a process of its own, calls the driver (`nvml`). A `Supervisor` keeps the sampler running
and emits two kinds of updates, which are also the lines of a recording (`wire`): an `Inventory` (the driver, its GPUs
and their faults) whenever it changes, and a `Sample` (the readings of one instant). Everything else is derived from
these two, live and in recordings alike: `Latest` (the current state), `EventDetector` (the timeline), `report` (JSON)
and `check_setup` (the setup check). A value is a `Reading`: a number in the unit of its metric (`metrics`), or None
with the `Cause` of its absence.
"""
