"""What is done with the splits of a plan, by workers and by a stream's watcher. No Beam here."""
