"""Faces: command line, dashboard, reports. Parse, one library call, print."""
