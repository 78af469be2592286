// What all pages of the console share: copying a text, asking before an irreversible act, times of this place, and the
// focus after a page or a part of it has been replaced.
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

// Times of this place. The server writes them in UTC.
const localTime = (at) => {
  const two = (n) => String(n).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
    `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
};

const showTimes = (within) => {
  for (const time of within.querySelectorAll('time[datetime][title]')) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.textContent = localTime(at);
  }
};
showTimes(document);
document.addEventListener('htmx:afterSettle', (event) => showTimes(event.target));

// A form that is shown again begins at the first field that is wrong, or else at what is said about it.
if (!document.querySelector('[autofocus]')) {
  const said = document.querySelector('main [role="alert"]:not(:empty)');
  const form = document.querySelector('main form[data-unsaved="edited"]') ?? said?.closest('main');
  const wrong = form?.querySelector('[aria-invalid="true"]') ?? said;
  if (wrong && wrong === said) said.tabIndex = -1;
  wrong?.focus();
}

// A part of a page that is kept up to date waits while nobody sees it.
document.addEventListener('htmx:beforeRequest', (event) => {
  if (document.hidden && event.detail.elt.getAttribute('hx-trigger')?.startsWith('every ')) event.preventDefault();
});

// A part of a page that is replaced keeps the focus: at the element of the same name, or else at the one in its place.
const stops = (part) => [...part.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  .filter((one) => one.tabIndex >= 0 && one.type !== 'hidden');
const nameOf = (one) => one.getAttribute('aria-label') ?? one.textContent.trim();
let left;

for (const type of ['htmx:beforeSwap', 'htmx:oobBeforeSwap']) {
  document.addEventListener(type, (event) => {
    const part = event.detail.target;
    const at = stops(part).indexOf(document.activeElement);
    if (part.id && at >= 0) left = { part: part.id, at, name: nameOf(document.activeElement) };
  });
}
document.addEventListener('htmx:afterSettle', () => {
  if (left && document.activeElement === document.body) {
    const all = stops(document.getElementById(left.part) ?? document.getElementById('main'));
    const same = all.find((one) => nameOf(one) === left.name) ?? all[Math.min(left.at, all.length - 1)];
    same?.focus({ preventScroll: true });
  }
  left = undefined;
});
