// Lints documents: node lint.js FILE... writes {"FILE": ["problem", ...], ...}.
import { readFile } from 'node:fs/promises'
import { Parser } from '@asyncapi/parser'
import { createConfig, lintFromString } from '@redocly/openapi-core'

// Rules of taste that belfry's documents don't follow. It has no license of its
// own to tell of; localhost is where it is by default; the health of a process
// has no 4xx, a page that sends browsers on no 2xx; a place of a file and the
// path to upload one there have equally many segments; a store's schema may demand what it does not describe.
const config = await createConfig({
  extends: ['recommended-strict'],
  rules: {
    'info-license': 'off',
    'no-server-example.com': 'off',
    'operation-4xx-response': 'off',
    'operation-2xx-response': 'off',
    'no-ambiguous-paths': 'off',
    'no-required-schema-properties-undefined': 'off',
    'no-invalid-schema-examples': 'error',
    'no-invalid-media-type-examples': 'error',
    'operation-operationId': 'error',
    'path-parameters-defined': 'error',
    'operation-tag-defined': 'error',
  },
})

async function openapi(source, file) {
  const found = await lintFromString({ source, absoluteRef: file, config })
  return found.map((p) => `${p.severity}: ${p.ruleId}: ${p.message} at ${p.location[0]?.pointer}`)
}

async function asyncapi(source) {
  const found = await new Parser().validate(source)
  return found
    .filter((p) => p.severity < 2 || !informational.has(p.code))
    .map((p) => `${p.severity}: ${p.code}: ${p.message} at ${p.path?.join('/')}`)
}

// What the parser recommends besides: a newer version of AsyncAPI, and a license.
const informational = new Set(['asyncapi-latest-version', 'asyncapi3-tags', 'asyncapi-info-license', 'asyncapi-info-contact', 'asyncapi-id'])

const all = {}
for (const file of process.argv.slice(2)) {
  const source = await readFile(file, 'utf8')
  all[file] = 'openapi' in JSON.parse(source) ? await openapi(source, file) : await asyncapi(source)
}
console.log(JSON.stringify(all))
