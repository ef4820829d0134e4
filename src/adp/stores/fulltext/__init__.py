"""Words looked up in the texts of a store, by an index of SQLite's FTS5 that lies beside it."""
