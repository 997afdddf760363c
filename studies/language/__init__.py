"""Real language models in block formats: perplexity, and what loads the models."""
