"""The sample database of the AWS walkthrough, in our own SQL."""

from infra.local.sample.scripts import SCRIPTS, run_script, split_statements, statements

__all__ = ["SCRIPTS", "run_script", "split_statements", "statements"]
