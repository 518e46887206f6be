"""Results as JSON, as a Markdown table and as a chart."""
