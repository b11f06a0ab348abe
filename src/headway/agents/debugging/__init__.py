"""The debugging agent: from a bug report to a patch that test runs prove, or to what could not be done."""
