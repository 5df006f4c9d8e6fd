"""The built-in writer behind the OpenAI-compatible API: it picks whole sentences out of the text, and adds none."""
