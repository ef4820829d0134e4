"""Exporters to trainers and training runs."""
