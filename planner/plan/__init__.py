"""The plan, the catalog it draws on, and its evaluation."""
