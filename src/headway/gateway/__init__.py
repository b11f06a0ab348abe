"""The live world: one front door between agents and engines."""
