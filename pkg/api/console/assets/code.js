// A textarea in a code-editor is edited by CodeMirror, and stays what the form sends: scripts read and set it, and hear
// its events, as if it were edited itself. Without CodeMirror it is shown.
//
// The editor is in a shadow root, where CodeMirror uses constructed style sheets: the policy of pages admits no others.
// Its attributes are language (json, yaml or cel); problems, a selector of the messages whose places are underlined;
// and whole, if a message without a place is about all of the text.
'use strict';

(() => {
  const source = document.currentScript.dataset.codemirror;
  const value = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value');

  // CodeMirror is loaded for the first editor.
  let loading;
  const load = () => loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = source;
    script.onload = () => resolve(parts(CodeMirror));
    script.onerror = reject;
    document.head.append(script);
  });

  // JSON and CEL have the same tokens, but for comments, names and more kinds of texts.
  const tokens = {
    startState: () => ({ depth: 0, quote: '' }),
    token(stream, state) {
      if (state.quote) return text(stream, state);
      if (stream.eatSpace()) return null;
      if (stream.match('//')) {
        stream.skipToEnd();
        return 'comment';
      }
      const quote = stream.match(/^[rb]{0,2}("""|'''|"|')/i);
      if (quote) {
        state.quote = quote[1];
        const token = text(stream, state);
        return stream.match(/^\s*:/, false) && !state.quote ? 'propertyName' : token;
      }
      if (stream.match(/^(0x[\da-f]+|\d+(\.\d+)?(e[+-]?\d+)?)u?/i)) return 'number';
      const after = stream.string[stream.start - 1];
      const name = stream.match(/^[a-z_]\w*/i);
      if (name) {
        if (/^(true|false|null)$/.test(name[0])) return 'atom';
        if (name[0] === 'in' || stream.match('(', false)) return 'keyword';
        return after === '.' ? 'propertyName' : 'variableName';
      }
      const sign = stream.next();
      if ('([{'.includes(sign)) state.depth++;
      else if (')]}'.includes(sign)) state.depth = Math.max(state.depth - 1, 0);
      else return 'operator';
      return 'bracket';
    },
    indent: (state, after, context) => state.quote ? null
      : Math.max(state.depth - (/^\s*[)\]}]/.test(after) ? 1 : 0), 0) * context.unit,
  };

  // The rest of a text in quotes: three of them hold several lines.
  function text(stream, state) {
    while (!stream.eol()) {
      if (stream.match(state.quote)) {
        state.quote = '';
        return 'string';
      }
      if (stream.next() === '\\') stream.next();
    }
    if (state.quote.length === 1) state.quote = '';
    return 'string';
  }

  // parts makes what all editors share.
  function parts(CM) {
    const t = CM.tags;
    const line = '1px solid var(--line)';
    const panel = { backgroundColor: 'var(--raised)', color: 'var(--text)' };
    const control = { background: 'var(--surface)', color: 'var(--text)', border: '1px solid var(--line-strong)',
      borderRadius: 'var(--radius)' };
    const common = CM.StreamLanguage.define(tokens);
    return {
      ...CM,
      languages: { json: common, cel: common, yaml: CM.StreamLanguage.define(CM.yaml) },
      keys: CM.keymap.of([...CM.completionKeymap, ...CM.searchKeymap, ...CM.historyKeymap, ...CM.lintKeymap,
        ...CM.defaultKeymap]),
      colors: CM.syntaxHighlighting(CM.HighlightStyle.define([
        { tag: [t.propertyName, t.variableName], color: 'var(--text)' },
        { tag: t.string, color: 'var(--good)' },
        { tag: [t.number, t.atom, t.meta], color: 'var(--warn)' },
        { tag: t.keyword, color: 'var(--accent)' },
        { tag: t.comment, color: 'var(--muted)', fontStyle: 'italic' },
      ])),
      theme: CM.EditorView.theme({
        '&': { ...control, overflow: 'hidden', fontSize: '0.87rem' },
        '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '2px' },
        '&.wrong': { borderColor: 'var(--bad)', boxShadow: '0 0 0 1px var(--bad)' },
        '&.fixed': { backgroundColor: 'var(--raised)' },
        '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5', maxHeight: '75vh', overflow: 'auto' },
        '.cm-content': { minHeight: 'var(--code-height)', padding: '0.4rem 0', caretColor: 'var(--text)' },
        '.cm-gutters': { ...panel, minHeight: 'var(--code-height)', color: 'var(--muted)', borderRight: line },
        '.cm-panels': panel,
        '.cm-panels-top': { borderBottom: line },
        '.cm-panels-bottom': { borderTop: line },
        '.cm-panel.cm-search label': { whiteSpace: 'nowrap' },
        '.cm-panel.cm-search [name=close]': { color: 'var(--text)', minWidth: '24px', minHeight: '24px' },
        '.cm-panel.cm-panel-lint ul [aria-selected]': { backgroundColor: 'var(--accent-soft)', color: 'var(--text)' },
        '.cm-panel.cm-panel-lint button': { color: 'var(--text)' },
        '.cm-button': { ...control, backgroundImage: 'none' },
        '.cm-textfield': control,
        '.cm-tooltip': { ...control, borderRadius: '0', maxWidth: 'calc(100vw - 2rem)' },
        // It has few options at a time, so that none of it needs to be scrolled to.
        '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', maxHeight: 'none' },
        '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]':
          { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
        '&.cm-focused .cm-matchingBracket':
          { backgroundColor: 'var(--accent-soft)', outline: '1px solid var(--accent)' },
        '&.cm-focused .cm-nonmatchingBracket': { backgroundColor: 'var(--bad-soft)' },
        '.cm-searchMatch': { backgroundColor: 'var(--warn-soft)', outline: '1px solid var(--warn)' },
        '.cm-searchMatch-selected': { backgroundColor: 'var(--accent-soft)' },
        '.cm-specialChar': { color: 'var(--bad)' },
        '.cm-lintRange-error':
          { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad)', textDecorationSkipInk: 'none' },
        '.cm-lintPoint-error:after': { borderBottomColor: 'var(--bad)' },
        '.cm-diagnostic': { overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' },
        '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
      }),
    };
  }

  // Completion: the names of the store that a rule is about.
  const isName = /^[a-z_]\w*$/i;
  const stores = new Map();
  function namesOf(url) {
    if (!stores.has(url)) {
      stores.set(url, fetch(url).then((reply) => reply.ok ? reply.json() : Promise.reject(reply.status)).catch(() => {
        stores.delete(url);
        return null;
      }));
    }
    return stores.get(url);
  }
  async function complete(context, url) {
    const path = context.matchBefore(/[a-z_][\w.]*/i);
    if (!path && !context.explicit || context.tokenBefore(['string', 'comment'])) return null;
    const names = await namesOf(url);
    if (!names) return null;
    const before = path ? path.text.split('.') : [''];
    const typed = before.pop();
    const functions = names.functions.map((label) => ({ label, type: 'function', apply: label + '(' }));
    const listed = (all, type) => all.filter((name) => isName.test(name)).map((label) => ({ label, type }));
    let options = functions;
    if (before.length === 0) options = [...listed(names.variables, 'variable'), ...functions];
    else {
      const fields = fieldsOf(names, before);
      if (fields) options = listed(fields, 'property');
    }
    return { from: context.pos - typed.length, options, validFor: /^\w*$/ };
  }
  function fieldsOf(names, [variable, ...rest]) {
    const linked = new Map(Object.entries(names.linked));
    if (variable === 'linked') return rest.length === 0 ? [...linked.keys()] : rest.length === 1 && linked.get(rest[0]);
    const { object, input, user, session } = names;
    const fields = { object, source: object, input, user, session };
    return rest.length === 0 && Object.hasOwn(fields, variable) && fields[variable];
  }

  // Messages have a line, or a line and a column in characters, or are about all of the text.
  function placesOf(doc, message, all) {
    const found = [...message.matchAll(/\bat (\d+):(\d+):|\bline (\d+)\b/gi)].map((match) => {
      const line = doc.line(Math.min(Math.max(match[1] ?? match[3], 1), doc.lines));
      const indent = line.text.length - line.text.trimStart().length;
      if (match[3]) return { from: line.from + indent, to: line.to };
      const before = [...line.text].slice(0, match[2] - 1).join('').length;
      const word = /^(\w+|.?)/u.exec(line.text.slice(before))[0].length;
      return { from: line.from + before, to: line.from + before + word };
    });
    return found.length === 0 && all ? [{ from: 0, to: doc.length }] : found;
  }

  class CodeEditor extends HTMLElement {
    async connectedCallback() {
      if (!('adoptedStyleSheets' in Document.prototype)) return;
      const CM = await load().catch(() => null);
      const textarea = this.querySelector('textarea');
      if (CM && textarea && this.isConnected && !this.view) this.open(CM, textarea);
    }

    disconnectedCallback() {
      if (!this.view) return;
      this.observer.disconnect();
      this.view.destroy();
      this.view = null;
      delete this.textarea.value;
      delete this.textarea.focus;
    }

    open(CM, textarea) {
      const focused = document.activeElement === textarea || textarea.autofocus;
      const { selectionStart: anchor, selectionEnd: head } = textarea;
      this.CM = CM;
      this.textarea = textarea;
      this.state = new CM.Compartment();
      const cel = this.getAttribute('language') === 'cel';
      const names = this.closest('[data-names]')?.dataset.names;
      const root = this.shadowRoot ?? this.attachShadow({ mode: 'open' });
      let sent = textarea.value;
      this.view = new CM.EditorView({
        doc: textarea.value,
        root,
        parent: root,
        extensions: [
          CM.lineNumbers(), CM.highlightSpecialChars(), CM.history(), CM.bracketMatching(), CM.search({ top: true }),
          CM.keys, CM.colors, CM.theme, CM.languages[this.getAttribute('language')],
          cel ? CM.EditorView.lineWrapping : [],
          cel && names ? CM.autocompletion({
            override: [(context) => complete(context, names)], icons: false, maxRenderedOptions: 12,
          }) : [],
          this.state.of(this.attributes()),
          CM.EditorView.updateListener.of((update) => update.docChanged && this.give(update.state.doc.toString())),
          CM.EditorView.domEventHandlers({
            focus: () => { sent = textarea.value; },
            blur: () => {
              if (textarea.value !== sent) textarea.dispatchEvent(new Event('change', { bubbles: true }));
              sent = textarea.value;
            },
          }),
        ],
      });
      Object.defineProperty(textarea, 'value', {
        configurable: true,
        get: () => value.get.call(textarea),
        set: (text) => {
          value.set.call(textarea, text);
          this.take();
        },
      });
      textarea.focus = () => this.focus();
      this.observer = new MutationObserver(() =>
        this.view.dispatch({ effects: this.state.reconfigure(this.attributes()) }));
      this.observer.observe(textarea, { attributes: true, attributeFilter: ['readonly', 'disabled', 'aria-invalid'] });
      this.diagnose();
      if (focused) {
        this.view.dispatch({ selection: { anchor, head } });
        this.focus();
      }
    }

    // What is typed is in the textarea at once.
    give(text) {
      if (text === this.textarea.value) return;
      value.set.call(this.textarea, text);
      this.textarea.dispatchEvent(new Event('input', { bubbles: true }));
    }

    // What a script sets is in the editor at once.
    take() {
      const text = this.textarea.value;
      const doc = this.view.state.doc;
      if (text === doc.toString()) return;
      this.view.dispatch({ changes: { from: 0, to: doc.length, insert: text }, selection: { anchor: text.length } });
    }

    attributes() {
      const { EditorState, EditorView } = this.CM;
      const { textarea } = this;
      const label = [...textarea.labels].map((one) => one.textContent.trim()).join(' ');
      const fixed = textarea.readOnly || textarea.matches(':disabled');
      const wrong = textarea.getAttribute('aria-invalid') === 'true';
      const attributes =
        { 'aria-label': label, 'aria-invalid': String(wrong), 'aria-readonly': String(fixed), tabindex: '0' };
      return [EditorState.readOnly.of(fixed), EditorView.contentAttributes.of(attributes),
        EditorView.editorAttributes.of({ class: [wrong && 'wrong', fixed && 'fixed'].filter(Boolean).join(' ') })];
    }

    // diagnose underlines the places of the messages that the page has.
    diagnose() {
      if (!this.view) return;
      const { view } = this;
      const described = (this.textarea.getAttribute('aria-describedby') ?? '').split(' ');
      view.contentDOM.ariaDescribedByElements = described.map((id) => document.getElementById(id)).filter(Boolean);
      const selector = this.getAttribute('problems');
      const messages = selector ? [...document.querySelectorAll(selector)].map((one) => one.textContent.trim()) : [];
      const whole = this.hasAttribute('whole');
      const found = messages.filter(Boolean).flatMap((message) =>
        placesOf(view.state.doc, message, whole).map((place) => ({ ...place, message, severity: 'error' })));
      view.dispatch(this.CM.setDiagnostics(view.state, found));
    }

    focus() {
      if (this.view) this.view.focus();
      else this.querySelector('textarea')?.focus();
    }

    select(number) {
      const line = this.view.state.doc.line(Math.min(number, this.view.state.doc.lines));
      this.view.dispatch({ selection: { anchor: line.from, head: line.to }, scrollIntoView: true });
      this.focus();
    }
  }
  customElements.define('code-editor', CodeEditor);

  document.addEventListener('htmx:afterSettle', () => {
    for (const editor of document.querySelectorAll('code-editor')) editor.diagnose();
  });
  document.addEventListener('click', (event) => {
    event.target.closest('label')?.control?.closest('code-editor')?.focus();
    const link = event.target.closest('a[data-line]');
    const editor = link && document.querySelector(link.hash)?.closest('code-editor');
    if (!editor?.view) return;
    event.preventDefault();
    editor.select(Number(link.dataset.line));
  });
})();
