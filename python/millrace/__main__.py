"""The command: this process becomes the program that the package carries."""
from ._command import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
