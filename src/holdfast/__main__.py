"""`python -m holdfast` is the command `holdfast`."""

from .cli import main

if __name__ == "__main__":
    main()
