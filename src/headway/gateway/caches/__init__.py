"""Answers given again by the gateway: asked before a call is sent, told when it has ended."""
