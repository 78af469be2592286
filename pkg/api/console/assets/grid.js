// The list of the objects of a store: editing in place, choosing rows, the keyboard, the widths of
// columns, and saved filters. Without it the page still lists, filters and changes.
'use strict';

// What this browser keeps of a type, by its name, which may be "constructor". It may be missing, or of another version.
const kept = (key, type) => {
  const all = Object.create(null);
  try {
    const read = JSON.parse(localStorage.getItem(key));
    if (typeof read !== 'object' || Array.isArray(read)) return all;
    for (const [name, value] of Object.entries(read ?? {})) if (typeof value === type) all[name] = value;
  } catch { /* nothing is kept */ }
  return all;
};
const keep = (key, value) => {
  try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* it is not kept */ }
};

// A time as its input has it, in the time of this place; '' for what it can't hold.
const toInput = (text) => {
  const at = new Date(text);
  if (Number.isNaN(at.getTime()) || /[.:]\d*\.\d{4,}/.test(text)) return '';
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60000);
  return local.toISOString().slice(0, -1);
};

const selectOf = (values, chosen) => {
  const select = document.createElement('select');
  for (const value of values) {
    const text = value.startsWith('"') ? JSON.parse(value) : value;
    select.append(new Option(text || (value ? '(empty text)' : 'no value'), value));
  }
  select.value = chosen;
  return select;
};

// The input for a value, by what the schema says about the field, and what reads it as JSON; '' for no value.
const entryOf = (kind, before, facts) => {
  const choices = facts.choices ? facts.choices.split('\n') : [];
  if (kind === 'boolean' && before) {
    const input = document.createElement('input');
    input.type = 'checkbox';
    input.checked = before === 'true';
    return { input, read: () => String(input.checked) };
  }
  if (kind === 'boolean' || choices.length) {
    const values = choices.length ? choices : ['true', 'false'];
    const input = selectOf(['', ...values, ...(before && !values.includes(before) ? [before] : [])], before);
    return { input, read: () => input.value };
  }
  const input = document.createElement('input');
  const text = kind === 'string' && before ? JSON.parse(before) : before;
  // An input shows some values as others, or not at all: one that nobody has changed stays as it is.
  const entry = (read) => {
    const shown = input.value;
    return { input, read: () => (input.value === shown ? before : read()) };
  };
  if (facts.input === 'date' && (!text || /^\d{4}-\d\d-\d\d$/.test(text))) {
    input.type = 'date';
    input.value = text;
    return entry(() => (input.value ? JSON.stringify(input.value) : ''));
  }
  if (facts.input === 'datetime' && (!text || toInput(text))) {
    input.type = 'datetime-local';
    input.step = '0.001';
    input.value = text ? toInput(text) : '';
    return entry(() => (input.value ? JSON.stringify(new Date(input.value).toISOString().replace('.000Z', 'Z')) : ''));
  }
  if (kind === 'number') input.inputMode = 'decimal';
  input.value = text;
  return entry(() => (kind === 'string' ? JSON.stringify(input.value) : input.value.trim()));
};

// The form that changes a field of a row, and the row as the reply has it.
const change = (row, field, value) => {
  const body = new URLSearchParams({ field, value, revision: row.dataset.revision });
  for (const other of row.querySelectorAll('td[data-field]')) body.append('cols', other.dataset.field);
  return body;
};
const rowOf = (text, old) => {
  const table = document.createElement('table');
  table.innerHTML = `<tbody>${text}</tbody>`;
  const next = table.querySelector('tr');
  const chosen = old.querySelector('input[name="uuid"]');
  if (chosen) next.querySelector('input[name="uuid"]').checked = chosen.checked;
  showTimes(next);
  return next;
};
const problemOf = (said) => (said.errors ?? []).map((e) => e.message ?? e.detail).filter(Boolean).join('; ') ||
  said.detail || said.title;

// Gives a field the value that it had before it was changed.
const takeBack = async (uuid, field, value) => {
  const row = document.querySelector(`#cells tr[data-uuid="${CSS.escape(uuid)}"]`);
  if (!row || row.querySelector('.editing')) {
    notify(`${field} can't be undone while the row is edited. Its history has the value.`);
    return;
  }
  try {
    const reply = await fetch(row.dataset.edit, { method: 'POST', body: change(row, field, value), redirect: 'error' });
    if (!reply.ok) {
      notify(`The change of ${field} could not be undone: ${problemOf(await reply.json())}`);
      return;
    }
    const next = rowOf(await reply.text(), row);
    const cell = next.querySelector(`td[data-field="${CSS.escape(field)}"]`);
    row.replaceWith(next);
    if (cell) focusCell(cell);
    notify(`The change of ${field} has been undone.`);
  } catch {
    notify(`The change of ${field} could not be undone: belfry did not reply.`);
  }
};

// Editing in place.
const begin = (cell) => {
  const row = cell.closest('tr');
  if (!cell.dataset.edit || !row.dataset.edit || cell.classList.contains('editing')) return;
  const kind = cell.dataset.edit;
  const value = cell.dataset.value;
  const before = kind === 'string' && value ? JSON.stringify(JSON.parse(value)) : value;
  const old = [...cell.childNodes];
  const facts = row.closest('table')?.tHead.rows[0].cells[cell.cellIndex]?.dataset ?? {};
  const entry = entryOf(kind, before, facts);
  const input = entry.input;
  input.setAttribute('aria-label', `${cell.dataset.field} of ${row.dataset.uuid}`);
  const wrong = document.createElement('span');
  wrong.className = 'wrong';
  wrong.setAttribute('role', 'alert');
  cell.classList.add('editing');
  cell.replaceChildren(input, wrong);
  const hint = input.type === 'checkbox' ? 'Space changes it.' : facts.bounds;
  if (hint) {
    const bounds = document.createElement('span');
    bounds.className = 'bounds';
    bounds.textContent = hint;
    bounds.id = 'bounds-now';
    input.setAttribute('aria-describedby', bounds.id);
    wrong.before(bounds);
  }
  input.focus();
  input.select?.();
  let busy = false;
  const end = () => {
    busy = true; // an input that is removed is left, which saves nothing
    cell.classList.remove('editing', 'saving');
    cell.replaceChildren(...old);
  };
  // The cell gets the focus, or one beside it, unless somebody has gone elsewhere meanwhile.
  const isHere = () => document.activeElement === document.body || cell.contains(document.activeElement);
  const save = async (step = 0) => {
    if (busy) return;
    const text = entry.read();
    if (text === before) {
      const here = isHere();
      end();
      if (here) focusCell(row.cells[cell.cellIndex + step] ?? cell);
      return;
    }
    const body = change(row, cell.dataset.field, text);
    busy = true;
    cell.classList.add('saving');
    let problem;
    try {
      const reply = await fetch(row.dataset.edit, { method: 'POST', body, redirect: 'error' });
      if (reply.ok) {
        const next = rowOf(await reply.text(), row);
        const at = [...row.cells].indexOf(cell);
        notify(`${cell.dataset.field} has been saved.`, () => takeBack(row.dataset.uuid, cell.dataset.field, before));
        const here = isHere();
        const now = row.contains(document.activeElement) && document.activeElement.closest('td, th');
        if (!here && now?.classList?.contains('editing')) { // the others are replaced when that is saved
          row.dataset.revision = next.dataset.revision;
          cell.replaceWith(next.cells[at]);
          return;
        }
        row.replaceWith(next);
        if (here) focusCell(next.cells[at + step] ?? next.cells[at]);
        else if (now) focusCell(next.cells[now.cellIndex]);
        else if (!focused?.isConnected) focusCell(next.cells[at], false);
        return;
      }
      problem = problemOf(await reply.json());
    } catch {
      problem = 'It could not be saved: belfry did not reply.';
    }
    busy = false;
    cell.classList.remove('saving');
    input.setAttribute('aria-invalid', 'true');
    wrong.textContent = problem;
  };
  input.addEventListener('keydown', (event) => {
    event.stopPropagation();
    if (event.key === 'Enter') { event.preventDefault(); save(); }
    if (event.key === 'Tab') { event.preventDefault(); save(event.shiftKey ? -1 : 1); }
    if (event.key === 'Escape') { event.preventDefault(); end(); focusCell(cell); }
  });
  if (input.type === 'checkbox') input.addEventListener('change', () => save());
  input.addEventListener('blur', () => { if (!wrong.textContent && cell.isConnected) save(); });
};

// The keyboard: one cell of the table is in the order of the Tab key, and the arrows move to others.
let focused;
const focusCell = (cell, look = true) => {
  if (!cell) return;
  focused?.removeAttribute('tabindex');
  focused = cell;
  cell.tabIndex = 0;
  if (look) cell.focus();
};

const move = (cell, key) => {
  const row = cell.parentElement, rows = [...row.parentElement.rows];
  const at = row.rowIndex - rows[0].rowIndex, column = cell.cellIndex;
  switch (key) {
    case 'ArrowRight': return row.cells[column + 1];
    case 'ArrowLeft': return row.cells[column - 1];
    case 'ArrowDown': return rows[at + 1]?.cells[column];
    case 'ArrowUp': return rows[at - 1]?.cells[column];
    case 'Home': return row.cells[0];
    case 'End': return row.cells[row.cells.length - 1];
    default: return undefined;
  }
};

const cells = document.getElementById('cells');
if (cells) {
  showTimes(cells);
  const body = cells.tBodies[0];
  focusCell(body.rows[0]?.cells[0], false);
  body.addEventListener('dblclick', (event) => {
    const cell = event.target.closest('td[data-edit]');
    if (cell && !event.target.closest('input, select')) begin(cell);
  });
  // Where the button goes down counts, as it does for the focus that the browser sets.
  body.addEventListener('mousedown', (event) => {
    const cell = event.target.closest('td, th');
    if (cell && !event.target.closest('a, input, select')) focusCell(cell);
  });
  body.addEventListener('keydown', (event) => {
    const cell = event.target;
    if (!cell.matches('td, th') || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = cell.parentElement.querySelector('input[name="uuid"]');
    if (event.key === 'Enter') {
      if (cell.dataset.edit) begin(cell);
      else (cell.querySelector('a') ?? cell.querySelector('input'))?.click();
    } else if (event.key === ' ' && box) {
      box.click();
    } else {
      const next = move(cell, event.key);
      if (!next) return;
      focusCell(next);
    }
    event.preventDefault();
  });

  // Choosing all rows of the page.
  const head = cells.tHead.querySelector('.choose');
  const boxes = () => [...body.querySelectorAll('input[name="uuid"]')];
  if (head) {
    const all = document.createElement('input');
    all.type = 'checkbox';
    all.setAttribute('aria-label', 'Choose all of this page');
    head.replaceChildren(all);
    const chosen = document.getElementById('chosen');
    const count = () => {
      const n = boxes().filter((box) => box.checked).length;
      all.checked = n > 0 && n === boxes().length;
      all.indeterminate = n > 0 && !all.checked;
      if (chosen) chosen.textContent = n ? `${n} chosen.` : '';
    };
    all.addEventListener('change', () => {
      for (const box of boxes()) box.checked = all.checked;
      count();
    });
    body.addEventListener('change', count);
    count();
  }

  // The widths of columns, by the name of the column.
  const widthKey = `belfry-widths:${cells.dataset.store}`;
  const widths = kept(widthKey, 'number');
  const columns = [...cells.tHead.querySelectorAll('th[data-column]')];
  const widthOf = (th) => (th.dataset.column ? widths[th.dataset.column] ?? 160 : th.matches('.choose') ? 48 : 112);
  const setWidths = () => {
    if (!columns.some((th) => widths[th.dataset.column])) return;
    cells.classList.add('sized');
    const all = [...cells.tHead.rows[0].cells];
    for (const th of all) th.style.width = `${widthOf(th)}px`;
    // Columns have the widths that they are given only in a table whose width is given, too.
    cells.style.width = `${all.reduce((sum, th) => sum + widthOf(th), 0)}px`;
  };
  for (const th of columns) {
    const handle = document.createElement('button');
    handle.type = 'button';
    handle.className = 'resize';
    handle.setAttribute('aria-label', `Width of ${th.dataset.column}: arrow keys change it`);
    th.append(handle);
    const set = (width) => {
      for (const other of columns) widths[other.dataset.column] ??= Math.round(other.getBoundingClientRect().width);
      widths[th.dataset.column] = Math.min(Math.max(Math.round(width), 48), 1200);
      setWidths();
    };
    handle.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      const from = event.clientX, width = th.getBoundingClientRect().width;
      handle.setPointerCapture(event.pointerId);
      const drag = (moved) => set(width + moved.clientX - from);
      handle.addEventListener('pointermove', drag);
      handle.addEventListener('lostpointercapture', () => {
        handle.removeEventListener('pointermove', drag);
        keep(widthKey, widths);
      }, { once: true });
    });
    handle.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -16, ArrowRight: 16 }[event.key];
      if (!by) return;
      event.preventDefault();
      set(th.getBoundingClientRect().width + by);
      keep(widthKey, widths);
    });
  }
  setWidths();
}

// Saved filters: this browser keeps them, by store.
const saved = document.getElementById('saved');
if (saved) {
  const key = `belfry-filters:${saved.dataset.store}`;
  const list = saved.querySelector('ul');
  const path = saved.dataset.here.split('?')[0];
  const show = () => {
    list.replaceChildren(...Object.entries(kept(key, 'string')).map(([name, query]) => {
      const item = document.createElement('li');
      const link = document.createElement('a');
      link.textContent = name;
      link.href = `${path}?${query}`;
      const remove = document.createElement('button');
      remove.type = 'button';
      remove.className = 'quiet bad';
      remove.textContent = 'Remove';
      remove.setAttribute('aria-label', `Remove ${name}`);
      remove.addEventListener('click', () => {
        const all = kept(key, 'string');
        delete all[name];
        keep(key, all);
        show();
      });
      item.append(link, remove);
      return item;
    }));
  };
  saved.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault();
    const name = saved.querySelector('input');
    keep(key, { ...kept(key, 'string'), [name.value]: saved.dataset.here.split('?')[1] ?? '' });
    name.value = '';
    show();
  });
  show();
  saved.hidden = false;
}
