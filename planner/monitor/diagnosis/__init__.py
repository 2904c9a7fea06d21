"""What holds a card back: rules with published thresholds over the last minutes of its history."""
