"""Publishing a store on the Hugging Face Hub."""
