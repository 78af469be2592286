// Shows the OpenAPI document. Requests go to the origin of this page, whose cookie has the session.
'use strict';

const dark = matchMedia('(prefers-color-scheme: dark)');
const chosen = document.documentElement.dataset.theme;
const follow = () => document.documentElement.classList.toggle('dark-mode', chosen ? chosen === 'dark' : dark.matches);
follow();
dark.addEventListener('change', follow);

// The viewer has a main landmark of its own, as the page does: that of the viewer becomes a section.
const oneMain = ({ React }) => {
  const create = React.createElement;
  React.createElement = (type, props, ...children) => (type === 'main'
    ? create('section', { ...props, 'aria-label': 'Operations' }, ...children)
    : create(type, props, ...children));
  return {};
};

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
    plugins: [oneMain],
    supportedSubmitMethods: ['get', 'head', 'post', 'put', 'patch', 'delete'],
  });
});
