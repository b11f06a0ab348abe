"""What was explained, in the formats of other tools."""
