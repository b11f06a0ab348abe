"""The demo: a real agent on a real model through the gateway, and the account of what it took."""
