"""The simulated service of the Cost tab: its latencies, its charts, and the search for its hardware."""
