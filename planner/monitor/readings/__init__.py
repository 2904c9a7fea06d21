"""What is measured, as plain values: quantities, cards, samples, faults and events. Nothing here reads anything."""
