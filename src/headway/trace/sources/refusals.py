"""Why a document is no trace that can be explained: one sentence that says what is missing."""

from headway.trace.sources.document import Sample


def why_not(sample: Sample) -> str:
    """The sentence for a document that no importer claims."""
    if sample.shape == "binary":
        return "It is neither JSON nor OTLP protobuf, the forms in which traces are exported."
    keys = sorted({key for value in sample.objects() for key in value})
    if not keys:
        return "It holds no JSON object, so there is nothing in it that could be a span, an event or a message."
    return f"Its JSON has the keys {', '.join(keys[:8])}, which no known trace format has."
