"""OpenTelemetry in all its dialects, and what stores its spans: OTLP, Jaeger, Tempo."""
