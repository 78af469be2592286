// Text that somebody has typed in a form with data-unsaved is not lost: the browser asks before the page is left, a form
// is sent only while the session counts, and what was typed is kept in the tab until it has been saved. Nothing leaves
// the tab: the storage of a session ends with it.
'use strict';

(() => {
  const prefix = 'belfry draft ';
  const user = document.querySelector('.who')?.title || '';
  const ended = document.getElementById('ended');

  // The storage may be full, or forbidden: then there are no drafts.
  function store(act) {
    try {
      return act(sessionStorage);
    } catch {
      return null;
    }
  }
  const drafts = (all) => Object.keys(all).filter((name) => name.startsWith(prefix));
  const read = (name) => store((all) => JSON.parse(all.getItem(name)));

  // A page that says that something was done ends the draft of what was sent.
  const sent = store((all) => all.getItem('belfry sent'));
  store((all) => all.removeItem('belfry sent'));
  if (sent && document.querySelector('main > .notice')) store((all) => all.removeItem(sent));
  // What another admin has typed in this tab is not for this one.
  if (user) store((all) => drafts(all).forEach((name) => { if (read(name)?.user !== user) all.removeItem(name); }));

  // Who logs out leaves nothing in the tab.
  let out = false;
  document.addEventListener('submit', (event) => {
    if (!event.target.matches('form.account')) return;
    out = true;
    store((all) => drafts(all).forEach((name) => all.removeItem(name)));
  });

  // Why a form is not sent.
  function warn(why) {
    for (const one of ended.querySelectorAll('[data-why]')) one.hidden = one.dataset.why !== why;
    if (!ended.open) ended.showModal();
  }

  ended?.querySelector('button').addEventListener('click', () => ended.close());

  function guard(form, key) {
    let touched = form.dataset.unsaved === 'edited';
    let leaving = false;

    addEventListener('beforeunload', (event) => {
      if (touched && !leaving) event.preventDefault();
    });

    // The server shows a form with rows as it was sent, if it is sent with this step.
    const step = form.dataset.again;

    // What the JSON of an object says is not kept twice, and a secret not at all.
    function kept(input) {
      if (!input.name || /^(\/|name:|rows:|base$|mode$|q\.)/.test(input.name)) return false;
      if (input.type === 'hidden') return input.name === 'revision';
      return !['password', 'file', 'search', 'submit', 'button'].includes(input.type);
    }
    const plain = () => [...form.elements].filter(kept).map((input) =>
      [input.name, input.type === 'checkbox' || input.type === 'radio' ? [input.value, input.checked] : input.value]);
    const sendable = () => [...new FormData(form)].filter(([name]) => form.elements[name].type !== 'password');
    const values = () => (step ? sendable() : plain());

    let timer = 0;
    function edited() {
      touched = true;
      out = false;
      clearTimeout(timer);
      timer = setTimeout(keep, 300);
    }
    function keep() {
      if (!out) store((all) => all.setItem(key, JSON.stringify({ user, at: Date.now(), values: values() })));
    }
    addEventListener('pagehide', () => { if (touched && !leaving && form.dataset.unsaved !== 'edited') keep(); });
    for (const type of ['input', 'change']) {
      form.addEventListener(type, (event) => {
        if (!['search', 'file'].includes(event.target.type)) edited();
      });
    }
    const before = JSON.stringify(values());
    document.addEventListener('htmx:oobAfterSwap', (event) => {
      if (['editor', 'fields'].includes(event.detail.target.id) && JSON.stringify(values()) !== before) edited();
    });

    // Drafts
    function restore(draft) {
      if (step) {
        sendAgain(draft.values);
        return;
      }
      for (const [name, value] of draft.values) {
        for (const input of [...form.elements].filter((one) => one.name === name && kept(one))) {
          if (!Array.isArray(value)) input.value = value;
          else if (input.value === value[0]) input.checked = value[1];
        }
      }
      (form.querySelector('#text') || form.querySelector('input, textarea')).dispatchEvent(new Event('input', { bubbles: true }));
    }
    // Rows of the draft are not in the page.
    function sendAgain(pairs) {
      const copy = document.createElement('form');
      copy.method = 'post';
      copy.action = form.action;
      copy.hidden = true;
      for (const [name, value] of [...pairs, ['step', step]]) {
        const input = document.createElement('textarea');
        input.name = name;
        input.value = value;
        copy.append(input);
      }
      form.after(copy);
      leaving = true;
      copy.submit();
    }
    function offer(draft) {
      const bar = document.createElement('div');
      bar.className = 'warning actions';
      bar.setAttribute('role', 'status');
      const text = document.createElement('span');
      const at = new Date(draft.at);
      const today = at.toDateString() === new Date().toDateString();
      const time = at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
      text.textContent = `There are unsaved edits from ${today ? '' : at.toLocaleDateString() + ' '}${time}.`;
      bar.append(text);
      const act = (label, what) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = label;
        button.addEventListener('click', () => { what(); bar.remove(); });
        bar.append(button);
      };
      act('Restore unsaved edits', () => restore(draft));
      act('Discard them', () => store((all) => all.removeItem(key)));
      form.before(bar);
    }
    const draft = read(key);
    if (draft && Array.isArray(draft.values) && !touched) {
      if (JSON.stringify(draft.values) === before) store((all) => all.removeItem(key));
      else offer(draft);
    }

    // Sending
    let asking = false;
    form.addEventListener('submit', async (event) => {
      if (leaving || event.defaultPrevented || !ended) {
        leaving = !event.defaultPrevented;
        return;
      }
      event.preventDefault();
      if (asking) return;
      asking = true;
      const button = event.submitter;
      let status = 0;
      try {
        status = (await fetch(ended.dataset.session, { cache: 'no-store', redirect: 'error' })).status;
      } catch { /* belfry can't be reached */ }
      asking = false;
      if (status === 401 || status === 403) warn('ended');
      else if (status === 0) warn('away');
      else {
        keep();
        store((all) => all.setItem('belfry sent', key));
        leaving = true;
        form.requestSubmit(button);
      }
    });
  }

  document.querySelectorAll('form[data-unsaved]').forEach((form, i) => guard(form, prefix + location.pathname + (i ? ` ${i}` : '')));
})();
