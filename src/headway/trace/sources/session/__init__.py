"""What readers of sessions share: a task while it is being read, a conversation."""
