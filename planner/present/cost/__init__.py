"""Time and money as people read them: pace, renting beside owning, offers, and recommendations."""
