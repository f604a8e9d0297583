"""Two workers take turns at one job: each round only one is inside, and the tokens rise."""

import threading
import time

import holdfast

client = holdfast.connect("memory://", ttl=5)
seen: list[int] = []


def work(name: str) -> None:
    """Do three rounds of the job, each under the lock."""
    for _ in range(3):
        with client.lock("nightly-report", label=name, timeout=10) as lease:
            seen.append(lease.token)
            print(f"{name} holds {lease.name} with token {lease.token}")
            time.sleep(0.1)


workers = [threading.Thread(target=work, args=(name,)) for name in ("anna", "bert")]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
client.close()

assert seen == sorted(set(seen)), "tokens must rise"
print("Tokens rose, and nobody was inside at the same time.")
