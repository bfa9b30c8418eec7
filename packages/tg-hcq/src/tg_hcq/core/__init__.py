"""What every driver stands on: memory, signals, timelines, queues, programs and graphs. No driver is named here."""
