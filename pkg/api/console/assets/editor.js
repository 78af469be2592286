// The editor of an object: a line that a violation names is selected, and the field says whether its text is valid.
'use strict';

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-line]');
  const editor = document.getElementById('text');
  if (!link || !editor) return;
  event.preventDefault();
  const lines = editor.value.split('\n');
  const line = Math.min(Number(link.dataset.line), lines.length) - 1;
  const start = lines.slice(0, line).reduce((length, text) => length + text.length + 1, 0);
  editor.focus();
  editor.setSelectionRange(start, start + lines[line].length);
  editor.scrollTop = (line - 2) * (editor.scrollHeight / lines.length);
});

document.addEventListener('htmx:afterSwap', (event) => {
  if (event.target.id !== 'check') return;
  const editor = document.getElementById('text');
  if (event.target.querySelector('.problem')) editor.setAttribute('aria-invalid', 'true');
  else editor.removeAttribute('aria-invalid');
});
