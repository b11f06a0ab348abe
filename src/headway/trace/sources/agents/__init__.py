"""Other agents whose sessions fit one file of code each."""
