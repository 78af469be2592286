// Passkeys on the pages of belfry. A form with data-options stays hidden without this script. It asks that route for a
// challenge, has the browser answer it, and is sent with the answer in its field credential.
"use strict";
(() => {
  if (!window.PublicKeyCredential || !navigator.credentials) return;

  const bytes = text => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
  const text = buffer => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const ids = list => (list || []).map(c => ({...c, id: bytes(c.id)}));

  // Browsers that can't do this themselves yet get a fallback.
  function forGet(o) {
    if (PublicKeyCredential.parseRequestOptionsFromJSON) return PublicKeyCredential.parseRequestOptionsFromJSON(o);
    return {...o, challenge: bytes(o.challenge), allowCredentials: ids(o.allowCredentials)};
  }
  function forCreate(o) {
    if (PublicKeyCredential.parseCreationOptionsFromJSON) return PublicKeyCredential.parseCreationOptionsFromJSON(o);
    return {...o, challenge: bytes(o.challenge), user: {...o.user, id: bytes(o.user.id)}, excludeCredentials: ids(o.excludeCredentials)};
  }
  function encoded(credential) {
    if (credential.toJSON) return credential.toJSON();
    const r = credential.response, response = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (r[name]) response[name] = text(r[name]);
    }
    if (r.getTransports) response.transports = r.getTransports();
    return {id: credential.id, rawId: text(credential.rawId), type: credential.type, response, clientExtensionResults: credential.getClientExtensionResults()};
  }

  // The form has these texts in the language of its page, if that is another one.
  function explain(form, e) {
    const own = form.dataset;
    switch (e.name) {
    case "NotAllowedError":
      return own.canceled || "No passkey was used: that was canceled, took too long, or there is none for this account on this device.";
    case "InvalidStateError":
      return own.known || "This device has a passkey of your account already.";
    case "SecurityError":
      return own.unusable || "Passkeys can't be used at this address.";
    }
    // What the server says is English.
    if (e.name === "Refused" && /^en\b/.test(document.documentElement.lang)) return e.message;
    return own.failed || e.message;
  }

  async function challenge(form) {
    const reply = await fetch(form.dataset.options, {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"});
    const body = await reply.json();
    if (reply.ok) return body.publicKey;
    if (body.step && form.dataset.stepUp) {
      location.assign(form.dataset.stepUp);
      return null;
    }
    const refused = new Error(body.detail || body.title);
    refused.name = "Refused";
    throw refused;
  }

  async function send(form) {
    const problem = form.querySelector("[role=alert]"), button = form.querySelector("button");
    problem.textContent = "";
    button.disabled = true;
    try {
      const options = await challenge(form);
      if (!options) return;
      const credential = form.dataset.create === undefined
        ? await navigator.credentials.get({publicKey: forGet(options)})
        : await navigator.credentials.create({publicKey: forCreate(options)});
      form.elements.credential.value = JSON.stringify(encoded(credential));
      form.submit();
    } catch (e) {
      problem.textContent = explain(form, e);
    } finally {
      button.disabled = false;
    }
  }

  // A section about passkeys alone is hidden, too.
  for (const section of document.querySelectorAll("[data-passkeys]")) section.hidden = false;
  for (const form of document.querySelectorAll("form[data-options]")) {
    form.hidden = false;
    form.addEventListener("submit", event => {
      event.preventDefault();
      send(form);
    });
  }
})();
