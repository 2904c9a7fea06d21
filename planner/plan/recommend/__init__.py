"""Which hardware to take for a plan's job: every card, number and offer that will do, ranked, and why."""
