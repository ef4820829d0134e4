"""Policies: endpoints, models in process, scripts, recorded runs, experts. One file each."""
