"""Whose turn it is: the order inside a lane, and the shares of lanes and tenants."""
