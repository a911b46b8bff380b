"""All the SQL: one text for two databases."""
