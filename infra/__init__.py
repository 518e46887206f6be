"""Where dmslake runs: the templates for AWS and the embedded AWS. May import anything of ours; nothing imports it."""
