// Completes users when they register: each gets a name to be shown, and the
// time at which they were welcomed. See README.md.
import { connect, headers, nanos } from "@nats-io/transport-node";
import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";

const env = process.env;
const name = env.WELCOME_NAME ?? "welcome-node";
const consumerNotFound = 10014; // error code of the server
const maxInFlight = 2; // events of a stream: times requestTimeout less than ackWait
const requestTimeout = 2_000;
const ackWait = 5_000; // after which the events in flight of a killed process are redelivered
const attempts = 20; // about five minutes

const nc = await connect({
  name,
  servers: (env.BELFRY_BUS_URL ?? "nats://127.0.0.1:4222").split(","),
  user: env.BELFRY_BUS_USER,
  pass: env.BELFRY_BUS_PASSWORD,
  token: env.BELFRY_BUS_TOKEN,
  inboxPrefix: `_INBOX_${name}`,
  maxReconnectAttempts: -1,
  waitOnFirstConnect: true,
});
const js = jetstream(nc);
const manager = await jetstreamManager(nc, { checkAPI: false }); // a listener has no right to the check
await Promise.all([
  listen("EVENTS", { filter_subjects: ["events.*.Register.*.*"], deliver_policy: DeliverPolicy.New }),
  listen("RETRY", { filter_subject: `retry.${name}`, deliver_policy: DeliverPolicy.All }), // `belfry dlq retry`
]);
await nc.drain();

// listen handles the events of a stream until the process is stopped.
async function listen(stream, selected) {
  await makeConsumer(stream, selected);
  const messages = await (await js.consumers.get(stream, name)).consume({ max_messages: maxInFlight });
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => messages.stop());
  console.error(`${name} listens to ${stream}`);
  for await (const m of messages) await handle(m);
}

// makeConsumer creates the durable consumer of the listener. An existing one is not
// changed: `belfry listener reset` may have set its position.
async function makeConsumer(stream, selected) {
  try {
    await manager.consumers.info(stream, name);
  } catch (err) {
    if (err.code !== consumerNotFound) throw err;
    await manager.consumers.add(stream, {
      durable_name: name,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(ackWait),
      max_deliver: -1,
      ...selected,
    });
  }
}

// handle acknowledges an event once its user is completed, and not before.
async function handle(m) {
  m.working(); // a heartbeat: it has waited for the events before it
  try {
    await complete(m.json());
    m.ack();
  } catch (err) {
    const attempt = m.info.deliveryCount;
    if (err.permanent || err instanceof SyntaxError || attempt >= attempts) return deadLetter(m, err);
    const delay = Math.min(250 * 2 ** Math.min(attempt, 10), 30_000);
    console.error(`attempt ${attempt} at event ${m.seq} failed, the next in ${delay} ms: ${err.message}`);
    m.nak(delay);
  }
}

// complete asks belfry to update a user. The update depends on the event
// only, and its key is the listener's name and the event's id: the event may be
// redelivered, the update takes effect once.
async function complete(e) {
  const object = { welcomed: e.time };
  if (!e.user.displayName) object.displayName = e.user.name || "Somebody new";
  const h = headers();
  h.set("Idempotency-Key", `${name}.${e.id}`);
  const reply = await nc.request(`store.${e.store}.update`, JSON.stringify({ uuid: e.uuid, object }), {
    headers: h,
    timeout: requestTimeout,
  });
  const status = Number(reply.headers?.get("Nats-Service-Error-Code") || 0);
  if (status === 0 || status === 404) return; // done, or the user was deleted
  const err = new Error(`belfry replied ${status}: ${reply.headers.get("Nats-Service-Error")}`);
  err.permanent = status < 500 && ![408, 409, 412, 429].includes(status);
  throw err;
}

// deadLetter publishes a dead letter, for `belfry dlq`, and ends the delivery once it
// is stored. The headers of a retried event say where it is in the log.
async function deadLetter(m, reason) {
  const h = headers();
  h.set("Belfry-Reason", String(reason.message).replace(/[^ -~]/g, " ").slice(0, 1024));
  h.set("Belfry-Listener", name);
  h.set("Belfry-Attempts", String(m.info.deliveryCount));
  h.set("Belfry-Subject", m.headers?.get("Belfry-Subject") || m.subject);
  h.set("Belfry-Sequence", m.headers?.get("Belfry-Sequence") || String(m.seq));
  h.set("Belfry-Time", new Date().toISOString());
  const retries = m.headers?.get("Belfry-Retries");
  if (retries) h.set("Belfry-Retries", retries);
  try {
    await js.publish(`dead.${name}`, m.data, { headers: h, msgID: `${name}.${m.info.stream}.${m.seq}.${m.timestampNanos}` });
    console.error(`event ${m.seq} is with the dead letters: ${reason.message}`);
    m.term();
  } catch (err) {
    console.error(`event ${m.seq} can't be put with the dead letters: ${err.message}`);
    m.nak(30_000);
  }
}
