"""OpenAI Agents SDK: traces and saved runs."""
