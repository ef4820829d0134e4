"""The ops of curation, one file each."""
