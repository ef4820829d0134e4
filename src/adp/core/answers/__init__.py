"""Answers as texts: what a text answers, when two are the same, and which rule a data set has."""
