// The parts of CodeMirror that pkg/api/console/assets/code.js uses, as the global CodeMirror: what is not named here is
// not in the bundle.
export { Compartment, EditorState } from '@codemirror/state';
export { EditorView, highlightSpecialChars, keymap, lineNumbers } from '@codemirror/view';
export { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
export { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
export { yaml } from '@codemirror/legacy-modes/mode/yaml';
export { autocompletion, completionKeymap } from '@codemirror/autocomplete';
export { lintKeymap, setDiagnostics } from '@codemirror/lint';
export { search, searchKeymap } from '@codemirror/search';
export { tags } from '@lezer/highlight';
