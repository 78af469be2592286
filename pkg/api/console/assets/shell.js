// What the frame of a page has: notices of what was done, the sidebar, and the dialog that leads anywhere.
'use strict';

// notify says what a script has done, as the server does on the next page. undo takes it back; undefined: nothing does.
const notify = (text, undo) => {
  const template = document.getElementById('notice-of-script');
  if (!template) return;
  document.querySelector('main > .notice')?.remove();
  const notice = template.content.firstElementChild.cloneNode(true);
  notice.classList.add('late');
  const said = notice.querySelector('[role="status"]');
  if (undo) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'quiet';
    button.textContent = 'Undo';
    button.addEventListener('click', () => { notice.remove(); undo(); });
    said.after(button);
  }
  document.getElementById('main').prepend(notice);
  requestAnimationFrame(() => { said.textContent = text; }); // a text that comes later is read out
};

document.addEventListener('click', (event) => {
  if (event.target.closest('[data-dismiss]')) event.target.closest('.notice').remove();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented || document.querySelector('dialog[open], :popover-open')) return;
  const notice = document.querySelector('main > .notice');
  if (!notice) return;
  if (notice.contains(document.activeElement)) document.getElementById('main').focus();
  notice.remove();
});

{
  const side = document.getElementById('side');
  const field = document.getElementById('side-filter');
  const stores = [...document.querySelectorAll('#side-list > li')];
  const named = (item) => item.querySelector('a').textContent.toLowerCase();
  const shown = () => stores.filter((item) => !item.hidden);

  field?.addEventListener('input', () => {
    const wanted = field.value.trim().toLowerCase();
    for (const item of stores) item.hidden = !named(item).includes(wanted);
    const n = shown().length;
    document.getElementById('side-found').textContent = wanted ? `${n} ${n === 1 ? 'store' : 'stores'}` : '';
  });
  field?.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && field.value.trim()) shown()[0]?.querySelector('a').click();
    if (event.key === 'Escape' && field.value) {
      event.preventDefault();
      field.value = '';
      field.dispatchEvent(new Event('input'));
    }
  });

  // A menu that is open while the window becomes wide is the column there.
  matchMedia('(min-width: 60rem)').addEventListener('change', () => { if (side?.matches(':popover-open')) side.hidePopover(); });
  side?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
}

{
  const dialog = document.getElementById('go');
  const field = document.getElementById('go-to');
  const list = document.getElementById('go-list');
  const status = document.getElementById('go-status');
  const apple = /Mac|iP(hone|ad)/.test(navigator.platform);
  const most = 12; // places of this page
  let asking, timer, at = 0;

  // The stores and pages that the sidebar has.
  const known = [...document.querySelectorAll('#side li > a')].map((link) => ({
    title: link.firstChild.textContent.trim(), url: link.href, about: link.closest('#side-list') ? 'Store' : 'Page',
  }));
  const option = ({ title, url, about }) => {
    const item = document.createElement('li'), name = document.createElement('span'), kind = document.createElement('span');
    item.setAttribute('role', 'option');
    item.dataset.url = url;
    name.textContent = title;
    kind.textContent = about;
    kind.className = 'fine';
    item.append(name, kind);
    return item;
  };

  function choose(index) {
    const all = [...list.children];
    at = all.length ? (index + all.length) % all.length : 0;
    all.forEach((item, i) => {
      item.id = `go-option-${i}`;
      item.setAttribute('aria-selected', String(i === at));
    });
    if (all[at]) field.setAttribute('aria-activedescendant', all[at].id);
    else field.removeAttribute('aria-activedescendant');
    all[at]?.scrollIntoView({ block: 'nearest' });
  }
  function show(items, state) {
    list.replaceChildren(...items);
    choose(Math.min(at, Math.max(items.length - 1, 0)));
    status.textContent = state || (items.length ? `${items.length} found` : 'Nothing was found. Objects are found by their whole uuid, users by a part of a name or an address.');
  }
  function find() {
    const query = field.value.trim(), wanted = query.toLowerCase();
    const begins = (place) => (place.title.toLowerCase().startsWith(wanted) ? 0 : 1);
    const items = known.filter((place) => place.title.toLowerCase().includes(wanted))
      .sort((a, b) => begins(a) - begins(b)).slice(0, most).map(option);
    clearTimeout(timer);
    asking?.abort();
    at = 0;
    if (!query) {
      show(items);
      return;
    }
    show(items, 'Searching');
    timer = setTimeout(async () => {
      const mine = asking = new AbortController();
      let problem = 'belfry can\'t be reached: only stores and pages were searched.';
      try {
        const reply = await fetch(`${dialog.dataset.places}?q=${encodeURIComponent(query)}`,
          { headers: { 'HX-Request': 'true' }, signal: mine.signal, redirect: 'error' });
        if (reply.status === 429) problem = 'Too many searches: wait a moment.';
        if (!reply.ok) throw new Error(problem);
        const login = reply.headers.get('Hx-Redirect'); // the session has ended
        if (login) {
          location.assign(login);
          return;
        }
        const part = document.createElement('template');
        part.innerHTML = await reply.text();
        show([...items, ...part.content.children]);
      } catch {
        if (!mine.signal.aborted) show(items, problem);
      }
    }, 250);
  }
  const go = (item) => { if (item) location.href = item.dataset.url; };

  function open() {
    if (document.querySelector('dialog[open]')) return;
    document.querySelector('#side:popover-open')?.hidePopover();
    field.value = '';
    find();
    dialog.showModal();
    field.focus();
  }

  if (dialog) {
    document.getElementById('go-open').addEventListener('click', (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open();
    });
    document.addEventListener('keydown', (event) => {
      if (event.key.toLowerCase() !== 'k' || event.shiftKey || event.altKey) return;
      if (apple ? !event.metaKey || event.ctrlKey : !event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (dialog.open) dialog.close();
      else open();
    });
    if (apple) document.querySelector('#go-open kbd').textContent = '⌘ K';
    field.addEventListener('input', find);
    field.addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        choose(at + step);
      } else if (event.key === 'Enter') {
        event.preventDefault();
        go(list.children[at]);
      }
    });
    list.addEventListener('click', (event) => go(event.target.closest('[role="option"]')));
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener('close', () => { clearTimeout(timer); asking?.abort(); });
  }
}
