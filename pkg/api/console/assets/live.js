// Live: shows events of /events as they come. A pause closes the stream and keeps the last id, from which the stream
// continues afterwards, so nothing is missed as long as the log has it. A hidden tab closes its stream, too: without
// HTTP/2 browsers open six connections to a host, and six open streams would leave none for another page. Neither closes
// a stream that has not begun, since it has no id to continue from.
'use strict';

{
  const most = 500; // events that are shown
  const names = ['Store.Saved', 'Store.Updated', 'Store.Deleted', 'Binary.Uploaded', 'Binary.Deleted'];
  const form = document.getElementById('live');
  const list = document.getElementById('events');
  const none = document.getElementById('none');
  const status = document.getElementById('status');
  const pause = document.getElementById('pause');
  let source, begun = false, last, timer, paused = false, received = 0, waiting = [];

  const hiddenTab = () => document.visibilityState === 'hidden';
  const rests = () => paused || hiddenTab();
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };
  const element = (name, text, kind) => {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (kind) e.className = kind;
    return e;
  };

  // The text of an event, indented if it is the same JSON then and not much longer: numbers of many digits are kept, and
  // JSON that is nested deeply does not fill the memory.
  function body(raw) {
    const event = JSON.parse(raw);
    const nested = (raw.match(/[{[]/g) ?? []).length;
    return nested <= 1000 && JSON.stringify(event) === raw ? JSON.stringify(event, null, 2) : raw;
  }

  // The name of an event's object, as other pages show it: the first text of the title of its store.
  const titles = JSON.parse(form?.dataset.titles ?? '{}');
  const hidden = /[\p{Cc}\p{Bidi_Control}\u2028\u2029\ufeff]/gu;
  function nameOf(event) {
    for (const field of Object.hasOwn(titles, event.store) ? titles[event.store] : []) {
      const value = event.object && Object.hasOwn(event.object, field) ? event.object[field] : undefined;
      if (typeof value !== 'string') continue;
      const line = value.trim().slice(0, 640).split(/\s+/).join(' ');
      if (!/[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(line)) continue;
      const characters = [...line.replace(hidden, (c) => '\\u' + c.codePointAt(0).toString(16).padStart(4, '0'))];
      return characters.length > 80 ? characters.slice(0, 80).join('') + '…' : characters.join('');
    }
    return '';
  }

  function row(event, raw) {
    const item = element('li'), details = element('details'), summary = element('summary');
    const kind = event.event.endsWith('Deleted') ? 'tag bad' : event.event.endsWith('Updated') ? 'tag' : 'tag good';
    summary.append(element('time', event.time.slice(0, 19).replace('T', ' ')), ' ', element('span', event.event, kind), ' ', element('strong', event.store), ' ');
    const name = nameOf(event);
    if (name) summary.append(element('span', name), ' ');
    summary.append(element('code', event.uuid));
    const text = element('pre', '', 'code wrap');
    text.tabIndex = 0;
    details.addEventListener('toggle', () => { text.textContent = body(raw); }, { once: true });
    const link = element('a', 'Open the object');
    link.href = form.dataset.objects + '/' + encodeURIComponent(event.store) + '/object/' + encodeURIComponent(event.uuid);
    details.append(summary, link, text);
    item.append(details);
    return item;
  }

  // Many events at once are added together, since each change of the page costs time.
  function flush() {
    timer = undefined;
    const added = waiting.splice(0).slice(-most);
    list.prepend(...added.reverse());
    while (list.children.length > most) list.lastElementChild.remove();
    none.hidden = list.children.length > 0;
    count();
  }
  function add(item) {
    waiting.push(item);
    timer ??= setTimeout(flush, 100);
  }
  function count() {
    const shown = list.children.length < received ? `, the latest ${list.children.length} are shown` : '';
    const events = `${received} event${received === 1 ? '' : 's'}${shown}`;
    say(paused ? `Paused after ${events}` : hiddenTab() ? `Waiting while this tab is hidden, ${events}` : begun ? `Live, ${events}` : `Connecting, ${events}`);
  }
  function gap(text) {
    add(element('li', text, 'warning'));
  }

  function open() {
    close();
    if (rests() && last !== undefined) return;
    const query = new URLSearchParams();
    for (const box of form.querySelectorAll('input:checked')) query.append(box.name, box.value);
    if (last !== undefined) query.set('lastEventId', last);
    const mine = source = new EventSource(form.dataset.events + '?' + query);
    // An open connection is not enough: only the first message says that every later event will come, and after which id.
    const on = (name, act) => mine.addEventListener(name, (message) => {
      if (mine !== source) return;
      if (message.lastEventId) last = message.lastEventId;
      begun = true;
      act(JSON.parse(message.data), message.data);
      if (rests()) close();
    });
    for (const name of names) on(name, (event, raw) => { received++; add(row(event, raw)); });
    on('ready', count);
    on('reset', ({ reason }) => { gap(`Events were missed: ${reason}`); });
    on('dropped', ({ reason }) => { console.info('events:', reason); });
    // A stream that ends, for whatever reason, is opened again from the last id.
    mine.onerror = () => {
      if (mine !== source) return;
      close();
      say('The stream has ended; it is opened again in a moment');
      setTimeout(async () => { if (await check() && !source) open(); }, 1000 + 2000 * Math.random());
    };
  }

  // The stream goes by the rules for users, and without a session by those for everybody. This page is for admins: whoever is
  // no admin any more is shown what belfry replies instead, and nothing that has been received stays.
  async function check() {
    let reply;
    try {
      reply = await fetch(location.href, { method: 'HEAD', redirect: 'manual', cache: 'no-store' });
    } catch {
      return true; // belfry can't be reached
    }
    if (reply.type !== 'opaqueredirect' && reply.status !== 403) return true;
    close();
    clear();
    location.reload();
    return false;
  }
  function close() {
    source?.close();
    source = undefined;
    begun = false;
  }

  if (form) {
    pause.addEventListener('click', () => {
      paused = !paused;
      pause.textContent = paused ? 'Resume' : 'Pause';
      if (!paused) open();
      else if (begun) close();
      count();
    });
    document.getElementById('oldest').addEventListener('click', () => {
      last = '0';
      clear();
      open();
    });
    document.getElementById('clear').addEventListener('click', clear);
    form.addEventListener('change', open);
    form.addEventListener('submit', (event) => event.preventDefault());
    document.addEventListener('visibilitychange', () => {
      if (!hiddenTab()) check().then((stays) => { if (stays && !source) open(); });
      else if (begun) close();
      count();
    });
    setInterval(() => { if (!hiddenTab()) check(); }, 10000);
    addEventListener('pagehide', close);
    addEventListener('pageshow', (event) => { if (event.persisted) check().then((stays) => { if (stays) open(); }); });
    open();
    count();
  }
  function clear() {
    waiting = [];
    received = 0;
    list.replaceChildren();
    none.hidden = false;
    count();
  }
}
