"""Text and tables about time and money: pace, rent or buy, offers, and recommendations."""
