// The behavior of belfry's pages for people, which all work without it: a button that shows a password, and an estimate
// of a new password while it is typed. The server alone decides whether it takes the password.
"use strict";
(() => {
  const eye = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M2 12s4-6.5 10-6.5S22 12 22 12s-4 6.5-10 6.5S2 12 2 12z"/><circle cx="12" cy="12" r="3"/><path class="slash" d="M4 4l16 16"/></svg>';
  for (const field of document.querySelectorAll("input[type=password][data-show]")) {
    const box = document.createElement("span"), button = document.createElement("button");
    box.className = "password";
    button.type = "button";
    button.className = "quiet show";
    const show = shown => {
      field.type = shown ? "text" : "password";
      button.setAttribute("aria-pressed", shown);
      button.title = shown ? field.dataset.hide : field.dataset.show;
    };
    button.innerHTML = eye;
    button.setAttribute("aria-label", field.dataset.show);
    button.setAttribute("aria-controls", field.id);
    const focused = document.activeElement === field;
    field.replaceWith(box);
    box.append(field, button);
    if (focused) field.focus();
    show(false);
    button.addEventListener("click", () => show(field.type === "password"));
    // A password that was shown is not kept as a text by the browser.
    field.form.addEventListener("submit", () => show(false));
  }

  // estimate returns 0 to 3: too short, and how many characters of how many kinds an attacker has to guess. It knows no
  // words, so it is below what the server finds only for long passwords, and above it for words.
  function estimate(password) {
    const characters = [...password];
    if (new TextEncoder().encode(password).length < 8) return 0;
    let kinds = 0, guessed = 0;
    for (const [kind, size] of [[/[a-z]/, 26], [/[A-Z]/, 26], [/[0-9]/, 10], [/[^a-zA-Z0-9]/, 30]]) {
      if (kind.test(password)) kinds += size;
    }
    characters.forEach((c, i) => {
      const step = i > 0 ? c.codePointAt(0) - characters[i - 1].codePointAt(0) : 9;
      guessed += Math.abs(step) <= 1 ? 0.3 : 1; // aaaa, abcd, 4321
    });
    const repeated = new Set(characters).size / characters.length;
    const bits = guessed * Math.log2(kinds) * Math.min(1, 0.4 + repeated);
    return bits < 50 ? 1 : bits < 70 ? 2 : 3;
  }

  for (const shown of document.querySelectorAll("p.strength")) {
    const field = shown.closest("form").querySelector("input[autocomplete=new-password]");
    if (!field) continue;
    const meter = shown.querySelector("meter"), status = shown.querySelector("[role=status]");
    let waiting;
    field.addEventListener("input", () => {
      const score = estimate(field.value);
      shown.hidden = field.value === "";
      meter.value = score;
      // A screen reader hears it once the typing pauses.
      clearTimeout(waiting);
      waiting = setTimeout(() => { status.textContent = shown.dataset[["short", "weak", "fair", "good"][score]]; }, 300);
    });
  }
})();
