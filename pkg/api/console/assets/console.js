// What all pages of the console share: copying a text, and asking before an irreversible act.
'use strict';

document.addEventListener('click', async (event) => {
  const button = event.target.closest('button[data-copy]');
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  if (!source) return;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText('value' in source ? source.value : source.textContent);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = 'Selected: press Ctrl+C';
  }
  setTimeout(() => { button.textContent = before; }, 2000);
});

// A field whose value is wrong says so to programs that read the page to people, too.
document.addEventListener('htmx:afterSettle', () => {
  for (const wrong of document.querySelectorAll('#fields [data-wrong]')) {
    const input = document.getElementById(wrong.dataset.wrong);
    if (input && wrong.hidden) input.removeAttribute('aria-invalid');
    else if (input) input.setAttribute('aria-invalid', 'true');
  }
});

document.addEventListener('submit', (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});
