"""Running Python that a model wrote, where it can do no harm.

run.py        starts the program, feeds it, stops it at its limits
command.py    the command line of bubblewrap
driver.py     runs inside: gives up rights, sets limits, runs the code
watch.py      how much memory the processes inside use together
"""
