"""Limits: what a call may use is reserved before it is made and settled after it; no limit is ever passed.

A `Book` holds the truth for all workers. Each worker draws a little of every limit in advance and reserves out of that
in memory (`Ledger`), so that a reservation costs microseconds and yet the workers together never pass a limit.
"""
