// The sidebar: the field that filters its stores.
'use strict';

{
  const side = document.getElementById('side');
  const field = document.getElementById('side-filter');
  const links = [...document.querySelectorAll('#side-list > li')];
  const named = (item) => item.querySelector('a').textContent.toLowerCase();
  const shown = () => links.filter((item) => !item.hidden);

  field?.addEventListener('input', () => {
    const wanted = field.value.trim().toLowerCase();
    for (const item of links) item.hidden = !named(item).includes(wanted);
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
