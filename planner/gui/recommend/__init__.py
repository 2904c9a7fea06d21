"""Choose for me: every card, number and offer for the plan's job, and three named answers."""
