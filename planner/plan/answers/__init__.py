"""An answer changes the plan, and what it makes impossible moves along."""
