"""The *Choose hardware for me* dialog: ranks all cards, card counts and offers for the plan's job."""
