"""Real language models in block formats: loading, and perplexity."""
