// Files are added by dropping them on the form, several at once, and one after another.
'use strict';

for (const form of document.querySelectorAll('form[data-drop]')) {
  const input = form.querySelector('input[type="file"]');
  const said = form.querySelector('[role="status"]');
  input.multiple = true;
  form.classList.add('drop');

  const over = (event) => event.dataTransfer && [...event.dataTransfer.types].includes('Files');
  for (const type of ['dragenter', 'dragover']) {
    form.addEventListener(type, (event) => {
      if (!over(event)) return;
      event.preventDefault();
      form.classList.add('over');
    });
  }
  form.addEventListener('dragleave', () => form.classList.remove('over'));
  form.addEventListener('drop', (event) => {
    form.classList.remove('over');
    if (!over(event) || !event.dataTransfer.files.length) return;
    event.preventDefault();
    input.files = event.dataTransfer.files;
    form.requestSubmit();
  });

  const send = (file, tell) => new Promise((done) => {
    const request = new XMLHttpRequest();
    const body = new FormData();
    body.append('file', file);
    request.open('POST', form.action);
    request.setRequestHeader('Hx-Request', 'true');
    request.upload.addEventListener('progress', (event) => {
      if (event.lengthComputable) tell(Math.floor(100 * event.loaded / event.total));
    });
    request.addEventListener('load', () => done(request));
    request.addEventListener('error', () => done(null));
    request.send(body);
  });

  // What a refusal says, as text.
  const why = (reply) => reply
    ? new DOMParser().parseFromString(reply.responseText, 'text/html').body.textContent.trim() || `status ${reply.status}`
    : "belfry can't be reached";

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (form.classList.contains('busy')) return;
    form.classList.add('busy');
    const files = [...input.files];
    let added = 0;
    let reply = null;
    for (const file of files) {
      const which = files.length > 1 ? `${added + 1} of ${files.length}: ` : '';
      said.textContent = `Uploading ${which}${file.name}`;
      reply = await send(file, (percent) => { said.textContent = `Uploading ${which}${file.name}, ${percent} %`; });
      const target = reply?.getResponseHeader('Hx-Redirect'); // of the login, if the session has ended
      if (reply?.status !== 200 || !target || new URL(target, location).pathname !== location.pathname) break;
      added++;
    }
    form.classList.remove('busy');
    input.value = '';
    if (added === files.length) {
      said.textContent = `${added === 1 ? 'The file has' : `${added} files have`} been added. The page shows them when it is loaded again.`;
      location.assign(reply.getResponseHeader('Hx-Redirect'));
    } else {
      const login = reply?.status === 200 ? 'you have been logged out: log in in a new tab, and try again' : why(reply);
      said.textContent = `${files[added].name} has not been added: ${login}` + (added ? ` (${added} before it have been)` : '');
    }
  });
}
