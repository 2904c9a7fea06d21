"""The machine itself, as its operating system tells of it: use, processes, cards on the bus, containers."""
