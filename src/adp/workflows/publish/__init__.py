"""Publishing a store on the Hugging Face Hub: a folder complete in itself, and its upload."""
