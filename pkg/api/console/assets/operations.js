// Dead letters: choosing all of a page, and asking before they are dropped.
'use strict';

for (const button of document.querySelectorAll('button[data-choose-all]')) {
  button.hidden = false;
  button.addEventListener('click', () => {
    const boxes = [...button.form.querySelectorAll('input[type="checkbox"][name="id"]')];
    const all = boxes.some((box) => !box.checked);
    for (const box of boxes) box.checked = all;
    button.textContent = all ? 'Choose none' : 'Choose all';
  });
}

document.addEventListener('submit', (event) => {
  const question = event.submitter?.dataset.ask;
  if (question && !confirm(question)) event.preventDefault();
});
