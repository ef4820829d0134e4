"""Input files: finding them, opening what is compressed or in an archive, and its limits."""
