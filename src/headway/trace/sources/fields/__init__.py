"""What every reader meets: how a time, an error, an id, a number and a message are written by whom."""
