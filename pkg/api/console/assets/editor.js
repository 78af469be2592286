// The editor of an object: its form and its JSON are kept in step by the server. What is edited last counts: the other
// takes no input until the server has brought it in step. code.js has the editor of the JSON.
'use strict';

const byId = (id) => document.getElementById(id);

// Without a script only one of both can be edited.
function enable() {
  if (!byId('mode')) return;
  byId('text').readOnly = false;
  const fields = byId('fields');
  fields.inert = false;
  const set = fields.querySelector('fieldset.root');
  if (set) set.disabled = false;
  for (const only of document.querySelectorAll('[data-no-script]')) only.hidden = true;
}
enable();

document.addEventListener('input', (event) => {
  const mode = byId('mode');
  if (!mode) return;
  if (event.target.id === 'text') {
    mode.value = 'json';
    byId('fields').inert = true;
  } else if (isField(event.target)) {
    mode.value = 'form';
    byId('text').readOnly = true;
    byId('fields').dispatchEvent(new Event('sync'));
  }
});

// The inputs of a form are named by JSON pointers; a search in it is not part of the object.
const isField = (input) => input.closest('#fields') && /^(name:)?\//.test(input.name);

// A row is added or removed in what is edited last.
document.addEventListener('click', (event) => {
  const button = event.target.closest('#fields button');
  if (button && (button.name === 'add' || button.name === 'remove') && byId('mode').value !== 'form') byId('mode').value = 'form';
}, true);

// Enter in a search searches, and in another field saves.
document.addEventListener('keydown', (event) => {
  const input = event.target;
  if (event.key !== 'Enter' || event.isComposing || input.tagName !== 'INPUT' || !input.form?.matches('[data-unsaved]')) return;
  event.preventDefault();
  const search = input.name.startsWith('q.') && input.form.elements['search.' + input.name.slice(2)];
  if (search) search.click();
  else if (input.type !== 'checkbox') input.form.requestSubmit(input.form.querySelector('button.primary'));
});

function mark(input, wrong) {
  if (wrong) input.setAttribute('aria-invalid', 'true');
  else input.removeAttribute('aria-invalid');
}

document.addEventListener('htmx:oobAfterSwap', (event) => {
  const part = event.detail.target;
  if (part.id === 'editor' || part.id === 'fields') enable();
});

document.addEventListener('htmx:afterSettle', () => {
  const check = byId('check');
  if (check?.querySelector('.problem')) byId('text').setAttribute('aria-invalid', 'true');
  else if (check) byId('text').removeAttribute('aria-invalid');
});
