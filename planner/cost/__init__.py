"""What a job costs: offers to rent, ownership, where they break even, and what would move the decision."""
