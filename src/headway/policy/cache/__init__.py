"""Answers given again: what is the same question, what is kept and for how long, and who waits for whom."""
