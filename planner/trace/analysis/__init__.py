"""From a recording to answers: facts, the peak, the course over time, and the memory on a card."""
