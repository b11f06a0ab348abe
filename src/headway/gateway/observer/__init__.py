"""What watches the gateway from a process beside it: spans to OTLP, figures of whole tasks, a log of calls."""
