"""Reports for readers without the application: one structure of sections and blocks, written as Markdown or HTML."""
