"""The command: this process becomes the program that the package carries."""
import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "millrace")
    folder = os.environ.get("MILLRACE_PYTHON_LIBRARIES")  # a build folder, as in _library.py
    if folder and os.path.exists(os.path.join(folder, "tools", "millrace")):
        program = os.path.join(folder, "tools", "millrace")
    try:
        os.execv(program, ["millrace"] + sys.argv[1:])
    except OSError as e:
        sys.exit("millrace: cannot start %s: %s; install millrace-loader again" % (program, e.strerror))


if __name__ == "__main__":
    main()
