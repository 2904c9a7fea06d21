"""The Start page: what a person wants to do, with which model, on which GPU."""
