"""What a worker does with one split of a plan: reads it, and counts or encodes it. No Beam here."""
