"""An hourly job on every machine of the fleet, run by one of them.

    python examples/hourly_job.py

Every machine has the same crontab. Whoever comes first runs the job; the others skip it, also those
whose clock is a little late, because `at_least` keeps the lock taken for a while after a quick run.
"""

import multiprocessing
import os
import tempfile
import time

import holdfast

MACHINES = 4


def cron(folder: str, machine: int) -> None:
    """Do what cron does at the full hour; clocks differ a little."""
    time.sleep(0.05 * machine)
    with holdfast.connect(f"sqlite://{folder}/locks.db") as client:

        @client.singleton("hourly-report", at_least=5)
        def report() -> str:
            descriptor = os.open(f"{folder}/report", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(descriptor, b"one report\n")
            os.close(descriptor)
            return "ran the job"

        result = report()
        print(f"  machine {machine}: {'skipped' if result is holdfast.SKIPPED else result}")


def main() -> None:
    """Let the hour strike on all machines."""
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        print("It is nine:")
        machines = [fork.Process(target=cron, args=(folder, n)) for n in range(MACHINES)]
        for machine in machines:
            machine.start()
        for machine in machines:
            machine.join()
        with open(f"{folder}/report", encoding="utf-8") as file:
            reports = len(file.readlines())
    assert all(machine.exitcode == 0 for machine in machines)
    print(f"  {reports} report")
    assert reports == 1


if __name__ == "__main__":
    main()
