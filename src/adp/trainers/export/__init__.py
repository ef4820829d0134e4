"""Files for trainers: one exporter a file, and the run that writes a store through one."""
