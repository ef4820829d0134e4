"""What spans packages."""
