"""What is seen: core values in, rich renderables out; nothing here reads, writes or knows who asks."""
