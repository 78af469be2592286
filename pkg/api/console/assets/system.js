// The charts are renewed every few seconds, but not while somebody reads one as a table or is in them
// with the keyboard, and not in a tab that nobody sees.
'use strict';

document.addEventListener('htmx:beforeRequest', (event) => {
  const charts = event.target;
  if (charts.id !== 'charts') return;
  if (document.hidden || charts.contains(document.activeElement) || charts.querySelector('details[open]')) event.preventDefault();
});
