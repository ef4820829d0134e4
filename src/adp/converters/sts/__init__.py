"""Sessions in the Session Trace Simple Format of the Hugging Face Hub."""
