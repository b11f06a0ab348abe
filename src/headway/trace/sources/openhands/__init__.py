"""OpenHands: conversations of both generations, and logs of its calls."""
