"""Publishing a store: what is uploaded, made as a folder that is complete in itself."""
