"""Any language model behind one function: adapters, the meter of calls, prompts as files, JSON answers."""
