"""Where tokens go: shards in the formats that trainers read, their manifest, and their check."""
