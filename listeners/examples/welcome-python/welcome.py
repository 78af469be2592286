"""Completes users when they register: each gets a name to be shown, and the time
at which they were welcomed. See README.md."""

import asyncio
import json
import os
import re
import signal
import sys
from datetime import datetime, timezone

import nats
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

NAME = os.environ.get("WELCOME_NAME", "welcome-python")
MAX_IN_FLIGHT = 2  # events of a stream: times REQUEST_TIMEOUT less than ACK_WAIT
REQUEST_TIMEOUT = 2
ACK_WAIT = 5  # after which the events in flight of a killed process are redelivered
ATTEMPTS = 20  # about five minutes


class Permanent(Exception):
    """An error that another attempt does not fix."""


def say(text):
    print(text, file=sys.stderr, flush=True)


async def main():
    async def on_error(err):
        say(f"the bus: {err}")

    nc = await nats.connect(
        os.environ.get("BELFRY_BUS_URL", "nats://127.0.0.1:4222").split(","),
        name=NAME,
        user=os.environ.get("BELFRY_BUS_USER"),
        password=os.environ.get("BELFRY_BUS_PASSWORD"),
        token=os.environ.get("BELFRY_BUS_TOKEN"),
        inbox_prefix=f"_INBOX_{NAME}".encode(),
        max_reconnect_attempts=-1,
        error_cb=on_error,
    )
    js = nc.jetstream()
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    await asyncio.gather(
        listen(nc, js, stop, "EVENTS", "events.*.Register.*.*", DeliverPolicy.NEW),
        listen(nc, js, stop, "RETRY", f"retry.{NAME}", DeliverPolicy.ALL),  # `belfry dlq retry`
    )
    await nc.drain()


async def listen(nc, js, stop, stream, subject, start):
    """Handles the events of a stream until the process is stopped."""
    await make_consumer(js, stream, subject, start)
    sub = await js.pull_subscribe_bind(consumer=NAME, stream=stream)
    say(f"{NAME} listens to {stream}")
    while not stop.is_set():
        try:
            messages = await sub.fetch(MAX_IN_FLIGHT, timeout=1)
        except (TimeoutError, nats.errors.TimeoutError):
            continue  # there was none
        except nats.errors.Error as err:
            say(f"the bus: {err!r}")
            await asyncio.sleep(1)
            continue
        for m in messages:
            await handle(nc, js, m)
    await sub.unsubscribe()  # nothing waits: all fetched events are handled


async def make_consumer(js, stream, subject, start):
    """Creates the durable consumer of the listener. An existing one is not changed:
    `belfry listener reset` may have set its position."""
    try:
        await js.consumer_info(stream, NAME)
    except NotFoundError:
        await js.add_consumer(
            stream,
            ConsumerConfig(
                durable_name=NAME,
                filter_subject=subject,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=ACK_WAIT,
                deliver_policy=start,
                max_deliver=-1,
            ),
        )


async def handle(nc, js, m):
    """Acknowledges an event once its user is completed, and not before."""
    await m.in_progress()  # a heartbeat: it has waited for the events before it
    attempt = m.metadata.num_delivered
    try:
        await complete(nc, json.loads(m.data))
        await m.ack()
    except Exception as err:
        if isinstance(err, (Permanent, json.JSONDecodeError)) or attempt >= ATTEMPTS:
            await dead_letter(js, m, err)
            return
        delay = min(0.25 * 2 ** min(attempt, 10), 30)
        say(f"attempt {attempt} at event {m.metadata.sequence.stream} failed, the next in {delay} s: {err!r}")
        await m.nak(delay=delay)


async def complete(nc, e):
    """Asks belfry to update a user. The update depends on the event only, and its
    key is the listener's name and the event's id: the event may be redelivered,
    the update takes effect once."""
    fields = {"welcomed": e["time"]}
    if not e["user"].get("displayName"):
        fields["displayName"] = e["user"].get("name") or "Somebody new"
    reply = await nc.request(
        f"store.{e['store']}.update",
        json.dumps({"uuid": e["uuid"], "object": fields}).encode(),
        timeout=REQUEST_TIMEOUT,
        headers={"Idempotency-Key": f"{NAME}.{e['id']}"},
    )
    headers = reply.headers or {}
    status = int(headers.get("Nats-Service-Error-Code") or 0)
    if status in (0, 404):
        return  # done, or the user was deleted
    message = f"belfry replied {status}: {headers.get('Nats-Service-Error')}"
    if status < 500 and status not in (408, 409, 412, 429):
        raise Permanent(message)
    raise RuntimeError(message)


async def dead_letter(js, m, reason):
    """Publishes a dead letter, for `belfry dlq`, and ends the delivery once it is
    stored. The headers of a retried event say where it is in the log."""
    at, received = m.metadata, m.headers or {}
    headers = {
        "Nats-Msg-Id": f"{NAME}.{at.stream}.{at.sequence.stream}.{at.timestamp.timestamp()}",
        "Belfry-Reason": re.sub(r"[^ -~]", " ", str(reason))[:1024],
        "Belfry-Listener": NAME,
        "Belfry-Attempts": str(at.num_delivered),
        "Belfry-Subject": received.get("Belfry-Subject", m.subject),
        "Belfry-Sequence": received.get("Belfry-Sequence", str(at.sequence.stream)),
        "Belfry-Time": datetime.now(timezone.utc).isoformat(),
    }
    if "Belfry-Retries" in received:
        headers["Belfry-Retries"] = received["Belfry-Retries"]
    try:
        await js.publish(f"dead.{NAME}", m.data, headers=headers)
        say(f"event {at.sequence.stream} is with the dead letters: {reason}")
        await m.term()
    except Exception as err:
        say(f"event {at.sequence.stream} can't be put with the dead letters: {err!r}")
        await m.nak(delay=30)


asyncio.run(main())
