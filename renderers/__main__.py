"""`python -m renderers`: the command line, also where its script is not installed."""

from renderers.cli import main

if __name__ == "__main__":
    main()
