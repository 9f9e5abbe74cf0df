import sys


def pytest_configure(config):
    # Waits are real in a few tests; nothing may hang for good.
    config.option.timeout = config.option.timeout or 300
    sys.dont_write_bytecode = True
