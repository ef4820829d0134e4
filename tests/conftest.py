"""Settings of all tests."""

import os

from hypothesis import settings

# Every run tries the same examples on a server, so that a red run can be repeated; at home each
# run tries others.
settings.register_profile("server", derandomize=True, deadline=None)
settings.register_profile("home", deadline=None)
settings.load_profile("server" if os.environ.get("CI") else "home")
