"""Hardware command queues: signals, timelines, bound queues, and a queue run by a host thread."""
