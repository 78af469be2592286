// Shows the OpenAPI document. Requests go to the origin of this page, whose cookie has the session.
'use strict';

const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
follow();
dark.addEventListener('change', follow);

// The viewer has a main landmark of its own, and the page has one: that of the viewer becomes a section.
const withoutMain = ({ createElement, cloneElement, isValidElement, Children }) => function change(node) {
  if (Array.isArray(node)) return node.map(change);
  if (!isValidElement(node)) return node;
  const children = Children.count(node.props.children) ? [].concat(node.props.children).map(change) : [];
  if (node.type !== 'main') return cloneElement(node, {}, ...children);
  return createElement('section', { ...node.props, key: node.key, 'aria-label': 'Operations' }, ...children);
};
const onePage = () => ({
  wrapComponents: {
    BaseLayout: (Original, { React }) => class extends Original {
      render() { return withoutMain(React)(super.render()); }
    },
  },
});

document.addEventListener('DOMContentLoaded', () => {
  const place = document.getElementById('api');
  // The viewer gives the body of a request no label.
  new MutationObserver(() => {
    for (const body of place.querySelectorAll('textarea.body-param__text:not([aria-label])')) body.setAttribute('aria-label', 'Body of the request');
  }).observe(place, { childList: true, subtree: true });
  SwaggerUIBundle({
    url: place.dataset.document,
    domNode: place,
    docExpansion: 'list',
    defaultModelsExpandDepth: 0,
    deepLinking: false,
    filter: true,
    syntaxHighlight: false, // its colors are too weak
    validatorUrl: null,
    persistAuthorization: false,
    plugins: [onePage],
    supportedSubmitMethods: ['get', 'head', 'post', 'put', 'patch', 'delete'],
  });
});
