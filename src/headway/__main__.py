"""`python -m headway` is the `headway` command."""

from headway.app.cli.entry import main

if __name__ == "__main__":
    main()
