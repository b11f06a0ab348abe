"""Sending a call again, elsewhere, or twice: state machines that are told the time and the dice."""
