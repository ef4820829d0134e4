"""What writers of session logs are made of: a trajectory as the turns and results of a program."""
