"""What the machine does right now: its cards and the machine itself, and what goes wrong while asking.

A sampler in a process of its own (`sampler`) alone talks to the driver (`nvml`). A `Supervisor` keeps it running and
tells two kinds of values, which are also the lines of a recording (`wire`): an `Inventory` (the driver, its cards, and
what is wrong) whenever it changes, and a `Sample` (what was read at one time). Everything else is made of these two
alone, live as in a recording: `Latest` (what stands now), `EventDetector` (what happened), `report` (JSON) and
`check_up`. A value is a `Reading`: a number in its metric's unit (`metrics`), or None and the `Cause`.
"""
